// SPDX-License-Identifier: Apache-2.0
//
// SpaceToBatchND moves blocks of (padded) spatial dimensions into the batch dimension,
// BatchToSpaceND moves them back and crops; SpaceToBatch and BatchToSpace do so for images with one
// square block.
#include <algorithm>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"
#include "kernels/array/strided_copy.h"

namespace penstock {
namespace {

// The block, and per blocked dimension the padding (or cropping) before and after it.
struct Blocks {
  Dims sizes;
  Dims margins;  // pairs (before, after)
  int rank() const { return static_cast<int>(sizes.size()); }
  int64_t before(int i) const { return margins[2 * i]; }
  int64_t both(int i) const { return AddDims(margins[2 * i], margins[2 * i + 1]); }
  // Returns the number of positions of a block, by which the batch size is multiplied.
  // InvalidArgument if it does not fit in int64.
  StatusOr<int64_t> volume() const { return CheckedProduct(sizes); }
};

Status CheckBlocks(const Blocks& blocks, int input_rank, string_view margins) {
  if (input_rank < 1 + blocks.rank()) {
    return InvalidArgument("input rank should be >= ", 1 + blocks.rank(), " instead of ",
                           input_rank);
  }
  for (const int64_t size : blocks.sizes) {
    if (size < 1) return InvalidArgument("All values in block_shape must be positive, got ", size);
  }
  for (const int64_t margin : blocks.margins) {
    if (margin < 0) return InvalidArgument(margins, " must be non-negative, got ", margin);
  }
  return OkStatus();
}

// Reads the blocks from the inputs (block_shape, margins), or from the input margins and the
// attribute block_size. InvalidArgument if an input has another form; the values are not checked.
StatusOr<Blocks> BlocksOf(const Tensor* block_shape, int64_t block_size, const Tensor& margins,
                          string_view name) {
  Blocks blocks;
  if (block_shape != nullptr) {
    ASSIGN_OR_RETURN(blocks.sizes, IntVector(*block_shape, "block_shape"));
  } else {
    blocks.sizes = {block_size, block_size};
  }
  ASSIGN_OR_RETURN(blocks.margins, IntPairs(margins, name, blocks.rank()));
  return blocks;
}

// Returns the shape that SpaceToBatchND makes from the shape `space`; dimensions may be unknown.
// InvalidArgument if the block does not divide a padded dimension.
StatusOr<Dims> ToBatchDims(const Blocks& blocks, absl::Span<const int64_t> space) {
  Dims dims(space.begin(), space.end());
  ASSIGN_OR_RETURN(const int64_t volume, blocks.volume());
  dims[0] = MultiplyDims(dims[0], volume);
  for (int i = 0; i < blocks.rank(); ++i) {
    const int64_t padded = AddDims(dims[i + 1], blocks.both(i));
    if (padded >= 0 && padded % blocks.sizes[i] != 0) {
      return InvalidArgument("padded_shape[", i, "]=", padded, " is not divisible by block_shape[",
                             i, "]=", blocks.sizes[i]);
    }
    dims[i + 1] = padded < 0 ? padded : padded / blocks.sizes[i];
  }
  return dims;
}

// Returns the shape that BatchToSpaceND makes from the shape `batch`; dimensions may be unknown.
// InvalidArgument if the block does not divide the batch size, or if the crops exceed a dimension.
StatusOr<Dims> ToSpaceDims(const Blocks& blocks, absl::Span<const int64_t> batch) {
  Dims dims(batch.begin(), batch.end());
  ASSIGN_OR_RETURN(const int64_t volume, blocks.volume());
  if (dims[0] >= 0 && dims[0] % volume != 0) {
    return InvalidArgument("Input batch dimension (", dims[0],
                           ") is not divisible by product of block sizes (", volume, ")");
  }
  if (dims[0] >= 0) dims[0] /= volume;
  for (int i = 0; i < blocks.rank(); ++i) {
    const int64_t whole = MultiplyDims(dims[i + 1], blocks.sizes[i]);
    const int64_t margins = blocks.both(i);
    if (whole >= 0 && (margins < 0 || margins > whole)) {
      return InvalidArgument("cropped_shape[", i, "]=", whole, " - crops must be non-negative");
    }
    dims[i + 1] = whole < 0 ? whole : whole - margins;
  }
  return dims;
}

// Copies every position of `space` to its place in `batch`, or back.
//
// An element of `batch` has an offset o in the block and a spatial position q, and its position in
// `space` is q * block + o - before. So for each offset, the positions that lie within `space` form
// one box.
class BlockCopy {
 public:
  BlockCopy(const Blocks& blocks, const Shape& space, const Shape& batch)
      : blocks_(blocks),
        space_(space),
        batch_(batch),
        space_strides_(DenseStrides(space.dims())),
        batch_strides_(DenseStrides(batch.dims())) {}

  void Run(DType dtype, const void* from, void* to, bool to_batch, Scheduler& threads) const {
    Dims offset(blocks_.rank(), 0);
    int64_t block = 0;
    do {
      StridedCopy copy;
      int64_t space_start = 0, batch_start = block * space_.dim(0) * batch_strides_[0];
      if (Box(offset, to_batch, &copy, &space_start, &batch_start)) {
        const int64_t from_start = to_batch ? space_start : batch_start;
        const int64_t to_start = to_batch ? batch_start : space_start;
        CopyStrided(dtype, copy, ElementAt(from, dtype, from_start), ElementAt(to, dtype, to_start),
                    threads);
      }
      ++block;
    } while (Next(&offset));
  }

 private:
  // Makes the box of one offset; returns false if it is empty.
  bool Box(const Dims& offset, bool to_batch, StridedCopy* copy, int64_t* space_start,
           int64_t* batch_start) const {
    const auto add = [&](int64_t count, int64_t space_step, int64_t batch_step) {
      copy->Add(count, to_batch ? space_step : batch_step, to_batch ? batch_step : space_step);
    };
    add(space_.dim(0), space_strides_[0], batch_strides_[0]);
    for (int i = 0; i < blocks_.rank(); ++i) {
      const int64_t size = blocks_.sizes[i], shift = offset[i] - blocks_.before(i);
      // Positions q with 0 <= q * size + shift < space dimension.
      const int64_t first = shift >= 0 ? 0 : (-shift + size - 1) / size;
      const int64_t room = space_.dim(i + 1) - shift;
      const int64_t last = room <= 0 ? 0 : std::min(batch_.dim(i + 1), (room - 1) / size + 1);
      if (first >= last) return false;
      add(last - first, size * space_strides_[i + 1], batch_strides_[i + 1]);
      *space_start += (first * size + shift) * space_strides_[i + 1];
      *batch_start += first * batch_strides_[i + 1];
    }
    for (int i = blocks_.rank() + 1; i < space_.rank(); ++i) {
      add(space_.dim(i), space_strides_[i], batch_strides_[i]);
    }
    return true;
  }

  bool Next(Dims* offset) const {
    for (int i = blocks_.rank() - 1; i >= 0; --i) {
      if (++(*offset)[i] < blocks_.sizes[i]) return true;
      (*offset)[i] = 0;
    }
    return false;
  }

  const Blocks& blocks_;
  const Shape &space_, &batch_;
  const Dims space_strides_, batch_strides_;
};

constexpr const char* MarginsName(bool to_batch) { return to_batch ? "paddings" : "crops"; }

template <bool kToBatch, bool kAttr>
class SpaceBatchKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    return kAttr ? node.Attr("block_size", &block_size_) : OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    ASSIGN_OR_RETURN(const Blocks blocks,
                     BlocksOf(kAttr ? nullptr : &ctx.input(1), block_size_,
                              ctx.input(kAttr ? 1 : 2), MarginsName(kToBatch)));
    RETURN_IF_ERROR(CheckBlocks(blocks, input.rank(), MarginsName(kToBatch)));
    const auto dims = input.shape().dims();
    ASSIGN_OR_RETURN(const Dims moved,
                     kToBatch ? ToBatchDims(blocks, dims) : ToSpaceDims(blocks, dims));
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(moved));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    if (shape.num_elements() == 0) return OkStatus();
    const bool padded = std::any_of(blocks.margins.begin(), blocks.margins.end(),
                                    [](int64_t margin) { return margin > 0; });
    if (kToBatch && padded) Zero(*output, ctx.threads());
    const BlockCopy copy(blocks, kToBatch ? input.shape() : shape,
                         kToBatch ? shape : input.shape());
    copy.Run(input.dtype(), input.raw_data(), output->mutable_raw_data(), kToBatch, ctx.threads());
    return OkStatus();
  }

 private:
  int64_t block_size_ = 1;
};

template <bool kToBatch, bool kAttr>
Status SpaceBatchShape(ShapeScope& s) {
  const PartialShape& input = s.input(0);
  const Tensor* block_shape = kAttr ? nullptr : s.constant(1);
  const Tensor* margins = s.constant(kAttr ? 1 : 2);
  if (!input.known_rank()) return OkStatus();
  if ((!kAttr && block_shape == nullptr) || margins == nullptr) {
    s.set_output(0, PartialShape::UnknownOfRank(input.rank()));
    return OkStatus();
  }
  const int64_t block_size = kAttr ? s.attr<int64_t>("block_size") : 1;
  ASSIGN_OR_RETURN(const Blocks blocks,
                   BlocksOf(block_shape, block_size, *margins, MarginsName(kToBatch)));
  RETURN_IF_ERROR(CheckBlocks(blocks, input.rank(), MarginsName(kToBatch)));
  ASSIGN_OR_RETURN(const Dims dims, kToBatch ? ToBatchDims(blocks, input.dims())
                                             : ToSpaceDims(blocks, input.dims()));
  return SetOutput(s, 0, dims);
}

// Returns a gradient that calls `op` on dy with the same block and margins: SpaceToBatch and
// BatchToSpace are each other's gradients.
GradientFn TransposedBy(const char* op) {
  return [op](const GradientScope& g) -> std::vector<Gradient> {
    return {Call(op, {g.dy(), g.x(1), g.x(2)}), Gradient(), Gradient()};
  };
}
GradientFn TransposedByWithSize(const char* op) {
  return [op](const GradientScope& g) -> std::vector<Gradient> {
    return {Call(op, {g.dy(), g.x(1)}, {{"block_size", g.attr<int64_t>("block_size")}}),
            Gradient()};
  };
}

OP(SpaceToBatchND) {
  return {
      .doc =
          "Pads the spatial dimensions with zeros, divides them into blocks, and moves the "
          "elements of each block into the batch dimension.",
      .inputs = {{"input", "T"}, {"block_shape", "Tblock_shape"}, {"paddings", "Tpaddings"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAllTypes},
                {"Tblock_shape", kIndex, DType::kInt32},
                {"Tpaddings", kIndex, DType::kInt32}},
      .shape = SpaceBatchShape<true, false>,
      .gradient = TransposedBy("BatchToSpaceND"),
      .examples = {{.inputs = {{{{1, 3, 4, 1}}}, {{{2}, {2, 2}}}, {{{2, 2}, {1, 0, 0, 2}}}}}},
  };
}

OP(BatchToSpaceND) {
  return {
      .doc =
          "The inverse of SpaceToBatchND: moves elements from the batch dimension into blocks of "
          "the spatial dimensions, and then crops the spatial dimensions.",
      .inputs = {{"input", "T"}, {"block_shape", "Tblock_shape"}, {"crops", "Tcrops"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAllTypes},
                {"Tblock_shape", kIndex, DType::kInt32},
                {"Tcrops", kIndex, DType::kInt32}},
      .shape = SpaceBatchShape<false, false>,
      .gradient = TransposedBy("SpaceToBatchND"),
      .examples = {{.inputs = {{{{4, 2, 3, 1}}}, {{{2}, {2, 2}}}, {{{2, 2}, {1, 0, 0, 2}}}}}},
  };
}

OP(SpaceToBatch) {
  return {
      .doc = "The same as SpaceToBatchND for images, with a square block.",
      .inputs = {{"input", "T"}, {"paddings", "Tpaddings"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAllTypes}, {"Tpaddings", kIndex, DType::kInt32}},
      .attrs = {{"block_size", Ints{.min = 2}}},
      .shape = SpaceBatchShape<true, true>,
      .gradient = TransposedByWithSize("BatchToSpace"),
      .examples = {{.inputs = {{{{1, 3, 4, 1}}}, {{{2, 2}, {1, 0, 0, 2}}}},
                    .attrs = {{"block_size", 2}}}},
  };
}

OP(BatchToSpace) {
  return {
      .doc = "The same as BatchToSpaceND for images, with a square block.",
      .inputs = {{"input", "T"}, {"crops", "Tidx"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAllTypes}, {"Tidx", kIndex, DType::kInt32}},
      .attrs = {{"block_size", Ints{.min = 2}}},
      .shape = SpaceBatchShape<false, true>,
      .gradient = TransposedByWithSize("SpaceToBatch"),
      .examples = {{.inputs = {{{{4, 2, 3, 1}}}, {{{2, 2}, {1, 0, 0, 2}}}},
                    .attrs = {{"block_size", 2}}}},
  };
}

using SpaceToBatchNDKernel = SpaceBatchKernel<true, false>;
using BatchToSpaceNDKernel = SpaceBatchKernel<false, false>;
using SpaceToBatchKernel = SpaceBatchKernel<true, true>;
using BatchToSpaceKernel = SpaceBatchKernel<false, true>;
KERNEL_ANY_TYPE(SpaceToBatchND, SpaceToBatchNDKernel);
KERNEL_ANY_TYPE(BatchToSpaceND, BatchToSpaceNDKernel);
KERNEL_ANY_TYPE(SpaceToBatch, SpaceToBatchKernel);
KERNEL_ANY_TYPE(BatchToSpace, BatchToSpaceKernel);

}  // namespace
}  // namespace penstock

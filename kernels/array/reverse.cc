// SPDX-License-Identifier: Apache-2.0
//
// Reverse (flags select the dimensions), ReverseV2 (a list of axes selects them), ReverseSequence
// (reverses the beginning of each row).
#include <algorithm>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"
#include "kernels/array/strided_copy.h"

namespace penstock {
namespace {

// Writes input 0 to output 0 with the flagged dimensions reversed.
Status ReverseDims(KernelContext& ctx, const std::vector<bool>& backwards) {
  const Tensor& input = ctx.input(0);
  if (std::find(backwards.begin(), backwards.end(), true) == backwards.end()) {
    ctx.SetOutput(0, ctx.TakeInput(0));
    return OkStatus();
  }
  Tensor* output;
  RETURN_IF_ERROR(ctx.Allocate(0, input.shape(), &output));
  if (input.num_elements() == 0) return OkStatus();
  const Dims strides = DenseStrides(input.shape().dims());
  StridedCopy copy;
  int64_t offset = 0;
  for (int i = 0; i < input.rank(); ++i) {
    if (backwards[i]) offset += (input.dim(i) - 1) * strides[i];
    copy.Add(input.dim(i), backwards[i] ? -strides[i] : strides[i], strides[i]);
  }
  CopyStrided(input.dtype(), copy, ElementAt(input.raw_data(), input.dtype(), offset),
              output->mutable_raw_data(), ctx.threads());
  return OkStatus();
}

class ReverseKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& dims = ctx.input(1);
    const int rank = ctx.input(0).rank();
    if (dims.rank() != 1 || dims.dim(0) != rank) {
      return InvalidArgument("'dims' must be a vector of one flag per dimension of the input, ",
                             rank, "; has shape ", dims.shape().ToString());
    }
    const auto flags = dims.flat<bool>();
    return ReverseDims(ctx, std::vector<bool>(flags.begin(), flags.end()));
  }
};

class ReverseV2Kernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const int rank = ctx.input(0).rank();
    ASSIGN_OR_RETURN(const Dims axes, IntVector(ctx.input(1), "axis"));
    std::vector<bool> backwards(rank, false);
    for (const int64_t wanted : axes) {
      ASSIGN_OR_RETURN(const int axis, NormalAxis(wanted, rank, "axis"));
      if (backwards[axis]) {
        return InvalidArgument("axis ", axis, " specified more than once.");
      }
      backwards[axis] = true;
    }
    return ReverseDims(ctx, backwards);
  }
};

class ReverseSequenceKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("seq_dim", &seq_dim_));
    return node.Attr("batch_dim", &batch_dim_);
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor &input = ctx.input(0), &lengths_input = ctx.input(1);
    const int rank = input.rank();
    ASSIGN_OR_RETURN(const int seq, NormalAxis(seq_dim_, rank, "seq_dim"));
    ASSIGN_OR_RETURN(const int batch, NormalAxis(batch_dim_, rank, "batch_dim"));
    if (seq == batch) return InvalidArgument("batch_dim == seq_dim == ", seq);
    ASSIGN_OR_RETURN(const Dims lengths, IntVector(lengths_input, "seq_lengths", input.dim(batch)));
    for (size_t i = 0; i < lengths.size(); ++i) {
      if (lengths[i] < 0 || lengths[i] > input.dim(seq)) {
        return InvalidArgument("seq_lens(", i, ")", lengths[i] < 0 ? " < 0" : " > input.dims(",
                               lengths[i] < 0 ? "" : StrCat(seq, ")"), ": ", lengths[i],
                               " is not in [0, ", input.dim(seq), "]");
      }
    }
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, input.shape(), &output));
    const Dims strides = DenseStrides(input.shape().dims());
    StridedCopy others;
    for (int i = 0; i < rank; ++i) {
      if (i != seq && i != batch) others.Add(input.dim(i), strides[i], strides[i]);
    }
    const auto copy = [&](int64_t count, int64_t from_step, int64_t from, int64_t to) {
      StridedCopy part = others;
      part.Add(count, from_step, strides[seq]);
      CopyStrided(input.dtype(), part, ElementAt(input.raw_data(), input.dtype(), from),
                  ElementAt(output->mutable_raw_data(), input.dtype(), to), ctx.threads());
    };
    for (size_t b = 0; b < lengths.size(); ++b) {
      const int64_t start = b * strides[batch], turned = lengths[b] * strides[seq];
      copy(lengths[b], -strides[seq], start + turned - strides[seq], start);
      copy(input.dim(seq) - lengths[b], strides[seq], start + turned, start + turned);
    }
    return OkStatus();
  }

 private:
  int64_t seq_dim_ = 0, batch_dim_ = 0;
};

Status ReverseSequenceShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape lengths, s.WithRank(1, 1));
  PartialShape output = s.input(0);
  if (output.known_rank()) {
    ASSIGN_OR_RETURN(const int seq,
                     NormalAxis(s.attr<int64_t>("seq_dim"), output.rank(), "seq_dim"));
    ASSIGN_OR_RETURN(const int batch,
                     NormalAxis(s.attr<int64_t>("batch_dim"), output.rank(), "batch_dim"));
    if (seq == batch) return InvalidArgument("batch_dim == seq_dim == ", seq);
    if (output.dim(batch) < 0) output.set_dim(batch, lengths.dim(0));
    if (lengths.dim(0) >= 0 && lengths.dim(0) != output.dim(batch)) {
      return InvalidArgument("seq_lengths has ", lengths.dim(0), " elements for a batch of ",
                             output.dim(batch));
    }
  }
  s.set_output(0, output);
  return OkStatus();
}

std::vector<Gradient> ReverseSequenceGradient(const GradientScope& g) {
  return {
      Call("ReverseSequence", {g.dy(), g.x(1)},
           {{"seq_dim", g.attr<int64_t>("seq_dim")}, {"batch_dim", g.attr<int64_t>("batch_dim")}}),
      Gradient()};
}

OP(Reverse) {
  return {
      .doc = "Reverses the dimensions whose element of `dims` is true.",
      .inputs = {{"tensor", "T"}, {"dims", "bool"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAnyType}},
      .shape = SameShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {Call("Reverse", {g.dy(), g.x(1)}), Gradient()};
      },
      .examples = {{.inputs = {{{{2, 3}}}, {{{2}, {0, 1}}}}}},
  };
}

OP(ReverseV2) {
  return {
      .doc = "Reverses the dimensions listed in `axis`.",
      .inputs = {{"tensor", "T"}, {"axis", "Tidx"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAnyType}, {"Tidx", kIndex, DType::kInt32}},
      .shape = SameShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {Call("ReverseV2", {g.dy(), g.x(1)}), Gradient()};
      },
      .examples = {{.inputs = {{{{2, 3, 2}}}, {{{2}, {0, -1}}}}}},
  };
}

OP(ReverseSequence) {
  return {
      .doc =
          "Reverses the first seq_lengths[i] elements along seq_dim in each slice i of "
          "dimension batch_dim.",
      .inputs = {{"input", "T"}, {"seq_lengths", "Tlen"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAnyType}, {"Tlen", kIndex, DType::kInt64}},
      .attrs = {{"seq_dim", Ints{}}, {"batch_dim", 0}},
      .shape = ReverseSequenceShape,
      .gradient = ReverseSequenceGradient,
      .examples = {{.inputs = {{{{3, 4}}}, {{{3}, {2, 4, 0}}}}, .attrs = {{"seq_dim", 1}}}},
  };
}

KERNEL_ANY_TYPE(Reverse, ReverseKernel);
KERNEL_ANY_TYPE(ReverseV2, ReverseV2Kernel);
KERNEL_ANY_TYPE(ReverseSequence, ReverseSequenceKernel);

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "kernels/engine/reduction.h"

#include <algorithm>
#include <memory>

#include "kernels/engine/float16_blocks.h"

namespace penstock {
namespace {

constexpr int64_t kTile = 1024;  // accumulators of one unit of work: at most 16 KiB
constexpr int64_t kMaxAccumulatorBytes = 16;
// The minimum size of a piece: for smaller pieces, scheduling would take longer than the work.
constexpr int64_t kSplitElements = 64 << 10;
constexpr int64_t kMaxPieces = 256;
constexpr double kNanosPerElement = 0.12;

// Runs one reduction. The outputs are split into tiles, and the input elements of each tile into
// pieces.
class ReductionRun {
 public:
  ReductionRun(const ReductionLoop& loop, const ReductionPlan& plan, const void* x, void* y)
      : loop_(loop),
        plan_(plan),
        x_(static_cast<const char*>(x)),
        y_(static_cast<char*>(y)),
        size_(SizeOf(loop.type)),
        reduces_adjacent_(plan.reduced.stride == 1),
        tile_(TileSize(plan)),
        tiles_per_row_((plan.kept.size + tile_ - 1) / tile_),
        tiles_(plan.num_outputs / plan.kept.size * tiles_per_row_) {
    const int64_t total = plan.num_outputs * plan.num_reduced;
    pieces_ = std::min({total / kSplitElements, kMaxPieces / tiles_, plan.num_reduced});
    pieces_ = std::max<int64_t>(pieces_, 1);
  }

  void Run(Scheduler& threads) const {
    const double nanos = kNanosPerElement * tile_ * plan_.num_reduced;
    if (pieces_ == 1) {
      threads.ParallelFor(tiles_, nanos, [&](int64_t begin, int64_t end) {
        alignas(64) char accumulators[kTile * kMaxAccumulatorBytes];
        for (int64_t tile = begin; tile < end; ++tile) {
          Accumulate(tile, 0, plan_.num_reduced, accumulators);
          Finish(tile, accumulators);
        }
      });
      return;
    }
    const int64_t bytes = tile_ * loop_.accumulator_bytes;
    const auto partial = std::make_unique_for_overwrite<char[]>(tiles_ * pieces_ * bytes);
    threads.ParallelFor(tiles_ * pieces_, nanos / pieces_, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t piece = i % pieces_;
        Accumulate(i / pieces_, plan_.num_reduced * piece / pieces_,
                   plan_.num_reduced * (piece + 1) / pieces_, &partial[i * bytes]);
      }
    });
    for (int64_t tile = 0; tile < tiles_; ++tile) {
      char* sum = &partial[tile * pieces_ * bytes];
      for (int64_t i = 1; i < pieces_; ++i) loop_.merge(sum + i * bytes, Width(tile), sum);
      Finish(tile, sum);
    }
  }

 private:
  // Returns how many outputs a tile holds. Reductions over long rows use smaller tiles.
  static int64_t TileSize(const ReductionPlan& plan) {
    const int64_t most = plan.reduced.stride == 1
                             ? std::max<int64_t>(1, kSplitElements / (plan.num_reduced + 1))
                             : kTile;
    return std::min({plan.kept.size, most, kTile});
  }

  // Returns the number of outputs of a tile: the last tile of a row may be narrower.
  int64_t Width(int64_t tile) const {
    return std::min(tile_, plan_.kept.size - tile % tiles_per_row_ * tile_);
  }

  // Accumulates elements [begin, end) of each output of the tile.
  void Accumulate(int64_t tile, int64_t begin, int64_t end, void* accumulators) const {
    const int64_t n = Width(tile);
    const int64_t origin = ReductionPlan::Offset(plan_.outer_kept, tile / tiles_per_row_) +
                           tile % tiles_per_row_ * tile_ * plan_.kept.stride;
    loop_.reset(accumulators, n);
    while (begin < end) {
      const int64_t k = begin % plan_.reduced.size;
      const int64_t length = std::min(plan_.reduced.size - k, end - begin);
      const int64_t offset = origin + k * plan_.reduced.stride +
                             ReductionPlan::Offset(plan_.outer_reduced, begin / plan_.reduced.size);
      Add(x_ + offset * size_, n, length, accumulators);
      begin += length;
    }
  }

  void Add(const char* x, int64_t n, int64_t length, void* accumulators) const {
    if (IsFloat16(loop_.type)) return AddFloat16(x, n, length, static_cast<char*>(accumulators));
    if (reduces_adjacent_) {
      loop_.across(x, n, plan_.kept.stride, length, accumulators);
    } else {
      loop_.down(x, n, plan_.reduced.stride, length, accumulators);
    }
  }

  // Converts each row to floats, a block at a time, and accumulates the floats.
  void AddFloat16(const char* x, int64_t n, int64_t length, char* accumulators) const {
    float block[kTile];
    if (!reduces_adjacent_) {
      for (int64_t k = 0; k < length; ++k, x += plan_.reduced.stride * size_) {
        Float16ToFloat(loop_.type, x, block, n);
        loop_.down(block, n, 0, 1, accumulators);
      }
      return;
    }
    for (int64_t i = 0; i < n; ++i, x += plan_.kept.stride * size_) {
      for (int64_t k = 0; k < length; k += kTile) {
        const int64_t m = std::min(kTile, length - k);
        Float16ToFloat(loop_.type, x + k * size_, block, m);
        loop_.across(block, 1, 0, m, accumulators + i * loop_.accumulator_bytes);
      }
    }
  }

  void Finish(int64_t tile, const void* accumulators) const {
    const int64_t n = Width(tile);
    const int64_t first = tile / tiles_per_row_ * plan_.kept.size + tile % tiles_per_row_ * tile_;
    char* y = y_ + first * size_;
    if (!IsFloat16(loop_.type)) return loop_.finish(accumulators, plan_.num_reduced, n, y);
    float block[kTile];
    loop_.finish(accumulators, plan_.num_reduced, n, block);
    FloatToFloat16(loop_.type, block, y, n);
  }

  const ReductionLoop& loop_;
  const ReductionPlan& plan_;
  const char* x_;
  char* y_;
  const size_t size_;
  const bool reduces_adjacent_;  // the elements of one output are adjacent
  const int64_t tile_, tiles_per_row_, tiles_;
  int64_t pieces_;
};

}  // namespace

void Reduce(Scheduler& threads, const ReductionLoop& loop, const ReductionPlan& plan, const void* x,
            void* y) {
  if (plan.num_outputs > 0) ReductionRun(loop, plan, x, y).Run(threads);
}

Status ReductionKernel::Init(const KernelInit& node) {
  if (node.input_types[0].dtype != loop_.type || node.output_types[0].dtype != loop_.type) {
    return InvalidArgument("node '", node.name, "': this kernel is for ", Name(loop_.type));
  }
  return node.Attr("keep_dims", &keep_dims_);
}

Status ReductionKernel::Compute(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  // TensorFlow accepts axes of any shape: [[0], [1]] means the same as [0, 1].
  const Tensor indices = ctx.input(1).Reshaped({ctx.input(1).num_elements()});
  ASSIGN_OR_RETURN(const auto axes, AxisValues(indices, "reduction_indices"));
  ASSIGN_OR_RETURN(const ReductionPlan plan, ReductionPlan::Make(x.shape(), axes, keep_dims_));
  if (plan.num_reduced == 1 && loop_.returns_single_element) {
    ctx.SetOutput(0, x.Reshaped(plan.output));
    return OkStatus();
  }
  Tensor* y;
  RETURN_IF_ERROR(ctx.Allocate(0, plan.output, &y));
  if (loop_.launch != nullptr) {
    if (plan.num_outputs == 0) return OkStatus();
    return loop_.launch(ctx, plan, x.raw_data(), y->mutable_raw_data());
  }
  Reduce(ctx.threads(), loop_, plan, x.raw_data(), y->mutable_raw_data());
  return OkStatus();
}

}  // namespace penstock

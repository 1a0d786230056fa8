// SPDX-License-Identifier: Apache-2.0
//
// RandomShuffle, StatelessShuffle: the rows of a tensor in random order.
#include <limits>
#include <numeric>
#include <utility>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/gather_rows.h"
#include "kernels/random/random_stream.h"
#include "kernels/random/stateless_stream.h"

namespace penstock {
namespace {

// Returns a random order of the numbers from 0 to count - 1, by the Fisher-Yates shuffle: each
// position takes one of the remaining numbers.
std::vector<int64_t> RandomOrder(int64_t count, PhiloxNumbers numbers) {
  std::vector<int64_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = 0; i + 1 < count; ++i) {
    std::swap(order[i], order[i + numbers() % static_cast<uint32_t>(count - i)]);
  }
  return order;
}

// Shuffles the rows of input 0. `stream_for(blocks)` returns the stream of the random numbers, of
// which at most `blocks` blocks are used.
template <class StreamFor>
Status ShuffleRows(KernelContext& ctx, const StreamFor& stream_for) {
  const Tensor& value = ctx.input(0);
  if (value.rank() == 0 || value.num_elements() <= 1 || value.dim(0) <= 1) {
    ctx.SetOutput(0, ctx.TakeInput(0));
    return OkStatus();
  }
  const int64_t rows = value.dim(0);
  if (rows > std::numeric_limits<uint32_t>::max()) {
    return InvalidArgument("cannot shuffle ", rows, " rows; at most 2^32 - 1");
  }
  const uint64_t blocks = static_cast<uint64_t>(rows - 1 + 3) / 4;
  const std::vector<int64_t> order = RandomOrder(rows, PhiloxNumbers(stream_for(blocks)));
  Tensor* output;
  RETURN_IF_ERROR(ctx.Allocate(0, value.shape(), &output));
  const GatherPlan plan{.rows = rows, .row_elements = value.num_elements() / rows, .count = rows};
  GatherRows(value.dtype(), plan, value.raw_data(), order.data(), output->mutable_raw_data(),
             ctx.threads());
  return OkStatus();
}

class RandomShuffleKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return stream_.Init(node); }
  Status Compute(KernelContext& ctx) override {
    return ShuffleRows(ctx,
                       [&](uint64_t blocks) { return stream_.Reserve(blocks, *ctx.step().env); });
  }

 private:
  RandomStream stream_;
};

class StatelessShuffleKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const Philox stream, KeyCounterInput(ctx, 1));
    return ShuffleRows(ctx, [&](uint64_t) { return stream; });
  }
};

OP(RandomShuffle) {
  return {
      .doc = "Shuffles the slices of the input along dimension 0.",
      .inputs = {{"value", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAllTypes}},
      .attrs = {{"seed", 0}, {"seed2", 0}},
      .shape = SameShape,
      .gradient = NoGradient,
      .stateful = true,
      .shuffles = true,
  };
}
KERNEL_ANY_TYPE(RandomShuffle, RandomShuffleKernel);

OP(StatelessShuffle) {
  return {
      .doc =
          "Shuffles the slices of the input along dimension 0; the order is a function of key and "
          "counter.",
      .inputs = {{"value", "T"}, {"key", "uint64"}, {"counter", "uint64"}, {"alg", "int32"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAllTypes}},
      .shape = SameShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{4, 2}}}, {{{1}}}, {{{2}}}, {{.values = {1}}}}}},
  };
}
KERNEL_ANY_TYPE(StatelessShuffle, StatelessShuffleKernel);

}  // namespace
}  // namespace penstock

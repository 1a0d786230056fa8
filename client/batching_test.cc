// SPDX-License-Identifier: Apache-2.0
//
// Tests the gradients of Batch and Unbatch against central differences, in steps that have batches
// of their own.
#include "client/testing/flow_test_program.h"

namespace penstock::client {
namespace {

class Batching : public FlowTest {
 protected:
  Output Number(Output x) { return Sin(x) * x; }
  Outputs Batch(const Outputs& inputs, std::vector<int64_t> allowed) {
    return CallN("Batch", {inputs},
                 {{"num_batch_threads", 1},
                  {"max_batch_size", allowed.back()},
                  {"batch_timeout_micros", 0},
                  {"allowed_batch_sizes", std::move(allowed)},
                  {"grad_timeout_micros", 10'000'000}});
  }
  Output Unbatch(Output batch, const Outputs& of) {
    return Call("Unbatch", {batch, of[of.size() - 2], of.back()}, {{"timeout_micros", 10'000'000}});
  }
};

TEST_F(Batching, GradientsPassThroughABatch) {
  const Output x = Input(Tensor::Of<double>({2, 2}, {1, 2, 3, 4})), z = Input({5, 6});
  const Outputs batch = Batch({x * x, z}, {2});
  const Output rows = Unbatch(Number(batch[0]), batch), other = Unbatch(batch[1] * batch[1], batch);
  CheckGradients(Total(rows) * Total(other), {x, z});
}

TEST_F(Batching, PaddingHasNoGradient) {
  const Output x = Input({1, 2, 3});
  const Outputs batch = Batch({x}, {4, 7});
  CheckGradients(Number(Unbatch(Number(batch[0]), batch)), {x});
}

}  // namespace
}  // namespace penstock::client

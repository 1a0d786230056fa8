// SPDX-License-Identifier: Apache-2.0
//
// Tests updates of slices of a tensor. The expected numbers are those of TensorFlow 2.21.
#include "kernels/array/testing/golden.h"

namespace penstock {
namespace {

using namespace golden;  // NOLINT: the tables below use its names

const Tensor kMatrix = F({3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});

TEST(TensorScatter, AppliesUpdatesInOrder) {
  const struct {
    const char* op;
    Tensor y;
  } cases[] = {
      {"TensorScatterUpdate", F({3, 4}, {1, 2, 3, 4, 5, 5, 7, 8, 70, 10, 11, 12})},
      {"TensorScatterAdd", F({3, 4}, {1, 2, 3, 4, 5, 8, 7, 8, 79, 10, 11, 12})},
      {"TensorScatterSub", F({3, 4}, {1, 2, 3, 4, 5, 4, 7, 8, -61, 10, 11, 12})},
      {"TensorScatterMin", F({3, 4}, {1, 2, 3, 4, 5, -3, 7, 8, 9, 10, 11, 12})},
      {"TensorScatterMax", F({3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 70, 10, 11, 12})},
      {"ScatterNdNonAliasingAdd", F({3, 4}, {1, 2, 3, 4, 5, 8, 7, 8, 79, 10, 11, 12})},
  };
  const Tensor updates = F({3}, {-3, 70, 5});
  for (const auto& c : cases) {
    SCOPED_TRACE(c.op);
    ExpectOutputs({c.op, {kMatrix, I({3, 2}, {1, 1, 2, 0, 1, 1}), updates}}, {c.y});
    ExpectOutputs({c.op, {kMatrix, L({3, 2}, {1, 1, 2, 0, 1, 1}), updates}}, {c.y});
  }
  for (const Tensor& indices : {I16({1, 1}, {2}), U16({1, 1}, {2})}) {
    ExpectOutputs({"TensorScatterUpdate", {S({3}, {"a", "b", "c"}), indices, S({1}, {"d"})}},
                  {S({3}, {"a", "b", "d"})});
  }
  ExpectOutputs({"ScatterNdNonAliasingAdd",
                 {B({2}, {false, true}), I({2, 1}, {0, 1}), B({2}, {true, false})}},
                {B({2}, {true, true})});
  ExpectOutputs(
      {"TensorScatterAdd",
       {kMatrix, Tensor(DType::kInt32, {1, 0}), F({1, 3, 4}, std::vector<float>(12, -1))}},
      {F({3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})});
}

TEST(TensorScatter, RefusesOrIgnoresBadIndices) {
  const OpCall call = {"TensorScatterUpdate",
                       {kMatrix, I({2, 1}, {3, 1}), F({2, 4}, {-1, -2, -3, -4, -5, -6, -7, -8})}};
  call.ExpectError("indices[0] = [3] does not index into shape [3,4]");
  OpCall ignoring = call;
  ignoring.attrs = {{"bad_indices_policy", "IGNORE"}};
  ExpectOutputs(ignoring, {F({3, 4}, {1, 2, 3, 4, -5, -6, -7, -8, 9, 10, 11, 12})});
  OpCall{"TensorScatterAdd", {kMatrix, I({2, 1}, {0, 1}), F({2, 3}, {1, 2, 3, 4, 5, 6})}}
      .ExpectError("updates must have shape indices.shape[:-1] + tensor.shape[indices.shape[-1]:]");
  OpCall{"TensorScatterAdd", {kMatrix, I({1, 3}, {0, 0, 0}), F({1}, {1})}}.ExpectError(
      "index innermost dimension length must be <= params rank; saw: 3 vs. 2");
}

}  // namespace
}  // namespace penstock

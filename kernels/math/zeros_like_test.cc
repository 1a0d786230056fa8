// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "gtest/gtest.h"
#include "kernels/array/testing/op_check.h"

namespace penstock {
namespace {

TEST(ZerosLike, IsZeroForEveryTypeAndLeavesItsInput) {
  for (const DType dtype : kMovedTypes) {
    const Tensor x = Sample(dtype, {3, 4});
    ExpectMoved(OpCall{"ZerosLike", {x}}.Run1(), x.shape(), x,
                [](const Dims&) { return std::nullopt; });
    EXPECT_TRUE(SameTensor(x, Sample(dtype, {3, 4}))) << "the input was written";
  }
}

}  // namespace
}  // namespace penstock

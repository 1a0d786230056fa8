// SPDX-License-Identifier: Apache-2.0
//
// Tests gradients with respect to variables' handles.
#include <gtest/gtest.h>

#include "core/gradients/gradients.h"
#include "core/graph/builder.h"

namespace penstock {
namespace {

class GradientTest : public testing::Test {
 protected:
  Output Variable(const PartialShape& shape) {
    return CallIn(b_, "VarHandleOp", {}, {{"dtype", DType::kFloat}, {"shape", shape}});
  }
  Output Ints(const std::vector<int32_t>& values) { return Constant(b_, Tensor::Vector(values)); }
  // Returns the gradient of the sum of y with respect to the handle.
  Gradient Of(Output y, Output handle) {
    const auto gradients = AddGradients(b_, {y}, {handle});
    EXPECT_EQ(gradients.status(), OkStatus());
    EXPECT_EQ(b_.status(), OkStatus());
    return gradients.ok() ? (*gradients)[0] : Gradient();
  }
  GraphBuilder b_;
};

TEST_F(GradientTest, OfReadingIsThatOfTheValue) {
  const Output handle = Variable({2, 3});
  const Output value = Call("ReadVariableOp", {handle}, {{"dtype", DType::kFloat}});
  const Gradient gradient = Of(value * 3.0, handle);
  EXPECT_FALSE(gradient.sparse());
  EXPECT_EQ(gradient.values.shape(), PartialShape({2, 3}));
  EXPECT_EQ(gradient.values.dtype(), DType::kFloat);
}

TEST_F(GradientTest, OfGatheringIsRows) {
  const Output handle = Variable({10, 3});
  const Output indices = Constant(b_, Tensor::Of<int32_t>({2, 2}, {1, 7, 1, 0}));
  const Output rows = Call("ResourceGather", {handle, indices}, {{"dtype", DType::kFloat}});
  EXPECT_EQ(rows.shape(), PartialShape({2, 2, 3}));
  const Gradient gradient = Of(rows * 2.0, handle);
  ASSERT_TRUE(gradient.sparse());
  EXPECT_EQ(gradient.values.dtype(), DType::kFloat);
  EXPECT_EQ(gradient.values.shape().rank(), 2);
  EXPECT_EQ(gradient.indices.shape().rank(), 1);
  EXPECT_EQ(gradient.dense_shape.shape(), PartialShape({2}));
}

TEST_F(GradientTest, OfGatheringTuplesIsRowsOrDense) {
  const Output handle = Variable({10, 3});
  const auto gather = [&](const Shape& shape, const std::vector<int32_t>& tuples) {
    return Call("ResourceGatherNd", {handle, Constant(b_, Tensor::Of<int32_t>(shape, tuples))},
                {{"dtype", DType::kFloat}});
  };
  EXPECT_TRUE(Of(gather({2, 1}, {3, 4}), handle).sparse());
  EXPECT_FALSE(Of(gather({2, 2}, {3, 1, 4, 0}), handle).sparse());
}

TEST_F(GradientTest, StopsAtAssignments) {
  const Output handle = Variable({2});
  const Output read = Call("ReadVariableOp", {handle}, {{"dtype", DType::kFloat}});
  const Output other = Variable({2});
  CallN("AssignVariableOp", {other, read});
  EXPECT_TRUE(Of(Call("ReadVariableOp", {other}, {{"dtype", DType::kFloat}}), handle).none());
}

}  // namespace
}  // namespace penstock

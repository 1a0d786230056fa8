// SPDX-License-Identifier: Apache-2.0
//
// Tests the pass "simplify" in sessions: which nodes it removes, which it must keep, and that the
// results keep their bits.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "client/control_flow.h"
#include "client/program.h"
#include "client/session.h"
#include "client/variable.h"
#include "core/op/gradient.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

class SimplifyTest : public testing::Test {
 protected:
  Output Fed(DType dtype) {
    return CallIn(program_, "Placeholder", {}, {{"dtype", dtype}, {"shape", PartialShape()}});
  }
  // A step may feed tensors of any shape, so only this op makes a shape known.
  static Output WithShape(Output fed, const PartialShape& shape) {
    return Call("EnsureShape", {fed}, {{"shape", shape}});
  }
  Output Scalar(float value) { return Constant(program_, Tensor::Scalar<float>(value)); }
  Output Ints(const std::vector<int32_t>& values) {
    return Constant(program_, Tensor::Vector<int32_t>(values));
  }

  // Runs a step that fetches `y` and computes a function of it, with and without the pass. Expects
  // the same bits. Returns the number of nodes of the op `op` in the step with the pass.
  int Left(const std::string& op, Output y, const std::vector<Feed>& feeds) {
    const Output fetch = Call(y.dtype() == DType::kBool ? "LogicalNot" : "Abs", {y});
    RunMetadata metadata;
    std::vector<Tensor> results;
    for (const bool simplify : {false, true}) {
      SessionOptions options;
      options.disabled_passes = {"fuse"};
      if (!simplify) options.disabled_passes.emplace_back("simplify");
      auto session = Session::New(program_, "", options);
      CHECK_OK(session.status());
      metadata = {};
      const auto outputs =
          (*session)->Run(feeds, {y, fetch}, {}, {.partition_graphs = true}, &metadata);
      EXPECT_TRUE(outputs.ok()) << outputs.status();
      if (!outputs.ok()) return -1;
      results.push_back((*outputs)[0]);
    }
    EXPECT_EQ(results[0].shape(), results[1].shape());
    EXPECT_EQ(results[0].dtype(), results[1].dtype());
    EXPECT_EQ(std::memcmp(results[0].raw_data(), results[1].raw_data(), results[0].bytes()), 0);
    int count = 0;
    for (const auto& [device, graph] : metadata.partition_graphs) {
      for (const Node* node : graph.nodes()) count += node->op_name() == op;
    }
    return count;
  }
  int Left(const std::string& op, Output y) { return Left(op, y, {{fed_, Value()}}); }

  static Tensor Value() {
    constexpr float kInf = std::numeric_limits<float>::infinity();
    Tensor value(DType::kFloat, Shape({2, 3}));
    const float numbers[] = {-0.0f, 0.0f, -kInf, std::nanf("7"), 1e-42f, -3.25f};
    std::copy(std::begin(numbers), std::end(numbers), value.mutable_flat<float>().begin());
    return value;
  }

  Program program_;
  Output fed_ = Fed(DType::kFloat);
  Output x_ = WithShape(fed_, Shape({2, 3}));
};

TEST_F(SimplifyTest, RemovesNeutralOperands) {
  EXPECT_EQ(Left("Mul", Call("Mul", {x_, Scalar(1)})), 0);
  EXPECT_EQ(Left("Mul", Call("Mul", {Scalar(1), x_})), 0);
  EXPECT_EQ(Left("RealDiv", Call("RealDiv", {x_, Scalar(1)})), 0);
  EXPECT_EQ(Left("Sub", Call("Sub", {x_, Scalar(0)})), 0);
  EXPECT_EQ(Left("AddV2", Call("AddV2", {x_, Scalar(-0.0f)})), 0);
}

// These would change zeros, NaN, or the shape.
TEST_F(SimplifyTest, KeepsOperandsThatAreNotNeutral) {
  EXPECT_EQ(Left("AddV2", Call("AddV2", {x_, Scalar(0)})), 1);
  EXPECT_EQ(Left("Sub", Call("Sub", {x_, Scalar(-0.0f)})), 1);
  EXPECT_EQ(Left("Sub", Call("Sub", {Scalar(0), x_})), 1);
  EXPECT_EQ(Left("RealDiv", Call("RealDiv", {Scalar(1), x_})), 1);
  EXPECT_EQ(Left("Mul", Call("Mul", {x_, Scalar(2)})), 1);
  const Output ones = Constant(program_, Tensor::Vector<float>({1, 1, 1}));
  const Output row = Fed(DType::kFloat);
  EXPECT_EQ(Left("Mul", Call("Mul", {WithShape(row, Shape({1})), ones}),
                 {{row, Tensor::Vector<float>({2})}}),
            1);
  EXPECT_EQ(Left("Pow", Call("Pow", {x_, Scalar(1)})), 1);
}

TEST_F(SimplifyTest, KnowsIntegersAndTruthValues) {
  const Output n = Fed(DType::kInt32);
  const Feed feed = {n, Tensor::Vector<int32_t>({1, -2, 3})};
  const Output zero = Constant(program_, Tensor::Scalar<int32_t>(0));
  EXPECT_EQ(Left("AddV2", Call("AddV2", {zero, n}), {feed}), 0);
  const Output yes = Constant(program_, Tensor::Scalar<bool>(true));
  const Output b = Fed(DType::kBool);
  const Feed bools = {b, Tensor::Vector<bool>({true, false})};
  EXPECT_EQ(Left("LogicalAnd", Call("LogicalAnd", {b, yes}), {bools}), 0);
  EXPECT_EQ(Left("LogicalOr", Call("LogicalOr", {b, yes}), {bools}), 1);
}

TEST_F(SimplifyTest, RemovesPairs) {
  EXPECT_EQ(Left("Neg", Call("Neg", {Call("Neg", {x_})})), 0);
  EXPECT_EQ(Left("Neg", Call("Neg", {Call("Neg", {Call("Neg", {x_})})})), 1);
  const auto transposed = [&](Output y, const std::vector<int32_t>& order) {
    return Call("Transpose", {y, Ints(order)});
  };
  EXPECT_EQ(Left("Transpose", transposed(transposed(x_, {1, 0}), {1, 0})), 0);
  EXPECT_EQ(Left("Transpose", transposed(x_, {0, 1})), 0);
  const Output fed = Fed(DType::kFloat), y = WithShape(fed, Shape({1, 2, 3}));
  const Feed feed = {fed, Tensor(DType::kFloat, Shape({1, 2, 3}))};
  EXPECT_EQ(Left("Transpose", transposed(transposed(y, {1, 2, 0}), {2, 0, 1}), {feed}), 0);
  EXPECT_EQ(Left("Transpose", transposed(transposed(y, {1, 2, 0}), {1, 2, 0}), {feed}), 2);
}

TEST_F(SimplifyTest, RemovesWhatKeepsTheShape) {
  EXPECT_EQ(Left("Reshape", Call("Reshape", {x_, Ints({2, -1})})), 0);
  EXPECT_EQ(Left("Reshape", Call("Reshape", {Call("Reshape", {x_, Ints({6})}), Ints({2, 3})})), 0);
  EXPECT_EQ(Left("Reshape", Call("Reshape", {Call("Reshape", {x_, Ints({6})}), Ints({3, 2})})), 1);
  const Output zero = Constant(program_, Tensor::Scalar<int32_t>(0));
  EXPECT_EQ(Left("Squeeze", Call("Squeeze", {Call("ExpandDims", {x_, zero})},
                                 {{"squeeze_dims", std::vector<int64_t>{0}}})),
            0);
  EXPECT_EQ(Left("Tile", Call("Tile", {x_, Ints({1, 1})})), 0);
  EXPECT_EQ(Left("Tile", Call("Tile", {x_, Ints({1, 2})})), 1);
  EXPECT_EQ(Left("Slice", Call("Slice", {x_, Ints({0, 0}), Ints({-1, 3})})), 0);
  EXPECT_EQ(Left("Slice", Call("Slice", {x_, Ints({0, 1}), Ints({-1, 2})})), 1);
  EXPECT_EQ(Left("Cast", Cast(x_, DType::kFloat)), 0);
  EXPECT_EQ(Left("AddN", Call("AddN", {Outputs{x_}})), 0);
}

TEST_F(SimplifyTest, StridesMustBeOne) {
  const auto slice = [&](int32_t stride, int64_t shrink) {
    return Call(
        "StridedSlice", {x_, Ints({0, 0}), Ints({0, 0}), Ints({stride, 1})},
        {{"begin_mask", int64_t{3}}, {"end_mask", int64_t{3}}, {"shrink_axis_mask", shrink}});
  };
  EXPECT_EQ(Left("StridedSlice", slice(1, 0)), 0);
  EXPECT_EQ(Left("StridedSlice", slice(-1, 0)), 1);
  EXPECT_EQ(Left("StridedSlice", slice(1, 1)), 1);
}

// A step may feed a batch of any size.
TEST_F(SimplifyTest, UnknownShapes) {
  const Output y = WithShape(fed_, PartialShape({-1, 3}));
  EXPECT_EQ(Left("Reshape", Call("Reshape", {y, Ints({-1, 3})}), {{fed_, Value()}}), 0);
  // Fails for other batches, so it must run.
  EXPECT_EQ(Left("Reshape", Call("Reshape", {y, Ints({2, 3})}), {{fed_, Value()}}), 1);
  EXPECT_EQ(Left("Slice", Call("Slice", {y, Ints({0, 0}), Ints({-1, 3})}), {{fed_, Value()}}), 1);
  const Output any = Fed(DType::kFloat);
  EXPECT_EQ(Left("Mul", Call("Mul", {any, Scalar(1)}), {{any, Value()}}), 0);
  const Output ones = Constant(program_, Tensor::Vector<float>({1}));
  EXPECT_EQ(Left("Mul", Call("Mul", {any, ones}), {{any, Value()}}), 1);
}

TEST_F(SimplifyTest, KeepsNodesThatWait) {
  Output y;
  {
    const auto after = program_.ControlDependencies({Call("Abs", {x_})});
    y = Call("Mul", {x_, Scalar(1)});
  }
  EXPECT_EQ(Left("Mul", y), 1);
}

TEST_F(SimplifyTest, IdentityOfIdentity) {
  const Output once = Call("Identity", {Call("Tanh", {x_})});
  EXPECT_EQ(Left("Identity", Call("Identity", {Call("Identity", {once})})), 1);
}

// `copy` holds the value before the update. The view of the variable, which a later pass reads
// again after the update, must not take its place.
TEST_F(SimplifyTest, KeepsACopyOfAVariable) {
  Variable v(program_, "v", {2}, Zeros(), {.ref = true});
  const Output view = Call("Identity", {Call("Identity", {v.handle()})});
  const Output copy = Call("Mul", {view, Scalar(1)});
  Output update, sum;
  {
    const auto after = program_.ControlDependencies({copy});
    update = v.AssignAdd(Constant(program_, Tensor::Vector<float>({1, 1})));
  }
  {
    const auto after = program_.ControlDependencies({update});
    sum = Call("AddV2", {copy, Scalar(5)});
  }
  for (const bool simplify : {false, true}) {
    SessionOptions options;
    if (!simplify) options.disabled_passes = {"simplify"};
    auto session = Session::New(program_, "", options);
    ASSERT_TRUE(session.ok()) << session.status();
    ASSERT_TRUE((*session)->Execute(v.initializer()).ok());
    const auto outputs = (*session)->Run({}, {sum});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    EXPECT_EQ((*outputs)[0].flat<float>()[0], 5) << simplify;
  }
}

// The output's shape is known, but the kernel refuses the arguments.
TEST_F(SimplifyTest, KeepsSlicesThatFail) {
  const Output begin = WithShape(Fed(DType::kInt32), Shape({2}));
  const std::vector<Feed> feeds = {{fed_, Value()},
                                   {"Placeholder_1:0", Tensor::Vector<int32_t>({1, 0})}};
  for (const Output& from : {Ints({1, 0}), begin}) {
    const Output y = Call("Abs", {Call("Slice", {x_, from, Ints({2, 3})})});
    for (const bool simplify : {false, true}) {
      SessionOptions options;
      if (!simplify) options.disabled_passes = {"simplify"};
      auto session = Session::New(program_, "", options);
      ASSERT_TRUE(session.ok()) << session.status();
      EXPECT_EQ((*session)->Run(feeds, {y}).status().code(), StatusCode::kInvalidArgument);
    }
  }
}

// A constant that waits may also be on an untaken branch.
TEST_F(SimplifyTest, KeepsNodesWhoseArgumentsWait) {
  const auto late = [&](const std::vector<int32_t>& values) {
    const auto after = program_.ControlDependencies({Call("Abs", {x_})});
    return Ints(values);
  };
  EXPECT_EQ(Left("Reshape", Call("Reshape", {x_, late({2, 3})})), 1);
  EXPECT_EQ(Left("Reshape", Call("Reshape", {Call("Reshape", {x_, Ints({6})}), late({3, 2})})), 2);
  EXPECT_EQ(Left("Reshape", Call("Reshape", {Call("Reshape", {x_, late({6})}), Ints({3, 2})})), 2);
  EXPECT_EQ(Left("Reshape", Call("Reshape", {Call("Reshape", {x_, late({6})}), Ints({2, 3})})), 2);
  EXPECT_EQ(Left("BroadcastTo", Call("BroadcastTo", {x_, late({2, 3})})), 1);
  EXPECT_EQ(Left("Tile", Call("Tile", {x_, late({1, 1})})), 1);
  EXPECT_EQ(Left("Slice", Call("Slice", {x_, late({0, 0}), Ints({2, 3})})), 1);
  EXPECT_EQ(Left("BroadcastTo", Call("BroadcastTo", {x_, Ints({2, 3})})), 0);
}

// A value of an untaken branch is dead, and so is each node that needs it.
TEST_F(SimplifyTest, KeepsBranches) {
  const Output taken = Fed(DType::kBool);
  const Output y = Cond(
      program_, taken,
      [&] {
        return Outputs{Call("Reshape", {x_, Ints({2, 3})})};
      },
      [&] {
        return Outputs{Call("Mul", {x_, Scalar(1)})};
      })[0];
  for (const bool take : {false, true}) {
    EXPECT_GE(Left("Merge", y, {{fed_, Value()}, {taken, Tensor::Scalar<bool>(take)}}), 1);
  }
}

// Kernels of 16-bit floats may change the payload of a NaN.
TEST_F(SimplifyTest, KeepsPairsOfSmallFloats) {
  const Output n = Fed(DType::kHalf);
  Tensor value(DType::kHalf, Shape({2}));
  value.mutable_flat<half>()[0] = half(1.5f);
  value.mutable_flat<half>()[1] = half(-0.0f);
  EXPECT_EQ(Left("Neg", Call("Neg", {Call("Neg", {n})}), {{n, value}}), 2);
}

TEST_F(SimplifyTest, KeepsColocationTargets) {
  const Output one = Call("Mul", {x_, Scalar(1)}, {}, "beside");
  const std::vector<std::string> group = {"loc:@beside"};
  EXPECT_EQ(Left("Mul", Call("Tanh", {one}, {{"_class", group}})), 1);
}

}  // namespace
}  // namespace penstock::client

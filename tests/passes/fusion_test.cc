// SPDX-License-Identifier: Apache-2.0
//
// Tests the pass "fuse" in sessions: steps have the same bits with and without it, and it keeps the
// nodes that it must keep.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "client/program.h"
#include "client/session.h"
#include "core/op/block_kernel.h"
#include "core/op/gradient.h"
#include "distributed/testing/test_cluster.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

Output Placeholder(Program& program, DType dtype, const PartialShape& shape) {
  return CallIn(program, "Placeholder", {}, {{"dtype", dtype}, {"shape", shape}});
}

std::unique_ptr<Session> MakeSession(const Program& program, bool fuse) {
  SessionOptions options;
  if (!fuse) options.disabled_passes = {"fuse"};
  auto session = Session::New(program, "", options);
  CHECK_OK(session.status());
  return *std::move(session);
}

// Returns the names of the nodes in each _Fused node of a step.
std::vector<std::vector<std::string>> FusedNodes(const RunMetadata& metadata) {
  std::vector<std::vector<std::string>> fused;
  for (const auto& [device, graph] : metadata.partition_graphs) {
    for (const Node* node : graph.nodes()) {
      if (node->op_name() != kFusedOp) continue;
      fused.push_back(*node->attr<std::vector<std::string>>(kFusedNodes));
    }
  }
  return fused;
}

StatusOr<std::vector<Tensor>> RunStep(const Program& program, const std::vector<Feed>& feeds,
                                      const std::vector<TensorRef>& fetches, bool fuse,
                                      std::vector<std::vector<std::string>>* fused,
                                      const std::vector<TensorRef>& targets = {}) {
  RunMetadata metadata;
  auto outputs = MakeSession(program, fuse)
                     ->Run(feeds, fetches, targets, {.partition_graphs = true}, &metadata);
  *fused = FusedNodes(metadata);
  return outputs;
}

// A random tree of elementwise nodes over feeds that broadcast to one shape.
class RandomTree {
 public:
  explicit RandomTree(uint32_t seed) : random_(seed) {
    static const std::vector<std::vector<int64_t>> kShapes = {
        {},     {1},        {7},       {3, 5},   {2, 3, 4}, {33, 130},
        {5003}, {70, 1000}, {3, 9000}, {600, 3}, {0, 3}};
    dtype_ = Below(3) == 0 ? DType::kDouble : DType::kFloat;
    const std::vector<int64_t>& dims = kShapes[seed % kShapes.size()];
    shape_ = Shape(dims);
    values_ = {Feed(dims), Feed(dims)};
    if (!dims.empty()) {
      row_ = Feed({dims.back()});
      std::vector<int64_t> column = dims;
      column.back() = 1;
      columns_ = Feed(column);
    }
    scalar_ = Feed({});
    const int size = 4 + Below(12);
    for (int i = 0; i < size; ++i) values_.push_back(Next());
    fetches_ = {values_.back(), values_[values_.size() - 2]};
    CHECK_OK(program_.status());
  }

  const Program& program() const { return program_; }
  const std::vector<penstock::client::Feed>& feeds() const { return feeds_; }
  std::vector<TensorRef> fetches() const { return {fetches_[0], fetches_[1]}; }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }

  Output Feed(const std::vector<int64_t>& dims) {
    // The compiler knows some dimensions only when the step runs.
    PartialShape known{Shape(dims)};
    if (!dims.empty() && dims[0] > 1 && dims.size() > 1 && Below(3) == 0) known.set_dim(0, -1);
    const Output fed = Placeholder(program_, dtype_, known);
    Tensor value(dtype_, Shape(dims));
    for (int64_t i = 0; i < value.num_elements(); ++i) {
      const double x = (static_cast<double>(random_() % 20001) - 10000) / 3000;
      if (dtype_ == DType::kFloat) {
        value.mutable_data<float>()[i] = static_cast<float>(x);
      } else {
        value.mutable_data<double>()[i] = x;
      }
    }
    feeds_.push_back({fed, value});
    return fed;
  }

  Output Any() { return values_[values_.size() - 1 - Below(std::min<int>(4, values_.size()))]; }
  Output Operand() {
    const int which = Below(8);
    if (which == 0) return scalar_;
    if (which == 1 && row_.sink != nullptr) return row_;
    if (which == 2 && columns_.sink != nullptr) return columns_;
    return Any();
  }

  Output Next() {
    static constexpr const char* kUnary[] = {"Neg",      "Relu",    "Square", "Tanh",
                                             "Exp",      "Sigmoid", "Sign",   "Elu",
                                             "Softplus", "Erf",     "Sin",    "LeakyRelu"};
    static constexpr const char* kBinary[] = {
        "AddV2", "Mul", "Sub", "Maximum", "RealDiv", "Minimum", "SquaredDifference", "Atan2"};
    static constexpr const char* kGradients[] = {"ReluGrad", "TanhGrad", "SigmoidGrad", "EluGrad",
                                                 "LeakyReluGrad"};
    switch (Below(12)) {
      case 0:
      case 1:
      case 2:
        return Call(kUnary[Below(12)], {Any()});
      case 3:
      case 4:
      case 5:
        return Call(kBinary[Below(8)], {Any(), Operand()});
      case 6:
        return Call(kBinary[Below(8)], {Operand(), Any()});
      case 7:
        return Call(kGradients[Below(5)], {Any(), Any()});
      case 8:
        return Call("AddN", {Outputs{Any(), Any(), Any()}});
      case 9:
        return Call("SelectV2", {Call("Greater", {Any(), Operand()}), Operand(), Any()});
      case 10: {
        const DType other = dtype_ == DType::kFloat ? DType::kDouble : DType::kFloat;
        return Cast(Cast(Any(), Below(2) == 0 ? other : DType::kHalf), dtype_);
      }
      default:
        if (shape_.rank() >= 2 && Below(2) == 0) return Call("BiasAdd", {Any(), row_});
        return Call("Pow", {Call("Abs", {Any()}), Operand()});
    }
  }

  std::mt19937 random_;
  Program program_;
  DType dtype_ = DType::kFloat;
  Shape shape_;
  std::vector<Output> values_;
  Output row_, columns_, scalar_;
  std::vector<penstock::client::Feed> feeds_;
  std::vector<Output> fetches_;
};

TEST(FusionTest, FusedStepsHaveTheSameBits) {
  int fused_nodes = 0;
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    const RandomTree tree(seed);
    std::vector<std::vector<std::string>> fused, none;
    const auto with = RunStep(tree.program(), tree.feeds(), tree.fetches(), true, &fused);
    const auto without = RunStep(tree.program(), tree.feeds(), tree.fetches(), false, &none);
    ASSERT_TRUE(with.ok()) << with.status();
    ASSERT_TRUE(without.ok()) << without.status();
    EXPECT_TRUE(none.empty());
    for (const auto& nodes : fused) fused_nodes += static_cast<int>(nodes.size());
    for (size_t i = 0; i < with->size(); ++i) {
      const Tensor &a = (*with)[i], &b = (*without)[i];
      ASSERT_EQ(a.shape(), b.shape());
      ASSERT_EQ(a.dtype(), b.dtype());
      ASSERT_EQ(std::memcmp(a.raw_data(), b.raw_data(), a.bytes()), 0);
    }
  }
  EXPECT_GT(fused_nodes, 300);
}

// A program for tests of which nodes are fused: x is fed with four floats.
class RefusalTest : public testing::Test {
 protected:
  using Names = std::vector<std::string>;

  std::vector<Names> Fused(const std::vector<TensorRef>& fetches,
                           const std::vector<TensorRef>& targets = {}) {
    std::vector<Names> fused;
    const auto outputs = RunStep(program_, {{x_, Tensor::Vector<float>({1, 2, 3, 4})}}, fetches,
                                 true, &fused, targets);
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    return fused;
  }
  Output Named(const char* name, const char* op, const std::vector<NodeInput>& inputs) {
    return Call(op, inputs, {}, name);
  }

  Program program_;
  Output x_ = Placeholder(program_, DType::kFloat, Shape({4}));
};

TEST_F(RefusalTest, FusesAChain) {
  const Output a = Named("a", "Tanh", {x_});
  const Output b = Named("b", "Mul", {a, a});
  const Output c = Named("c", "AddV2", {b, x_});
  EXPECT_EQ(Fused({c}), (std::vector<Names>{{"a", "b", "c"}}));
}

TEST_F(RefusalTest, KeepsFetchedNodesAndTargets) {
  const Output a = Named("a", "Tanh", {x_});
  const Output b = Named("b", "Exp", {a});
  const Output c = Named("c", "Neg", {b});
  EXPECT_EQ(Fused({c, a}), (std::vector<Names>{{"b", "c"}}));
  EXPECT_EQ(Fused({c}, {b}), std::vector<Names>());
}

TEST_F(RefusalTest, KeepsANodeThatTwoTreesNeed) {
  const Output a = Named("a", "Tanh", {x_});
  const Output b = Named("b", "Exp", {a});
  const Output c = Named("c", "Neg", {a});
  const Output sum = Call("Sum", {c, Constant(program_, Tensor::Scalar<int32_t>(0))});
  EXPECT_EQ(Fused({b, sum}), std::vector<Names>());
}

TEST_F(RefusalTest, KeepsNodesForWhichOthersWait) {
  const Output a = Named("a", "Tanh", {x_});
  const Output b = Named("b", "Exp", {a});
  const auto after = program_.ControlDependencies({a});
  const Output noop = Named("late", "Neg", {x_});
  EXPECT_EQ(Fused({b, noop}), std::vector<Names>());
}

// The fused node waits for what its nodes wait for.
TEST_F(RefusalTest, KeepsControlInputs) {
  Variable v(program_, "v", {4}, Zeros());
  const Output set = v.AssignAdd(x_);
  Output a, b;
  {
    const auto after = program_.ControlDependencies({set});
    a = Named("a", "Tanh", {x_});
  }
  b = Named("b", "Exp", {a});
  RunMetadata metadata;
  auto session = MakeSession(program_, true);
  ASSERT_TRUE(session->Execute(v.initializer()).ok());
  const auto outputs = session->Run({{x_, Tensor::Vector<float>({1, 2, 3, 4})}}, {b}, {},
                                    {.partition_graphs = true}, &metadata);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ(FusedNodes(metadata), (std::vector<Names>{{"a", "b"}}));
  EXPECT_EQ(session->Fetch(v)->flat<float>()[3], 4);
}

TEST_F(RefusalTest, KeepsNodesOfOtherShapes) {
  const Output row = Placeholder(program_, DType::kFloat, Shape({3, 1}));
  const Output a = Named("a", "Tanh", {x_});
  const Output b = Named("b", "AddV2", {a, row});
  std::vector<Names> fused;
  const auto outputs = RunStep(
      program_,
      {{x_, Tensor::Vector<float>({1, 2, 3, 4})}, {row, Tensor(DType::kFloat, Shape({3, 1}))}}, {b},
      true, &fused);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_TRUE(fused.empty());
}

// If the shapes of a step do not fit, the error names the node of the program.
TEST_F(RefusalTest, ErrorsNameTheNode) {
  const Output y = Placeholder(program_, DType::kFloat, PartialShape({-1, 2}));
  const Output z = Placeholder(program_, DType::kFloat, PartialShape({-1, 2}));
  const Output a = Named("a", "Tanh", {y});
  const Output b = Named("wrong", "AddV2", {a, z});
  const Output c = Named("c", "Neg", {b});
  std::vector<Names> fused;
  const std::vector<Feed> feeds = {{y, Tensor(DType::kFloat, Shape({3, 2}))},
                                   {z, Tensor(DType::kFloat, Shape({4, 2}))}};
  const auto with = RunStep(program_, feeds, {c}, true, &fused);
  const auto without = RunStep(program_, feeds, {c}, false, &fused);
  EXPECT_EQ(with.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(with.status(), without.status());
  EXPECT_NE(with.status().message().find("wrong"), std::string::npos) << with.status();
}

// A size that the compiler did not know may broadcast: then the nodes run one after the other.
TEST_F(RefusalTest, UnexpectedShapesBroadcast) {
  const Output y = Placeholder(program_, DType::kFloat, PartialShape({-1, 2}));
  const Output z = Placeholder(program_, DType::kFloat, PartialShape({-1, 2}));
  const Output c = Call("Neg", {Call("AddV2", {Call("Tanh", {y}), z})});
  std::vector<Names> fused;
  const auto outputs = RunStep(
      program_,
      {{y, Tensor(DType::kFloat, Shape({1, 2}))}, {z, Tensor(DType::kFloat, Shape({4, 2}))}}, {c},
      true, &fused);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ(fused.size(), 1u);
  EXPECT_EQ((*outputs)[0].shape(), Shape({4, 2}));
}

// The master sends fused nodes to its workers as messages.
TEST_F(RefusalTest, RunsOnATaskOfACluster) {
  const auto device = program_.DeviceScope("/job:ps");
  const Output c = Call("LeakyRelu", {Call("Cast", {Call("Tanh", {x_})}, {{"DstT", DType::kHalf}})},
                        {{"alpha", 0.5f}}, "c");
  TestCluster cluster({{"worker", 1}, {"ps", 1}});
  const std::vector<Feed> feeds = {{x_, Tensor::Vector<float>({1, -2, 3, 4})}};
  auto session = Session::New(program_, cluster.target());
  ASSERT_TRUE(session.ok()) << session.status();
  RunMetadata metadata;
  const auto remote = (*session)->Run(feeds, {c}, {}, {.partition_graphs = true}, &metadata);
  ASSERT_TRUE(remote.ok()) << remote.status();
  EXPECT_EQ(FusedNodes(metadata).size(), 1u);
  const auto values = (*remote)[0].flat<half>();
  EXPECT_EQ(static_cast<float>(values[1]), static_cast<float>(half(std::tanh(-2.0f))) * 0.5f);
}

TEST_F(RefusalTest, StatisticsNameTheNodes) {
  const Output c = Named("c", "Neg", {Named("b", "Tanh", {x_})});
  RunMetadata metadata;
  const auto outputs =
      MakeSession(program_, true)
          ->Run({{x_, Tensor::Vector<float>({1, 2, 3, 4})}}, {c}, {}, {.trace = true}, &metadata);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  std::vector<std::string> ops;
  for (const DeviceStats& device : metadata.step_stats) {
    for (const NodeStats& node : device.nodes) ops.push_back(node.op);
  }
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "_Fused[b c]"), 1);
}

}  // namespace
}  // namespace penstock::client

// SPDX-License-Identifier: Apache-2.0
//
// Tests the pass "fuse" in sessions: steps have the same bits with and without it, and it keeps the
// nodes that it must keep.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "client/control_flow.h"
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

TEST_F(RefusalTest, StatisticsShortenTheNames) {
  Output y = x_;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) y = Named(name, "Tanh", {y});
  RunMetadata metadata;
  const auto outputs =
      MakeSession(program_, true)
          ->Run({{x_, Tensor::Vector<float>({1, 2, 3, 4})}}, {y}, {}, {.trace = true}, &metadata);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  int found = 0;
  for (const DeviceStats& device : metadata.step_stats) {
    for (const NodeStats& node : device.nodes) found += node.op == "_Fused[a b c d and 2 more]";
  }
  EXPECT_EQ(found, 1);
}

// One node would need all operands at once.
TEST_F(RefusalTest, KeepsSumsThatNeedMoreMemory) {
  Output sum = Call("Cumsum", {x_, Constant(program_, Tensor::Scalar<int32_t>(0))});
  for (int i = 1; i < 6; ++i) {
    const Output roll = Constant(program_, Tensor::Scalar<int32_t>(i));
    const Output zero = Constant(program_, Tensor::Scalar<int32_t>(0));
    sum = Call("AddV2", {sum, Call("Roll", {x_, roll, zero})}, {}, StrCat("sum", i));
  }
  EXPECT_EQ(Fused({sum}), std::vector<Names>());
  // Fed tensors exist anyway.
  const Output a = Named("a", "AddV2", {sum, x_});
  EXPECT_EQ(Fused({Named("b", "Relu", {a})}), (std::vector<Names>{{"sum5", "a", "b"}}));
}

TEST_F(RefusalTest, FusesGelu) {
  const auto scalar = [&](float value) { return Constant(program_, Tensor::Scalar<float>(value)); };
  const Output cube = Call("Mul", {Call("Mul", {x_, x_}), x_});
  const Output inner = Call("AddV2", {x_, Call("Mul", {cube, scalar(0.044715f)})});
  const Output gate =
      Call("AddV2", {Call("Tanh", {Call("Mul", {inner, scalar(0.79788f)})}), scalar(1)});
  const Output y = Call("Mul", {Call("Mul", {x_, scalar(0.5f)}), gate});
  const auto fused = Fused({y});
  ASSERT_EQ(fused.size(), 1u);
  EXPECT_EQ(fused[0].size(), 9u);
}

// The terms of Adam's update. No node of the tree may join it alone, but all together need only two
// large inputs.
TEST_F(RefusalTest, FusesAdam) {
  const auto scalar = [&](float value) { return Constant(program_, Tensor::Scalar<float>(value)); };
  const auto times = [&](float factor, Output y) { return Call("Mul", {scalar(factor), y}); };
  const Output zero = Constant(program_, Tensor::Scalar<int32_t>(0));
  const Output y = Call("Cumsum", {x_, zero});
  const Output m = Call("AddV2", {times(0.9f, x_), times(0.1f, y)});
  const Output v =
      Call("AddV2", {Call("Mul", {times(0.999f, x_), x_}), times(0.001f, Call("Square", {y}))});
  const Output root = Call("AddV2", {Call("Sqrt", {v}), scalar(1e-7f)});
  const auto fused = Fused({Call("Sub", {x_, Call("RealDiv", {times(0.01f, m), root})})});
  ASSERT_EQ(fused.size(), 1u);
  EXPECT_EQ(fused[0].size(), 13u);
}

// Blocks need an operand of the output's shape.
TEST_F(RefusalTest, KeepsOuterProducts) {
  const Output column = Call("Reshape", {x_, Constant(program_, Tensor::Vector<int32_t>({4, 1}))});
  const Output row = Call("Reshape", {x_, Constant(program_, Tensor::Vector<int32_t>({1, 4}))});
  EXPECT_EQ(Fused({Call("Neg", {Call("Mul", {column, row})})}), std::vector<Names>());
}

// The condition of Select chooses rows, which blocks do not support.
TEST_F(RefusalTest, KeepsSelectOfRows) {
  const Output y = Placeholder(program_, DType::kFloat, PartialShape({-1, -1}));
  const Output rows = Placeholder(program_, DType::kBool, PartialShape({-1}));
  const Output z = Named("z", "Neg", {Named("t", "Tanh", {y})});
  const Output chosen = Call("Select", {rows, z, y});
  std::vector<Names> fused;
  const auto outputs = RunStep(
      program_,
      {{y, Tensor(DType::kFloat, Shape({2, 2}))}, {rows, Tensor::Vector<bool>({true, false})}},
      {Call("Exp", {chosen})}, true, &fused);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ(fused, (std::vector<Names>{{"t", "z"}}));
}

TEST_F(RefusalTest, KeepsComplexNumbers) {
  const Output c = Call("Complex", {x_, x_}, {{"Tout", DType::kComplex64}});
  EXPECT_EQ(Fused({Call("Mul", {Call("Mul", {c, c}), c})}), std::vector<Names>());
}

// The compiler must be able to recompute nodes, and to measure them.
TEST_F(RefusalTest, MemoryLimitAndAutomaticPlacement) {
  const Output c = Named("c", "Neg", {Named("b", "Tanh", {x_})});
  SessionOptions limited, automatic;
  limited.memory_limit = 1 << 30;
  automatic.placement = "auto";
  for (const SessionOptions& options : {limited, automatic}) {
    auto session = Session::New(program_, "", options);
    ASSERT_TRUE(session.ok()) << session.status();
    RunMetadata metadata;
    const auto outputs = (*session)->Run({{x_, Tensor::Vector<float>({1, 2, 3, 4})}}, {c}, {},
                                         {.partition_graphs = true}, &metadata);
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    EXPECT_TRUE(FusedNodes(metadata).empty());
  }
}

// Each step computes `y` for the feeds, with and without the pass; the bits are the same.
class FusedValuesTest : public testing::Test {
 protected:
  // Returns the number of _Fused nodes.
  int Compare(Output y, const std::vector<Feed>& feeds) {
    std::vector<std::vector<std::string>> fused, none;
    const auto with = RunStep(program_, feeds, {y}, true, &fused);
    const auto without = RunStep(program_, feeds, {y}, false, &none);
    EXPECT_TRUE(with.ok()) << with.status();
    EXPECT_TRUE(without.ok()) << without.status();
    if (with.ok() && without.ok()) ExpectSameBits((*with)[0], (*without)[0]);
    return static_cast<int>(fused.size());
  }
  static void ExpectSameBits(const Tensor& a, const Tensor& b) {
    EXPECT_EQ(a.dtype(), b.dtype());
    ASSERT_EQ(a.shape(), b.shape());
    EXPECT_EQ(std::memcmp(a.raw_data(), b.raw_data(), a.bytes()), 0);
  }
  // Returns a tensor of 37 elements, which are those of `values` again and again.
  template <class T>
  static Tensor Repeated(DType dtype, const std::vector<T>& values) {
    Tensor tensor(dtype, Shape({37}));
    for (size_t i = 0; i < 37; ++i) tensor.mutable_flat<T>()[i] = values[i % values.size()];
    return tensor;
  }
  static Tensor Floats() {
    constexpr float kInf = std::numeric_limits<float>::infinity();
    return Repeated<float>(DType::kFloat, {0.0f, -0.0f, kInf, -kInf, std::nanf("7"), 1e-42f, -3.25f,
                                           std::numeric_limits<float>::max(), 0.7f, 88.9f});
  }

  Program program_;
};

TEST_F(FusedValuesTest, SpecialFloats) {
  const Output x = Placeholder(program_, DType::kFloat, Shape({37}));
  const Output least = Constant(program_, Tensor::Scalar<float>(-1.5f));
  const Output most = Constant(program_, Tensor::Scalar<float>(2));
  for (const char* op : {"Neg", "Relu", "Tanh", "Exp", "Sigmoid", "Sqrt", "Sign", "Square", "Log",
                         "Abs", "Floor", "Elu", "Reciprocal"}) {
    SCOPED_TRACE(op);
    EXPECT_EQ(Compare(Call("Mul", {Call(op, {x}), most}), {{x, Floats()}}), 1);
    EXPECT_EQ(Compare(Call("Maximum", {x, Call(op, {x})}), {{x, Floats()}}), 1);
    EXPECT_EQ(Compare(Call("Sub", {Call(op, {x}), x}), {{x, Floats()}}), 1);
  }
  EXPECT_EQ(Compare(Call("ClipByValue", {Call("Neg", {x}), least, most}), {{x, Floats()}}), 1);
  const Output negative = Call("Less", {Call("Neg", {x}), least});
  EXPECT_EQ(Compare(Call("LogicalNot", {negative}), {{x, Floats()}}), 1);
  EXPECT_EQ(Compare(Call("SelectV2", {negative, x, least}), {{x, Floats()}}), 1);
  const Output clipped = Call("ClipByValue", {Call("Sign", {x}), least, most});
  const Output whole = Call("SelectV2", {Call("Equal", {x, x}), clipped, least});  // no NaN
  EXPECT_EQ(Compare(Cast(Cast(whole, DType::kInt32), DType::kInt8), {{x, Floats()}}), 1);
}

TEST_F(FusedValuesTest, IntegersOverflow) {
  const Output x = Placeholder(program_, DType::kInt32, Shape({37}));
  constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
  const Feed feed = {x, Repeated<int32_t>(DType::kInt32, {0, 1, -1, kMax, -kMax - 1, 65537})};
  EXPECT_EQ(Compare(Call("AddV2", {Call("Mul", {x, x}), x}), {feed}), 1);
  EXPECT_EQ(Compare(Call("Neg", {Call("Square", {x})}), {feed}), 1);
  EXPECT_EQ(Compare(Call("Greater", {Call("Abs", {x}), x}), {feed}), 1);
}

TEST_F(FusedValuesTest, SmallFloats) {
  for (const DType dtype : {DType::kHalf, DType::kBfloat16}) {
    const Output x = Placeholder(program_, DType::kFloat, Shape({37}));
    const Output all = Constant(program_, Tensor::Vector<int32_t>({0}));
    const Output small = Call("ReverseV2", {Cast(x, dtype), all});
    EXPECT_EQ(Compare(Call("Mul", {Call("Tanh", {small}), small}), {{x, Floats()}}), 1);
    EXPECT_EQ(Compare(Cast(Call("AddV2", {small, small}), DType::kFloat), {{x, Floats()}}), 1);
  }
}

// The sum may be written to the memory of `a` or `b`, which the fused node alone uses.
TEST_F(FusedValuesTest, SumsInTheMemoryOfAnInput) {
  const Output x = Placeholder(program_, DType::kFloat, Shape({37}));
  const Output zero = Constant(program_, Tensor::Scalar<int32_t>(0));
  const Output a = Call("Cumsum", {x, zero});
  const Output b = Call("Cumsum", {x, zero}, {{"reverse", true}});
  const Feed feed = {x, Repeated<float>(DType::kFloat, {1.5f, -2.25f, 1e-3f})};
  EXPECT_EQ(Compare(Call("AddN", {Outputs{Call("Neg", {a}), a, b, a}}), {feed}), 1);
  EXPECT_EQ(Compare(Call("AddN", {Outputs{a, b, Call("Square", {b})}}), {feed}), 1);
}

TEST_F(FusedValuesTest, LoopsAndBranches) {
  const Output x = Placeholder(program_, DType::kFloat, Shape({37}));
  const Output taken = Placeholder(program_, DType::kBool, Shape({}));
  const Output zero = Constant(program_, Tensor::Scalar<int32_t>(0));
  const Output last = While(
      program_, {zero, x},
      [&](const Outputs& v) {
        return Call("Less", {v[0], Constant(program_, Tensor::Scalar<int32_t>(5))});
      },
      [&](const Outputs& v) {
        const Output one = Constant(program_, Tensor::Scalar<int32_t>(1));
        return Outputs{Call("AddV2", {v[0], one}),
                       Call("Mul", {Call("Tanh", {Call("Neg", {v[1]})}), v[1]})};
      })[1];
  EXPECT_GE(Compare(last, {{x, Floats()}}), 1);
  const Output chosen = Cond(
      program_, taken, [&] { return Outputs{Call("Exp", {Call("Tanh", {x})})}; },
      [&] { return Outputs{Call("Neg", {Call("Square", {x})})}; })[0];
  for (const bool take : {false, true}) {
    EXPECT_EQ(Compare(chosen, {{x, Floats()}, {taken, Tensor::Scalar<bool>(take)}}), 2);
  }
}

// A later step of the same session has a shape that the compiler did not expect.
TEST_F(FusedValuesTest, UnexpectedShapesRunOneByOne) {
  const Output y = Placeholder(program_, DType::kFloat, PartialShape({-1, 2}));
  const Output z = Placeholder(program_, DType::kFloat, PartialShape({-1, 2}));
  const Output t = Call("Tanh", {y});
  const Output c = Call("Neg", {Call("AddV2", {Call("Mul", {t, t}), z})});
  const auto fed = [](int64_t rows) {
    Tensor value(DType::kFloat, Shape({rows, 2}));
    for (int64_t i = 0; i < 2 * rows; ++i) {
      value.mutable_data<float>()[i] = 0.3f * static_cast<float>(i) - 1;
    }
    return value;
  };
  std::vector<Tensor> results[2];
  for (const bool fuse : {false, true}) {
    const auto session = MakeSession(program_, fuse);
    for (const int64_t rows : {4, 1, 4}) {
      RunMetadata metadata;
      const auto outputs = session->Run({{y, fed(rows)}, {z, fed(4)}}, {c}, {},
                                        {.partition_graphs = true}, &metadata);
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      EXPECT_EQ(FusedNodes(metadata).size(), fuse ? 1u : 0u);
      results[fuse].push_back((*outputs)[0]);
    }
  }
  for (size_t i = 0; i < 3; ++i) ExpectSameBits(results[0][i], results[1][i]);
}

}  // namespace
}  // namespace penstock::client

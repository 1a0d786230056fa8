// SPDX-License-Identifier: Apache-2.0
//
// Tests every pass of the compiler on random graphs: the compiled step must have the same results,
// bit for bit, as the uncompiled graph in the plain interpreter.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/base/env.h"
#include "core/base/scheduler.h"
#include "core/compiler/compile.h"
#include "core/graph/builder.h"
#include "core/op/gradient.h"
#include "gtest/gtest.h"
#include "tests/conformance/plain_interpreter.h"

namespace penstock {
namespace {

constexpr char kPs[] = "/job:ps/replica:0/task:0/device:CPU:0";
constexpr char kWorker[] = "/job:worker/replica:0/task:0/device:CPU:0";
constexpr int64_t kRows = 2, kColumns = 3;

// A random graph on tensors of 2 x 3 floats: constants, feeds, rows of a table in a variable,
// branches, duplicates of earlier nodes, and unused nodes.
class RandomGraph {
 public:
  explicit RandomGraph(uint32_t seed) : random_(seed) {
    values_ = {Feed("x"), Feed("y"), Numbers()};
    taken_ = CallIn(g_, "Placeholder", {}, {{"dtype", DType::kBool}, {"shape", PartialShape({})}});
    feeds_.emplace_back(taken_->name(), Tensor::Scalar<bool>(random_() % 2 == 0));
    table_ = CallIn(g_, "VarHandleOp", {},
                    {{"dtype", DType::kFloat},
                     {"shape", PartialShape({4, kColumns})},
                     {"shared_name", "table"}});
    while (values_.size() < 25) Add();
    // The first two values are fed, and so cannot be fetched.
    for (int i = 0; i < 3; ++i) {
      fetches_.push_back(values_[2 + random_() % (values_.size() - 2)].name());
    }
    CHECK_OK(g_.status());
  }

  const Graph& graph() const { return g_.graph(); }
  const std::vector<std::pair<std::string, Tensor>>& feeds() const { return feeds_; }
  const std::vector<std::string>& fetches() const { return fetches_; }
  // Returns a graph that assigns a value to the table.
  static Graph Assignment() {
    GraphBuilder g;
    const Output table = CallIn(g, "VarHandleOp", {},
                                {{"dtype", DType::kFloat},
                                 {"shape", PartialShape({4, kColumns})},
                                 {"shared_name", "table"}});
    Tensor rows(DType::kFloat, Shape({4, kColumns}));
    for (int i = 0; i < 12; ++i) rows.mutable_flat<float>()[i] = static_cast<float>(i) / 7;
    Call("AssignVariableOp", {table, Constant(g, rows)});
    CHECK_OK(g.status());
    return g.graph().Clone();
  }

 private:
  Output Any() { return values_[random_() % values_.size()]; }

  Tensor RandomTensor() {
    Tensor numbers(DType::kFloat, Shape({kRows, kColumns}));
    for (float& x : numbers.mutable_flat<float>()) {
      x = static_cast<float>(random_() % 2000) / 700 - 1;
    }
    return numbers;
  }
  Output Numbers() { return Constant(g_, RandomTensor()); }
  Output Feed(const char* name) {
    const auto scope = g_.NameScope(name);
    const Output fed =
        CallIn(g_, "Placeholder", {},
               {{"dtype", DType::kFloat}, {"shape", PartialShape({kRows, kColumns})}});
    feeds_.emplace_back(fed.name(), RandomTensor());
    return fed;
  }

  void Add() {
    const char* const devices[] = {"", "", "/job:ps", "/job:worker"};
    const auto device = g_.DeviceScope(devices[random_() % 4]);
    const Output made = Next();
    // Some nodes have a control input.
    if (random_() % 6 == 0) {
      g_.mutable_graph().AddControlEdge(g_.NodeOf(Any()), g_.NodeOf(made));
    }
    values_.push_back(made);
    if (random_() % 5 == 0) values_.push_back(Twin(made));
  }

  // Adds a node with the same op and the same inputs as the node of `of`.
  Output Twin(Output of) {
    const Node& node = *g_.NodeOf(of);
    std::vector<Endpoint> inputs = node.inputs();
    Graph& graph = g_.mutable_graph();
    const auto twin = graph.AddNode({.name = graph.UniqueName("twin"),
                                     .op = node.op_name(),
                                     .inputs = std::move(inputs),
                                     .attrs = node.attrs(),
                                     .device = node.requested_device()});
    CHECK_OK(twin.status());
    return g_.OutputOf(*twin, of.index);
  }

  Output Next() {
    static constexpr const char* kUnary[] = {"Neg", "Relu", "Square", "Tanh", "Identity", "Exp"};
    static constexpr const char* kBinary[] = {"AddV2", "Mul", "Sub", "Maximum"};
    switch (random_() % 12) {
      case 0:
        return Numbers();
      case 1:
      case 2:
        return Call(kUnary[random_() % 6], {Any()});
      case 3:
      case 4:
      case 5:
        return Call(kBinary[random_() % 4], {Any(), Any()});
      case 6:
        return Call("AddN", {Outputs{Any(), Any(), Any()}});
      case 7: {  // an op whose value is known from shapes alone
        const char* const shape_op = random_() % 2 == 0 ? "Size" : "Rank";
        return Call("AddV2", {Any(), Cast(Call(shape_op, {Any()}), DType::kFloat)});
      }
      case 8: {
        const Output axis = Constant(g_, Tensor::Scalar<int32_t>(0));
        const Outputs rows = CallN("Split", {axis, Any()}, {{"num_split", kRows}});
        return ConcatV2({rows[1], rows[0]}, axis);
      }
      case 9: {
        const Output square = Call("MatMul", {Any(), Any()}, {{"transpose_a", true}});
        return Call("MatMul", {Any(), square});
      }
      case 10: {
        const Output rows = Call("ReadVariableOp", {*table_}, {{"dtype", DType::kFloat}});
        const Output which =
            Constant(g_, Tensor::Vector<int32_t>({static_cast<int32_t>(random_() % 4), 2}));
        return Call("GatherV2", {rows, which, Constant(g_, Tensor::Scalar<int32_t>(0))});
      }
      default: {
        const Outputs branches = CallN("Switch", {Any(), *taken_});
        const Output no = Call("Neg", {branches[0]});
        const Output yes = Call("Square", {Call("AddV2", {branches[1], Any()})});
        return CallN("Merge", {Outputs{no, yes}})[0];
      }
    }
  }

  std::mt19937 random_;
  GraphBuilder g_;
  std::vector<Output> values_;
  std::optional<Output> table_, taken_;
  std::vector<std::pair<std::string, Tensor>> feeds_;
  std::vector<std::string> fetches_;
};

// The passes that run, and the memory limit.
struct Settings {
  std::string name;
  std::vector<std::string> disabled = {};
  bool any_task = false;
  // Memory limit, as a fraction of the peak memory without a limit; 0: no limit.
  double part_of_memory = 0;
};

class PassesTest : public testing::Test {
 protected:
  static std::vector<Settings> AllSettings() {
    std::vector<std::string> optional;
    for (const Pass& pass : Passes()) {
      if (pass.need == Pass::kOptional) optional.emplace_back(pass.name);
    }
    std::vector<Settings> all = {{"all passes"},
                                 {.name = "no optional pass", .disabled = optional},
                                 {.name = "any task", .any_task = true},
                                 {.name = "little memory", .part_of_memory = 0.9}};
    for (const std::string& only : optional) {
      Settings alone = {.name = StrCat("of the optional passes only ", only)};
      for (const std::string& other : optional) {
        if (other != only) alone.disabled.push_back(other);
      }
      all.push_back(std::move(alone));
    }
    return all;
  }

  StatusOr<std::vector<Partition>> Compile(const RandomGraph& g, const Settings& settings,
                                           int64_t memory_limit) {
    CompileOptions options{.disabled_passes = settings.disabled,
                           .memory_limit = memory_limit,
                           .env = &Env::Real(),
                           .threads = &Scheduler::Real(),
                           .client_device = *DeviceName::Parse(kWorker),
                           .any_task = settings.any_task,
                           .predict = true};
    for (const auto& [name, value] : g.feeds()) {
      options.feeds.push_back(*TensorName::Parse(name));
      options.feed_shapes.emplace_back(value.shape());
    }
    for (const std::string& fetch : g.fetches()) {
      options.fetches.push_back(*TensorName::Parse(fetch));
    }
    int before = 0;
    // From this pass on each graph is one partition, so numbers of nodes cannot be compared with
    // the pass before.
    bool partitioned = false;
    options.dump = [&](string_view pass, const Graph& graph) {
      partitioned |= pass == "partition";
      if (partitioned) return;
      changed_[std::string(pass)] += graph.num_nodes() != before;
      before = graph.num_nodes();
    };
    return penstock::Compile(g.graph(), devices_, options, &report_);
  }

  // Returns the fraction `part` of the peak memory of the step that was compiled last, in bytes: a
  // limit that forces the compiler to change the step.
  int64_t LimitOf(double part) const {
    double peak = 0;
    for (const auto& device : report_.memory.devices) peak = std::max(peak, device.peak_bytes);
    return static_cast<int64_t>(part * peak);
  }

  std::vector<DeviceInfo> devices_ = {{.name = *DeviceName::Parse(kPs), .incarnation = 1},
                                      {.name = *DeviceName::Parse(kWorker), .incarnation = 2}};
  CompileReport report_;
  std::map<std::string, int> changed_;  // by pass: the graphs whose number of nodes it changed
};

TEST_F(PassesTest, ComputeWhatTheGraphSays) {
  int limited = 0;
  for (uint32_t seed = 1; seed <= 150; ++seed) {
    const RandomGraph g(seed);
    PlainInterpreter plain;
    ASSERT_TRUE(plain.Run(RandomGraph::Assignment(), {}, {}).ok());
    const std::map<std::string, Tensor> by_name(g.feeds().begin(), g.feeds().end());
    const auto expected = plain.Run(g.graph(), by_name, g.fetches());
    ASSERT_TRUE(expected.ok()) << expected.status();
    std::vector<Tensor> feeds;
    for (const auto& [name, value] : g.feeds()) feeds.push_back(value);
    for (const Settings& settings : AllSettings()) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << settings.name);
      const int64_t limit = settings.part_of_memory > 0 ? LimitOf(settings.part_of_memory) : 0;
      const auto partitions = Compile(g, settings, limit);
      if (limit > 0 && partitions.status().code() == StatusCode::kResourceExhausted) continue;
      ASSERT_TRUE(partitions.ok()) << partitions.status();
      limited += limit > 0;
      std::vector<const Graph*> graphs;
      for (const Partition& partition : *partitions) graphs.push_back(&partition.graph);
      const auto computed = plain.Run(graphs, feeds, static_cast<int>(g.fetches().size()));
      ASSERT_TRUE(computed.ok()) << computed.status();
      for (size_t i = 0; i < expected->size(); ++i) {
        const Tensor &a = (*expected)[i], &b = (*computed)[i];
        ASSERT_EQ(a.shape(), b.shape());
        EXPECT_EQ(std::memcmp(a.raw_data(), b.raw_data(), a.bytes()), 0) << g.fetches()[i];
      }
    }
  }
  for (const auto& [pass, count] : changed_) std::printf("%s: %d\n", pass.c_str(), count);
  for (const char* pass : {"prune", "fold", "simplify", "merge", "sweep", "gather", "fuse"}) {
    EXPECT_GT(changed_[pass], 0) << pass << " has changed no graph";
  }
  EXPECT_GT(limited, 5) << "steps that were compiled under a limit of memory";
}

}  // namespace
}  // namespace penstock

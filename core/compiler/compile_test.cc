// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/compile.h"

#include <algorithm>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "core/compiler/cost_model.h"
#include "core/op/kernel.h"
#include "core/op/shape_scope.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The ops of these tests: enough of a world to compile in, without the real kernels.
class ConstKernel final : public Kernel {
  Status Init(const KernelInit& node) override { return node.Attr("value", &value_); }
  Status Compute(KernelContext& ctx) override {
    ctx.SetOutput(0, value_);
    return OkStatus();
  }
  Tensor value_;
};
class SumKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    if (ctx.input(0).shape() != ctx.input(1).shape()) return InvalidArgument("shapes differ");
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, ctx.input(0).shape(), &out));
    for (int64_t i = 0; i < out->num_elements(); ++i) {
      out->mutable_data<float>()[i] = ctx.input(0).data<float>()[i] + ctx.input(1).data<float>()[i];
    }
    return OkStatus();
  }
};
bool huge_ran = false;
class HugeKernel final : public Kernel {
  Status Compute(KernelContext&) override {
    huge_ran = true;
    throw std::bad_alloc();
  }
};
class NeverRun final : public Kernel {
  Status Compute(KernelContext&) override { return Internal("must not run at compile time"); }
};

const Registry& Ops() {
  static const Registry& registry = *[] {
    const std::vector<AttrDef> transfer = {{"tensor_name", Strings{}},
                                           {"send_device", Strings{}},
                                           {"send_device_incarnation", Ints{}},
                                           {"recv_device", Strings{}},
                                           {"client_terminated", false}};
    std::vector<OpDef> ops = {
        {.name = "Const",
         .outputs = {{"output", "dtype"}},
         .types = {{"dtype", kAllTypes}},
         .attrs = {{"value", Tensors{}}}},
        {.name = "Input", .outputs = {{"y", "float"}}, .shape = UnknownShape},
        {.name = "Noise", .outputs = {{"y", "float"}}, .stateful = true},
        {.name = "Sum2",
         .inputs = {{"a", "float"}, {"b", "float"}},
         .outputs = {{"y", "float"}},
         .shape = SameShape,
         .commutative = true},
        {.name = "Heavy", .inputs = {{"x", "float"}}, .outputs = {{"y", "float"}}},
        {.name = "Huge",
         .inputs = {{"x", "float"}},
         .outputs = {{"y", "float"}},
         .shape =
             [](ShapeScope& s) {
               s.set_output(0, Shape({1 << 20, 1 << 10}));
               return OkStatus();
             }},
        {.name = "Shape", .inputs = {{"x", "float"}}, .outputs = {{"y", "int32"}}},
        {.name = "Switch",
         .inputs = {{"x", "float"}, {"pred", "float"}},
         .outputs = {{"no", "float"}, {"yes", "float"}},
         .shape = SameShape},
        {.name = "Merge", .inputs = {{"a", "float"}, {"b", "float"}}, .outputs = {{"y", "float"}}},
        {.name = "Enter",
         .inputs = {{"x", "float"}},
         .outputs = {{"y", "float"}},
         .attrs = {{"frame_name", Strings{}}, {"is_constant", false}}},
        {.name = "RefEnter",
         .inputs = {{"x", Ref("float")}},
         .outputs = {{"y", Ref("float")}},
         .attrs = {{"frame_name", Strings{}}, {"is_constant", false}}},
        {.name = "Exit", .inputs = {{"x", "float"}}, .outputs = {{"y", "float"}}},
        {.name = "NextIteration", .inputs = {{"x", "float"}}, .outputs = {{"y", "float"}}},
        {.name = "LoopCond", .inputs = {{"x", "float"}}, .outputs = {{"y", "float"}}},
        {.name = "Var", .outputs = {{"ref", Ref("float")}}, .stateful = true},
        {.name = "Update",
         .inputs = {{"ref", Ref("float")}, {"by", "float"}},
         .outputs = {{"out", Ref("float")}},
         .allows_uninitialized_input = true},
        {.name = "Group"},
        {.name = "_Feed",
         .outputs = {{"y", "T"}},
         .types = {{"T", kAllTypes}},
         .attrs = {{"index", Ints{}}},
         .stateful = true},
        {.name = "_Fetch",
         .inputs = {{"x", "T"}},
         .types = {{"T", kAllTypes}},
         .attrs = {{"index", Ints{}}},
         .stateful = true},
        {.name = "_Send",
         .inputs = {{"x", "T"}},
         .types = {{"T", kAllTypes}},
         .attrs = transfer,
         .stateful = true},
        {.name = "_Recv",
         .outputs = {{"y", "tensor_type"}},
         .types = {{"tensor_type", kAllTypes}},
         .attrs = transfer,
         .stateful = true},
    };
    std::vector<KernelDef> kernels = {{.op = "Const", .make = Make<ConstKernel>},
                                      {.op = "Sum2", .make = Make<SumKernel>},
                                      {.op = "Merge", .make = Make<SumKernel>},
                                      {.op = "Huge", .make = Make<HugeKernel>},
                                      {.op = "Heavy", .device = "GPU", .make = Make<NeverRun>}};
    for (const char* op :
         {"Input", "Noise", "Heavy", "Var", "Update", "Group", "Shape", "Switch", "Enter",
          "RefEnter", "Exit", "NextIteration", "LoopCond", "_Feed", "_Fetch", "_Send", "_Recv"}) {
      kernels.push_back({.op = op, .make = Make<NeverRun>});
    }
    return new Registry(std::move(ops), std::move(kernels));
  }();
  return registry;
}

constexpr char kPs[] = "/job:ps/replica:0/task:0/device:CPU:0";
constexpr char kWorker[] = "/job:worker/replica:0/task:0/device:CPU:0";
constexpr char kWorker1[] = "/job:worker/replica:0/task:1/device:CPU:0";

DeviceInfo Device(const char* name, uint64_t incarnation) {
  return {.name = *DeviceName::Parse(name), .incarnation = incarnation};
}
std::vector<DeviceInfo> Cluster() {
  return {Device(kPs, 11), Device(kWorker, 22), Device(kWorker1, 33)};
}

// Builds graphs from one-liners and compiles them.
struct World {
  Graph graph{Ops()};
  CompileOptions options{.env = &Env::Real(),
                         .threads = &Scheduler::Real(),
                         .client_device = *DeviceName::Parse(kWorker)};
  std::map<std::string, std::string> placed;  // node -> device, after "place"
  std::map<std::string, int> nodes_after;     // pass -> number of nodes

  Node* Add(const std::string& name, const std::string& op, std::vector<Endpoint> inputs = {},
            const std::string& device = "", Attrs attrs = {}, std::vector<Node*> after = {}) {
    StatusOr<Node*> node = graph.AddNode({.name = name,
                                          .op = op,
                                          .inputs = std::move(inputs),
                                          .control_inputs = std::move(after),
                                          .attrs = std::move(attrs),
                                          .device = device});
    EXPECT_TRUE(node.ok()) << node.status();
    return node.ok() ? *node : nullptr;
  }
  Node* Constant(const std::string& name, std::vector<float> values) {
    return Add(name, "Const", {}, "",
               {{"dtype", DType::kFloat}, {"value", Tensor::Vector<float>(values)}});
  }
  StatusOr<std::vector<Partition>> Run(const std::vector<std::string>& feeds,
                                       const std::vector<std::string>& fetches,
                                       const std::vector<std::string>& targets = {}) {
    for (const std::string& f : feeds) options.feeds.push_back(*TensorName::Parse(f));
    for (const std::string& f : fetches) options.fetches.push_back(*TensorName::Parse(f));
    options.targets = targets;
    options.dump = [this](string_view pass, const Graph& g) {
      nodes_after[std::string(pass)] = g.num_nodes();
      for (const Node* node : g.nodes()) {
        if (pass == "place") placed[node->name()] = node->assigned_device();
      }
    };
    return Compile(graph, Cluster(), options);
  }
};

int CountOps(const Partition& partition, const std::string& op) {
  const auto nodes = partition.graph.nodes();
  return static_cast<int>(
      std::count_if(nodes.begin(), nodes.end(), [&](const Node* n) { return n->op_name() == op; }));
}

TEST(PruneTest, KeepsOnlyWhatFeedsAndFetchesNeed) {
  // The white paper's figure: feed b, fetch f; d and e do not run.
  World w;
  Node* a = w.Add("a", "Input");
  Node* b = w.Add("b", "Heavy", {{a, 0}});
  Node* c = w.Add("c", "Heavy", {{b, 0}});
  Node* d = w.Add("d", "Heavy", {{a, 0}});
  w.Add("e", "Heavy", {{d, 0}});
  w.Add("f", "Heavy", {{c, 0}});
  const auto partitions = w.Run({"b:0"}, {"f:0"});
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  ASSERT_EQ(partitions->size(), 1u);
  const Graph& g = (*partitions)[0].graph;
  for (const char* gone : {"a", "b", "d", "e"}) EXPECT_EQ(g.FindNode(gone), nullptr) << gone;
  for (const char* kept : {"c", "f"}) EXPECT_NE(g.FindNode(kept), nullptr) << kept;
  EXPECT_EQ(CountOps((*partitions)[0], "_Feed"), 1);
  EXPECT_EQ(CountOps((*partitions)[0], "_Fetch"), 1);
}

TEST(PruneTest, WrongNamesAreNamed) {
  const auto error = [](std::vector<std::string> feeds, std::vector<std::string> fetches,
                        std::vector<std::string> targets) {
    World w;
    w.Add("a", "Input");
    return std::string(w.Run(feeds, fetches, targets).status().message());
  };
  EXPECT_THAT(error({"x:0"}, {"a:0"}, {}), HasSubstr("unable to find feed output x:0"));
  EXPECT_THAT(error({"a:1"}, {"a:0"}, {}), HasSubstr("unable to find feed output a:1"));
  EXPECT_THAT(error({}, {"a:7"}, {}), HasSubstr("FetchOutputs node a:7: not found"));
  EXPECT_THAT(error({}, {}, {"p", "q"}), HasSubstr("target nodes not found: p q"));
  EXPECT_THAT(error({}, {}, {}), HasSubstr("at least one target"));
  EXPECT_THAT(error({"a:0"}, {"a:0"}, {}), HasSubstr("both fed and fetched"));
  EXPECT_THAT(error({"a:0", "a:0"}, {}, {"a"}), HasSubstr("fed twice"));
}

TEST(PruneTest, TheRuntimesOwnOpsAreNotForPrograms) {
  World w;
  w.Add("mine", "_Feed", {}, "", {{"index", 0}, {"T", DType::kFloat}});
  const Status status = w.Run({}, {"mine:0"}).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("node 'mine': op _Feed"));
}

TEST(FoldTest, ConstantsAreComputedOnce) {
  World w;
  Node* one = w.Constant("one", {1, 2});
  Node* two = w.Constant("two", {10, 20});
  Node* sum = w.Add("sum", "Sum2", {{one, 0}, {two, 0}});
  w.Add("more", "Sum2", {{sum, 0}, {two, 0}});
  const auto partitions = w.Run({}, {"more:0"});
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  const Node* fetch = nullptr;
  for (const Node* node : (*partitions)[0].graph.nodes()) {
    if (node->op_name() == "_Fetch") fetch = node;
  }
  ASSERT_NE(fetch, nullptr);
  const Node* source = fetch->input(0).node;
  ASSERT_EQ(source->op_name(), "Const");
  EXPECT_THAT(source->attr<Tensor>("value")->flat<float>(), ElementsAre(21, 42));
  EXPECT_EQ(w.nodes_after["sweep"], 2);
}

TEST(FoldTest, ANodeThatFailsIsLeftToFailInTheStep) {
  World w;
  Node* one = w.Constant("one", {1});
  Node* two = w.Constant("two", {1, 2});
  w.Add("sum", "Sum2", {{one, 0}, {two, 0}});
  const auto partitions = w.Run({}, {"sum:0"});
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  EXPECT_NE((*partitions)[0].graph.FindNode("sum"), nullptr);
}

TEST(FoldTest, WhatIsTooLargeIsNotTried) {
  World w;
  Node* huge = w.Add("huge", "Huge", {{w.Constant("one", {1}), 0}});
  w.Add("use", "Heavy", {{huge, 0}});
  const auto partitions = w.Run({}, {"use:0"});
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  EXPECT_FALSE(huge_ran);
}

TEST(FoldTest, WhatMayNotRunStaysWhatItIs) {
  World w;
  Node* noise = w.Add("noise", "Noise");
  Node* two = w.Constant("two", {2});
  Node* after = w.Add("after", "Const", {}, "",
                      {{"dtype", DType::kFloat}, {"value", Tensor::Vector<float>({1})}}, {noise});
  w.Add("sum", "Sum2", {{after, 0}, {two, 0}});   // not before noise, or not at all
  w.Add("merge", "Merge", {{two, 0}, {two, 0}});  // which of both, only a step knows
  Node* branch = w.Add("switch", "Switch", {{two, 0}, {noise, 0}});
  w.Add("shape", "Shape", {{branch, 1}});  // known, but perhaps never computed
  const auto partitions = w.Run({}, {"sum:0", "merge:0", "shape:0"});
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  for (const char* kept : {"sum", "merge", "shape"}) {
    EXPECT_NE((*partitions)[0].graph.FindNode(kept), nullptr) << kept;
  }
}

TEST(MergeTest, TwinsRunOnceButNoiseDoesNot) {
  World w;
  Node* x = w.Add("x", "Input");
  Node* y = w.Add("y", "Input");
  Node* a = w.Add("a", "Sum2", {{x, 0}, {y, 0}});
  Node* b = w.Add("b", "Sum2", {{y, 0}, {x, 0}});  // commutative
  w.Add("ab", "Sum2", {{a, 0}, {b, 0}});
  Node* n = w.Add("n", "Noise");
  Node* m = w.Add("m", "Noise");
  w.Add("nm", "Sum2", {{n, 0}, {m, 0}});
  const auto partitions = w.Run({}, {"ab:0", "nm:0"});
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  const Partition& p = (*partitions)[0];
  EXPECT_EQ(CountOps(p, "Sum2"), 3);
  EXPECT_EQ(CountOps(p, "Noise"), 2);
  EXPECT_EQ(CountOps(p, "Input"), 2) << "two unnamed inputs are two inputs";
}

TEST(PlaceTest, ConstraintsDefaultsAndSharedState) {
  World w;
  Node* var = w.Add("var", "Var", {}, "/job:ps/task:0");
  Node* x = w.Add("x", "Input");
  Node* update = w.Add("update", "Update", {{var, 0}, {x, 0}});
  w.Add("beside", "Input", {}, "", {{"_class", std::vector<std::string>{"loc:@var"}}});
  w.Add("far", "Input", {}, "/job:worker/task:1");
  const auto partitions = w.Run({}, {"beside:0", "far:0"}, {"update"});
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  ASSERT_NE(update, nullptr);
  EXPECT_EQ(w.placed["var"], kPs);
  EXPECT_EQ(w.placed["update"], kPs) << "an update sits with its variable";
  EXPECT_EQ(w.placed["beside"], kPs);
  EXPECT_EQ(w.placed["x"], kWorker) << "no job named: the client's task";
  EXPECT_EQ(w.placed["far"], kWorker1);
}

TEST(PlaceTest, ErrorsNameNodesAndConstraints) {
  {
    World w;
    w.Add("lost", "Input", {}, "/job:ps/task:9");
    const Status s = w.Run({}, {"lost:0"}).status();
    EXPECT_THAT(std::string(s.message()), HasSubstr("'lost'"));
    EXPECT_THAT(std::string(s.message()), HasSubstr("/job:ps/task:9"));
    EXPECT_THAT(std::string(s.message()), HasSubstr(kPs)) << "lists what there is";
  }
  {
    World w;
    Node* var = w.Add("var", "Var", {}, "/job:ps/task:0");
    Node* x = w.Add("x", "Input");
    w.Add("update", "Update", {{var, 0}, {x, 0}}, "/job:worker/task:1");
    const Status s = w.Run({}, {}, {"update"}).status();
    EXPECT_THAT(std::string(s.message()), HasSubstr("'var' asks for device '/job:ps/task:0'"));
    EXPECT_THAT(std::string(s.message()), HasSubstr("'update' for '/job:worker/task:1'"));
  }
  {
    World w;
    w.Add("x", "Input", {}, "/device:GPU:0");
    const Status s = w.Run({}, {"x:0"}).status();
    EXPECT_THAT(std::string(s.message()), HasSubstr("allow_soft_placement"));
  }
}

TEST(PlaceTest, SoftPlacementTakesTheCpuOfTheSameTask) {
  World w;
  w.options.allow_soft_placement = true;
  w.Add("x", "Input", {}, "/job:ps/task:0/device:GPU:3");
  ASSERT_TRUE(w.Run({}, {"x:0"}).ok());
  EXPECT_EQ(w.placed["x"], kPs);
}

// A model in which the second worker is ten times as fast and messages cost nothing, or a lot.
class Lopsided final : public CostModel {
 public:
  explicit Lopsided(double transfer_ns) : transfer_ns_(transfer_ns) {}
  double NodeNanos(const Node&, const DeviceInfo& device) const override {
    return device.incarnation == 33 ? 100 : 1000;
  }
  double TransferNanos(const Node&, int, const DeviceInfo& from,
                       const DeviceInfo& to) const override {
    return from.name == to.name ? 0 : transfer_ns_;
  }
  double OutputBytes(const Node&, int) const override { return 4; }

 private:
  const double transfer_ns_;
};

TEST(PlaceTest, StatelessNodesGoWhereTheyEndSoonest) {
  for (const double transfer_ns : {1.0, 1e9}) {
    World w;
    const Lopsided costs(transfer_ns);
    w.options.cost_model = &costs;
    Node* x = w.Add("x", "Input", {}, "/job:worker/task:0");
    w.Add("y", "Heavy", {{x, 0}}, "/job:worker");
    ASSERT_TRUE(w.Run({}, {"y:0"}).ok());
    EXPECT_EQ(w.placed["y"], transfer_ns == 1.0 ? kWorker1 : kWorker);
  }
}

TEST(PartitionTest, OnePairPerTensorAndDestination) {
  World w;
  Node* x = w.Add("x", "Input", {}, "/job:ps/task:0");
  Node* a = w.Add("a", "Heavy", {{x, 0}}, "/job:worker/task:0");
  Node* b = w.Add("b", "Heavy", {{x, 0}}, "/job:worker/task:0");
  Node* c = w.Add("c", "Sum2", {{x, 0}, {x, 0}}, "/job:worker/task:1");
  w.options.optimize = false;
  const auto partitions = w.Run({}, {}, {a->name(), b->name(), c->name()});
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  ASSERT_EQ(partitions->size(), 3u);
  EXPECT_EQ((*partitions)[0].device, kPs);
  EXPECT_EQ(CountOps((*partitions)[0], "_Send"), 2) << "one for each destination";
  EXPECT_EQ(CountOps((*partitions)[1], "_Recv"), 1);
  EXPECT_EQ(CountOps((*partitions)[2], "_Recv"), 1);
  for (const Node* node : (*partitions)[1].graph.nodes()) {
    if (node->op_name() != "_Recv") continue;
    EXPECT_EQ(*node->attr<int64_t>("send_device_incarnation"), 11);
    EXPECT_EQ(*node->attr<std::string>("send_device"), kPs);
    EXPECT_EQ(*node->attr<std::string>("recv_device"), kWorker);
  }
}

TEST(PartitionTest, ControlEdgesCrossAsEmptyTensorsAndConstantsAreCopied) {
  World w;
  Node* before = w.Add("before", "Group", {}, "/job:ps/task:0");
  Node* constant = w.Constant("k", {1});
  w.graph.set_requested_device(constant, "/job:ps/task:0");
  Node* after = w.Add("after", "Heavy", {{constant, 0}}, "/job:worker/task:0", {}, {before});
  w.options.optimize = false;
  const auto partitions = w.Run({}, {}, {after->name()});
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  ASSERT_EQ(partitions->size(), 2u);
  const Partition& ps = (*partitions)[0];
  const Partition& worker = (*partitions)[1];
  EXPECT_EQ(CountOps(ps, "_Send"), 1) << "the token only";
  EXPECT_EQ(CountOps(worker, "Const"), 1);
  const Node* copy = worker.graph.FindNode("after");
  ASSERT_NE(copy, nullptr);
  ASSERT_EQ(copy->control_inputs().size(), 1u);
  EXPECT_EQ(copy->control_inputs()[0]->op_name(), "_Recv");
  EXPECT_EQ(copy->input(0).node->op_name(), "Const");
}

// while (x) x = x + x + k, with the sums on the ps; k enters as a constant.
struct LoopWorld : World {
  LoopWorld() {
    Node* const k = Add("k", "Noise", {}, kWorker);
    Node* const constant =
        Add("enter_k", "Enter", {{k, 0}}, kWorker, {{"frame_name", "f"}, {"is_constant", true}});
    Node* const enter = Add("enter", "Enter", {{Add("x", "Input", {}, kWorker), 0}}, kWorker,
                            {{"frame_name", "f"}});
    Node* const merge = Add("merge", "Merge", {{enter, 0}, {}}, kWorker);
    Node* const cond = Add("cond", "LoopCond", {{merge, 0}}, kWorker);
    Node* const choice = Add("switch", "Switch", {{merge, 0}, {cond, 0}}, kWorker);
    Node* const sum = Add("sum", "Sum2", {{choice, 1}, {choice, 1}}, kPs);
    Node* const plus = Add("plus", "Sum2", {{sum, 0}, {constant, 0}}, kPs);
    Node* const next = Add("next", "NextIteration", {{plus, 0}}, kWorker1);
    EXPECT_TRUE(graph.SetInput(merge, 1, {next, 0}).ok());
    Add("exit", "Exit", {{choice, 0}}, kWorker);
  }
};

TEST(PartitionTest, ALoopOnTwoDevicesIsDrivenOnBoth) {
  LoopWorld w;
  const auto partitions = w.Run({}, {"exit:0"});
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  ASSERT_EQ(partitions->size(), 2);
  EXPECT_EQ(w.placed["next"], kWorker) << "what comes around stays with its Merge";
  const Partition& ps = (*partitions)[0];
  ASSERT_EQ(ps.device, kPs);
  EXPECT_EQ(CountOps(ps, "Enter"), 2) << "the control loop's and k's";
  for (const char* op : {"Merge", "Switch", "NextIteration"}) EXPECT_EQ(CountOps(ps, op), 1) << op;
  EXPECT_EQ(CountOps((*partitions)[1], "Merge"), 2);
  int in_loop = 0;
  for (const Node* node : ps.graph.nodes()) {
    if (node->op_name() != "_Recv") continue;
    const bool of_k = *node->attr<std::string>("tensor_name") ==
                      StrCat("edge_", w.graph.FindNode("k")->id(), "_k:0");
    if (of_k || node->control_inputs().empty()) continue;
    ++in_loop;
    EXPECT_EQ(node->control_inputs()[0]->op_name(), "Merge");
  }
  EXPECT_EQ(in_loop, 2) << "the condition and x: in each iteration; k once, outside of the loop";
  EXPECT_EQ(CountOps(ps, "_Recv"), 3);
}

TEST(PartitionTest, AReferenceThatEntersOnceIsReadWhereItIs) {
  for (const bool constant : {true, false}) {
    LoopWorld w;
    Node* const var = w.Add("var", "Var", {}, kPs);
    Node* const enter = w.Add("enter_ref", "RefEnter", {{var, 0}}, kPs,
                              {{"frame_name", "f"}, {"is_constant", constant}});
    Node* const use = w.Add("use", "Heavy", {{enter, 0}}, kWorker);
    ASSERT_TRUE(w.graph.SetInput(w.graph.FindNode("plus"), 1, {use, 0}).ok());
    const Status status = w.Run({}, {"exit:0"}).status();
    if (constant) {
      EXPECT_TRUE(status.ok()) << status;
      continue;
    }
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("the value behind 'enter_ref' (RefEnter), on /job:ps/replica:0/task:0"));
  }
}

TEST(PruneTest, NothingInsideALoopIsFedOrFetched) {
  const struct {
    std::vector<std::string> feeds, fetches, targets;
    std::string error;
  } kCases[] = {
      {{}, {"sum:0"}, {}, "Fetch 'sum:0' is inside the loop 'f'"},
      {{}, {"enter:0"}, {}, "Fetch 'enter:0' is inside the loop 'f'"},
      {{"plus:0"}, {"exit:0"}, {}, "Feed 'plus:0' is inside the loop 'f'"},
      {{}, {}, {"next"}, "Target 'next' is inside the loop 'f'"},
      {{"x:0"}, {"exit:0"}, {"k"}, ""},
  };
  for (const auto& c : kCases) {
    LoopWorld w;
    EXPECT_THAT(w.Run(c.feeds, c.fetches, c.targets).status().ToString(),
                HasSubstr(c.error.empty() ? "OK" : c.error));
  }
}

TEST(CompileTest, DumpSeesEveryPassInOrder) {
  World w;
  w.Add("x", "Input");
  std::vector<std::string> seen;
  w.options.fetches = {*TensorName::Parse("x:0")};
  w.options.dump = [&](string_view pass, const Graph&) { seen.emplace_back(pass); };
  ASSERT_TRUE(Compile(w.graph, Cluster(), w.options).ok());
  EXPECT_EQ(seen, PassNames());
}

}  // namespace
}  // namespace penstock

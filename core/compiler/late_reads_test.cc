// SPDX-License-Identifier: Apache-2.0
//
// Which consumers of a variable's value are connected to the variable itself.
#include <functional>
#include <string>
#include <vector>

#include "core/compiler/compile.h"
#include "core/op/kernel.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

class NeverRun final : public Kernel {
  Status Compute(KernelContext&) override { return Internal("must not run at compile time"); }
};

const Registry& Ops() {
  static const Registry& registry = *[] {
    const auto pass = [](const char* name, const ArgType& type, std::vector<AttrDef> attrs = {}) {
      return OpDef{.name = name,
                   .inputs = {{"x", type}},
                   .outputs = {{"y", type}},
                   .attrs = std::move(attrs)};
    };
    const auto branch = [](const char* name, const ArgType& type) {
      return OpDef{.name = name,
                   .inputs = {{"x", type}, {"pred", "float"}},
                   .outputs = {{"no", type}, {"yes", type}}};
    };
    const std::vector<AttrDef> transfer = {{"tensor_name", Strings{}},
                                           {"send_device", Strings{}},
                                           {"send_device_incarnation", Ints{}},
                                           {"recv_device", Strings{}},
                                           {"client_terminated", false}};
    std::vector<OpDef> ops = {
        {.name = "Var", .outputs = {{"ref", Ref("float")}}, .stateful = true},
        {.name = "Update", .inputs = {{"ref", Ref("float")}}, .outputs = {{"out", Ref("float")}}},
        {.name = "Input", .outputs = {{"y", "float"}}, .stateful = true},
        {.name = "Use", .inputs = {{"x", "float"}}, .outputs = {{"y", "float"}}, .stateful = true},
        {.name = "Const",
         .outputs = {{"output", "dtype"}},
         .types = {{"dtype", kAllTypes}},
         .attrs = {{"value", Tensors{}}}},
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
        pass("Identity", "float"),
        pass("RefIdentity", Ref("float")),
        pass("PreventGradient", "float", {{"message", ""}}),
        branch("Switch", "float"),
        branch("RefSwitch", Ref("float")),
        {.name = "RefMerge",
         .inputs = {{"x", Repeat("N", Ref("float"))}},
         .outputs = {{"y", Ref("float")}, {"value_index", "int32"}},
         .attrs = {{"N", Ints{}}}},
        pass("RefNextIteration", Ref("float")),
        pass("Exit", "float"),
        pass("RefEnter", Ref("float"), {{"frame_name", Strings{}}}),
    };
    std::vector<KernelDef> kernels;
    for (const OpDef& op : ops) kernels.push_back({.op = op.name, .make = Make<NeverRun>});
    return new Registry(std::move(ops), std::move(kernels));
  }();
  return registry;
}

constexpr char kPs[] = "/job:ps/replica:0/task:0/device:CPU:0";
constexpr char kWorker[] = "/job:worker/replica:0/task:0/device:CPU:0";

class LateReadsTest : public testing::Test {
 protected:
  Node* Add(const std::string& name, const std::string& op, std::vector<Endpoint> inputs = {},
            std::vector<Node*> after = {}, const char* device = kPs, Attrs attrs = {}) {
    StatusOr<Node*> node = graph_.AddNode({.name = name,
                                           .op = op,
                                           .inputs = std::move(inputs),
                                           .control_inputs = std::move(after),
                                           .attrs = std::move(attrs),
                                           .device = device});
    EXPECT_TRUE(node.ok()) << node.status();
    return node.ok() ? *node : nullptr;
  }

  // `dump` is called with what the pass has made.
  Status Compiled(const std::function<void(const Graph&)>& dump = [](const Graph&) {}) {
    CompileOptions options{.env = &Env::Real(),
                           .threads = &Scheduler::Real(),
                           .client_device = *DeviceName::Parse(kWorker)};
    for (const Node* node : graph_.nodes()) {
      const bool last = node->out_edges().empty() && node->control_outputs().empty();
      if (last) options.targets.push_back(node->name());
    }
    options.dump = [&](string_view pass, const Graph& graph) {
      if (pass == "read") dump(graph);
    };
    const std::vector<DeviceInfo> devices = {{.name = *DeviceName::Parse(kPs), .incarnation = 1},
                                             {.name = *DeviceName::Parse(kWorker)}};
    return Compile(graph_, devices, options).status();
  }

  // The first input of `node` after the pass, as OP or OP:INDEX.
  std::string SourceOf(const std::string& node) {
    std::string source;
    const Status status = Compiled([&](const Graph& graph) {
      const Endpoint in = graph.FindNode(node)->input(0);
      EXPECT_EQ(in.node->assigned_device(), kPs);
      source = in.node->op_name();
      if (in.index > 0) source += StrCat(":", in.index);
    });
    EXPECT_TRUE(status.ok()) << status;
    return source;
  }

  Graph graph_{Ops()};
};

TEST_F(LateReadsTest, AfterAnUpdateTheVariableIsReadAgain) {
  Node* const v = Add("v", "Var");
  Node* const read = Add("read", "Identity", {{v, 0}});
  Node* const update = Add("update", "Update", {{v, 0}});
  Add("after", "Use", {{read, 0}}, {update});
  Node* const between = Add("between", "Use", {{update, 0}});
  Add("long_after", "Use", {{read, 0}}, {between});
  Add("unordered", "Use", {{read, 0}});
  Add("after_by_itself", "Use", {{Add("read2", "Identity", {{v, 0}}, {update}), 0}});
  Add("elsewhere", "Use", {{read, 0}}, {update}, kWorker);
  EXPECT_EQ(SourceOf("after"), "RefIdentity");
  EXPECT_EQ(SourceOf("long_after"), "RefIdentity");
  EXPECT_EQ(SourceOf("unordered"), "Identity");
  EXPECT_EQ(SourceOf("after_by_itself"), "Identity");
  EXPECT_EQ(SourceOf("elsewhere"), "Identity");
}

TEST_F(LateReadsTest, AnotherVariablesUpdateChangesNothing) {
  Node* const v = Add("v", "Var");
  Node* const read = Add("read", "Identity", {{v, 0}});
  Node* const update = Add("update", "Update", {{Add("w", "Var"), 0}});
  Add("v_update", "Update", {{v, 0}});
  Add("after", "Use", {{read, 0}}, {update});
  EXPECT_EQ(SourceOf("after"), "Identity");
}

TEST_F(LateReadsTest, OneUpdateAfterTheOther) {
  Node* const v = Add("v", "Var");
  Node* const first = Add("first", "Update", {{v, 0}});
  Node* const read = Add("read", "Identity", {{first, 0}});
  Node* const second = Add("second", "Update", {{first, 0}}, {read});
  Add("after", "Use", {{read, 0}}, {second});
  EXPECT_EQ(SourceOf("after"), "RefIdentity");
}

TEST_F(LateReadsTest, ThroughBranchesAndOtherOpsThatPassOn) {
  Node* const v = Add("v", "Var");
  Node* const read = Add("read", "PreventGradient", {{v, 0}});
  Node* const choice = Add("choice", "Switch", {{read, 0}, {Add("pred", "Input"), 0}});
  Node* const same = Add("same", "Identity", {{choice, 1}});
  Node* const update = Add("update", "Update", {{v, 0}});
  Add("after", "Use", {{same, 0}}, {update});
  Add("after_choice", "Use", {{choice, 1}}, {update});
  Add("before", "Use", {{choice, 1}});
  EXPECT_EQ(SourceOf("after"), "RefIdentity");
  EXPECT_EQ(SourceOf("after_choice"), "RefSwitch:1");
  EXPECT_EQ(SourceOf("before"), "Switch:1");
}

// What comes around is the first input.
TEST_F(LateReadsTest, ReferencesThatGoAroundALoop) {
  Node* const enter =
      Add("enter", "RefEnter", {{Add("v", "Var"), 0}}, {}, kPs, {{"frame_name", "loop"}});
  Node* const merge = Add("merge", "RefMerge", {{}, {enter, 0}}, {}, kPs, {{"N", 2}});
  Node* const around = Add("around", "RefNextIteration", {{merge, 0}});
  ASSERT_TRUE(graph_.SetInput(merge, 0, {around, 0}).ok());
  Node* const read = Add("read", "Identity", {{merge, 0}});
  Node* const update = Add("update", "Update", {{merge, 0}});
  Add("exit", "Exit", {{Add("after", "Use", {{read, 0}}, {update}), 0}});
  EXPECT_EQ(SourceOf("after"), "RefIdentity");
}

TEST_F(LateReadsTest, AReferenceToNothing) {
  Node* const merge = Add("merge", "RefMerge", {{}}, {}, kPs, {{"N", 1}});
  Node* const around = Add("around", "RefNextIteration", {{merge, 0}});
  ASSERT_TRUE(graph_.SetInput(merge, 0, {around, 0}).ok());
  Node* const read = Add("read", "Identity", {{merge, 0}});
  Add("after", "Use", {{read, 0}}, {Add("update", "Update", {{merge, 0}})});
  EXPECT_EQ(Compiled().code(), absl::StatusCode::kInvalidArgument) << Compiled();
}

}  // namespace
}  // namespace penstock

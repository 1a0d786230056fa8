// SPDX-License-Identifier: Apache-2.0
//
// Tests which Gathers become ResourceGathers, with which edges, and which stay as they are.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "core/base/env.h"
#include "core/base/scheduler.h"
#include "core/compiler/compile.h"
#include "core/op/kernel.h"
#include "core/op/shape_scope.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::UnorderedElementsAre;

class NeverRun final : public Kernel {
  Status Compute(KernelContext&) override { return Internal("must not run at compile time"); }
};

const Registry& Ops() {
  static const Registry& registry = *[] {
    const std::vector<AttrDef> name = {{"container", ""}, {"shared_name", ""}};
    const std::vector<AttrDef> transfer = {{"tensor_name", Strings{}},
                                           {"send_device", Strings{}},
                                           {"send_device_incarnation", Ints{}},
                                           {"recv_device", Strings{}},
                                           {"client_terminated", false}};
    std::vector<OpDef> ops = {
        {.name = "VarHandleOp", .outputs = {{"h", "resource"}}, .attrs = name, .stateful = true},
        {.name = "ReadVariableOp",
         .inputs = {{"resource", "resource"}},
         .outputs = {{"value", "dtype"}},
         .types = {{"dtype", kAllTypes}},
         .stateful = true,
         .only_reads = true,
         .reads_variable = true},
        {.name = "Update", .inputs = {{"resource", "resource"}, {"by", "float"}}, .stateful = true},
        {.name = "Queue", .outputs = {{"h", "resource"}}, .attrs = name, .stateful = true},
        {.name = "Dequeue",
         .inputs = {{"h", "resource"}},
         .outputs = {{"y", "int32"}},
         .stateful = true},
        {.name = "MadeHandle",
         .inputs = {{"x", "int32"}},
         .outputs = {{"h", "resource"}},
         .stateful = true},
        {.name = "Ids", .outputs = {{"y", "int32"}}, .stateful = true},
        {.name = "Numbers", .outputs = {{"y", "float"}}, .stateful = true},
        {.name = "Use", .inputs = {{"x", "float"}}, .outputs = {{"y", "float"}}, .stateful = true},
        {.name = "ToIds", .inputs = {{"x", "float"}}, .outputs = {{"y", "int32"}}},
        {.name = "Identity",
         .inputs = {{"x", "T"}},
         .outputs = {{"y", "T"}},
         .types = {{"T", kAllTypes}},
         .passes_through = true},
        {.name = "Switch",
         .inputs = {{"x", "float"}, {"pred", "float"}},
         .outputs = {{"no", "float"}, {"yes", "float"}},
         .flow = FlowOp::kSwitch},
        {.name = "Const",
         .outputs = {{"output", "dtype"}},
         .types = {{"dtype", kAllTypes}},
         .attrs = {{"value", Tensors{}}},
         .is_constant = true},
        {.name = "Gather",
         .inputs = {{"params", "Tparams"}, {"indices", "Tindices"}},
         .outputs = {{"output", "Tparams"}},
         .types = {{"Tparams", kAllTypes}, {"Tindices", kIndex}}},
        {.name = "GatherV2",
         .inputs = {{"params", "Tparams"}, {"indices", "Tindices"}, {"axis", "Taxis"}},
         .outputs = {{"output", "Tparams"}},
         .types = {{"Tparams", kAllTypes}, {"Tindices", kIndex}, {"Taxis", kIndex}},
         .attrs = {{"batch_dims", 0}}},
        {.name = "ResourceGather",
         .inputs = {{"resource", "resource"}, {"indices", "Tindices"}},
         .outputs = {{"output", "dtype"}},
         .types = {{"dtype", kAllTypes}, {"Tindices", kIndex}},
         .stateful = true,
         .only_reads = true},
        {.name = "_Send",
         .inputs = {{"x", "T"}},
         .types = {{"T", kAllTypes}},
         .attrs = transfer,
         .stateful = true,
         .end = EndOp::kSend},
        {.name = "_Recv",
         .outputs = {{"y", "tensor_type"}},
         .types = {{"tensor_type", kAllTypes}},
         .attrs = transfer,
         .stateful = true,
         .end = EndOp::kRecv},
    };
    for (OpDef& op : ops) op.shape = UnknownShape;
    std::vector<KernelDef> kernels;
    for (const OpDef& op : ops) kernels.push_back({.op = op.name, .make = Make<NeverRun>});
    return new Registry(std::move(ops), std::move(kernels));
  }();
  return registry;
}

constexpr char kPs[] = "/job:ps/replica:0/task:0/device:CPU:0";
constexpr char kWorkerCpu[] = "/job:worker/replica:0/task:0/device:CPU:0";

// The table is on the ps; all other nodes are on the worker.
class GatherFromVariablesTest : public testing::Test {
 protected:
  Node* Add(const std::string& name, const std::string& op, std::vector<Endpoint> inputs = {},
            std::vector<Node*> after = {}, Attrs attrs = {}, const char* device = kWorkerCpu) {
    // The types of Gather, GatherV2 and Identity.
    const char* const types[] = {op == "Identity" ? "T" : "Tparams", "Tindices", "Taxis"};
    for (size_t i = 0; i < inputs.size() && (op[0] == 'G' || op[0] == 'I'); ++i) {
      attrs[types[i]] = inputs[i].node->output_type(inputs[i].index).dtype;
    }
    StatusOr<Node*> node = graph_.AddNode({.name = name,
                                           .op = op,
                                           .inputs = std::move(inputs),
                                           .control_inputs = std::move(after),
                                           .attrs = std::move(attrs),
                                           .device = device});
    EXPECT_TRUE(node.ok()) << node.status();
    return node.ok() ? *node : nullptr;
  }
  Node* Read(const std::string& name, std::vector<Node*> after = {}) {
    return Add(name, "ReadVariableOp", {{table_, 0}}, std::move(after), {{"dtype", DType::kFloat}},
               kPs);
  }
  Node* Update(const std::string& name, Node* handle, std::vector<Node*> after = {}) {
    return Add(name, "Update", {{handle, 0}, {numbers_, 0}}, std::move(after), {}, kPs);
  }
  Node* Axis(int64_t value, std::vector<Node*> after = {}) {
    return Add(graph_.UniqueName("axis"), "Const", {}, std::move(after),
               {{"dtype", DType::kInt64}, {"value", Tensor::Scalar(value)}});
  }
  Node* Rows(Node* table, Node* ids, std::vector<Node*> after = {}) {
    return Add("rows", "Gather", {{table, 0}, {ids, 0}}, std::move(after));
  }
  void UseRows(Node* rows) { Add("use", "Use", {{rows, 0}}); }

  // Compiles, and returns the node `rows` after the pass: "OP(inputs, ^control inputs)".
  std::string Compiled() {
    std::string text;
    CompileOptions options{.env = &Env::Real(),
                           .threads = &Scheduler::Real(),
                           .client_device = *DeviceName::Parse(kWorkerCpu)};
    options.disabled_passes = disabled_passes_;
    for (const Node* node : graph_.nodes()) {
      const bool last = node->out_edges().empty() && node->control_outputs().empty();
      if (last) options.targets.push_back(node->name());
    }
    options.dump = [&](string_view pass, const Graph& graph) {
      if (pass != "gather") return;
      const Node* rows = graph.FindNode("rows");
      std::vector<std::string> inputs, after;
      for (const Endpoint& input : rows->inputs()) inputs.push_back(input.node->name());
      for (const Node* node : rows->control_inputs()) after.push_back("^" + node->name());
      std::sort(after.begin(), after.end());
      inputs.insert(inputs.end(), after.begin(), after.end());
      text = StrCat(rows->op_name(), "(", absl::StrJoin(inputs, ", "), ")");
      names_.clear();
      for (const Node* node : graph.nodes()) names_.push_back(node->name());
      device_ = rows->requested_device();
    };
    const std::vector<DeviceInfo> devices = {{.name = *DeviceName::Parse(kPs), .incarnation = 1},
                                             {.name = *DeviceName::Parse(kWorkerCpu)}};
    const Status status = Compile(graph_, devices, options).status();
    EXPECT_TRUE(status.ok()) << status;
    return text;
  }

  Graph graph_{Ops()};
  Node* const table_ = Add("table", "VarHandleOp", {}, {}, {}, kPs);
  Node* const ids_ = Add("ids", "Ids");
  Node* const numbers_ = Add("numbers", "Numbers");
  std::vector<std::string> names_;  // of all nodes after the pass
  std::string device_;              // of `rows`
  std::vector<std::string> disabled_passes_;
};

TEST_F(GatherFromVariablesTest, AReadForOneGather) {
  UseRows(Rows(Read("read"), ids_));
  EXPECT_EQ(Compiled(), "ResourceGather(table, ids)");
  EXPECT_EQ(device_, kPs);
  EXPECT_THAT(names_, UnorderedElementsAre("numbers", "table", "ids", "rows", "use"));
}

TEST_F(GatherFromVariablesTest, AnyOrderAroundItIsKept) {
  Node* const a = Add("a", "Ids");
  Node* const b = Add("b", "Ids");
  Node* const c = Add("c", "Ids");
  Node* const d = Add("d", "Ids");
  Node* const same = Add("same", "Identity", {{Read("read", {a}), 0}}, {b});
  Node* const rows = Add("rows", "GatherV2", {{same, 0}, {ids_, 0}, {Axis(0, {c}), 0}}, {d});
  UseRows(rows);
  Add("later", "Ids", {}, {rows});
  EXPECT_EQ(Compiled(), "ResourceGather(table, ids, ^a, ^b, ^c, ^d)");
}

// The pass "merge" has merged two equal constants before.
TEST_F(GatherFromVariablesTest, TheAxisMayBeTheIndexAsWell) {
  Node* const zero = Axis(0);
  UseRows(Add("rows", "GatherV2", {{Read("read"), 0}, {zero, 0}, {zero, 0}}));
  EXPECT_EQ(Compiled(), "ResourceGather(table, " + zero->name() + ")");
}

TEST_F(GatherFromVariablesTest, ManyRowsFromManyVariables) {
  Node* const other = Add("other", "VarHandleOp", {}, {}, {}, kPs);
  Node* const read =
      Add("read2", "ReadVariableOp", {{other, 0}}, {}, {{"dtype", DType::kInt32}}, kPs);
  Node* const ids = Add("ids2", "Gather", {{read, 0}, {ids_, 0}});
  UseRows(Rows(Read("read"), ids));
  EXPECT_EQ(Compiled(), "ResourceGather(table, ids2)");
  EXPECT_THAT(names_,
              UnorderedElementsAre("numbers", "table", "ids", "other", "ids2", "rows", "use"));
}

TEST_F(GatherFromVariablesTest, OtherDimensionsAndBatchesNeedTheTable) {
  struct {
    int64_t axis, batch_dims;
  } const cases[] = {{1, 0}, {0, 1}};
  for (const auto& c : cases) {
    Node* const rows = Add("rows", "GatherV2", {{Read("read"), 0}, {ids_, 0}, {Axis(c.axis), 0}},
                           {}, {{"batch_dims", c.batch_dims}});
    EXPECT_EQ(Compiled().substr(0, 8), "GatherV2") << c.axis << " " << c.batch_dims;
    Node* const read = rows->input(0).node;
    graph_.RemoveNode(rows);
    graph_.RemoveNode(read);
  }
}

TEST_F(GatherFromVariablesTest, AReadThatServesOthersStaysOneSnapshot) {
  Node* const read = Read("read");
  UseRows(Rows(read, ids_));
  Add("use2", "Use", {{read, 0}});
  EXPECT_EQ(Compiled(), "Gather(read, ids)");
}

TEST_F(GatherFromVariablesTest, TwoGathersOfOneReadSeeOneValue) {
  Node* const read = Read("read");
  UseRows(Rows(read, ids_));
  Add("use2", "Use", {{Add("rows2", "Gather", {{read, 0}, {Add("ids2", "Ids"), 0}}), 0}});
  EXPECT_EQ(Compiled(), "Gather(read, ids)");
}

TEST_F(GatherFromVariablesTest, AnUpdateThatWaitsForTheRead) {
  Node* const read = Read("read");
  UseRows(Rows(read, ids_));
  Update("update", table_, {read});
  EXPECT_EQ(Compiled(), "Gather(read, ids)");
}

TEST_F(GatherFromVariablesTest, AnUpdateOfTheSameVariableBetweenReadAndGather) {
  UseRows(Rows(Read("read"), ids_, {Update("update", table_)}));
  EXPECT_EQ(Compiled(), "Gather(read, ids, ^update)");
}

TEST_F(GatherFromVariablesTest, AnUpdateOfTheSameVariableByAnotherHandle) {
  Node* const again =
      Add("again", "VarHandleOp", {}, {}, {{"shared_name", std::string("table")}}, kPs);
  UseRows(Rows(Read("read"), ids_, {Update("update", again)}));
  EXPECT_EQ(Compiled(), "Gather(read, ids, ^update)");
}

TEST_F(GatherFromVariablesTest, TheDefaultContainerHasTwoNames) {
  const Attrs attrs = {{"shared_name", std::string("table")},
                       {"container", std::string("localhost")}};
  Node* const again = Add("again", "VarHandleOp", {}, {}, attrs, kPs);
  UseRows(Rows(Read("read"), ids_, {Update("update", again)}));
  EXPECT_EQ(Compiled(), "Gather(read, ids, ^update)");
}

TEST_F(GatherFromVariablesTest, AHandleBehindAChainOfAThousandCountsAsUnknown) {
  Node* handle = Add("other", "VarHandleOp", {}, {}, {}, kPs);
  for (int i = 0; i < 1000; ++i) {
    handle = Add(graph_.UniqueName("hop"), "Identity", {{handle, 0}}, {}, {}, kPs);
  }
  disabled_passes_ = {"simplify"};  // it would remove the chain
  UseRows(Rows(Read("read"), ids_, {Update("update", handle)}));
  EXPECT_EQ(Compiled(), "Gather(read, ids, ^update)");
}

TEST_F(GatherFromVariablesTest, AnUpdateThroughAnUnknownHandle) {
  Node* const made = Add("made", "MadeHandle", {{Add("ids2", "Ids"), 0}}, {}, {}, kPs);
  UseRows(Rows(Read("read"), ids_, {Update("update", made)}));
  EXPECT_EQ(Compiled(), "Gather(read, ids, ^update)");
}

TEST_F(GatherFromVariablesTest, AnUpdateBeforeTheRead) {
  UseRows(Rows(Read("read", {Update("update", table_)}), ids_));
  EXPECT_EQ(Compiled(), "ResourceGather(table, ids, ^update)");
}

TEST_F(GatherFromVariablesTest, IndicesFromAQueueAndUpdatesOfOthersDoNotMatter) {
  Node* const queue = Add("queue", "Queue");
  Node* const other = Add("other", "VarHandleOp", {}, {}, {}, kPs);
  UseRows(Rows(Read("read"), Add("taken", "Dequeue", {{queue, 0}}, {Update("update", other)})));
  EXPECT_EQ(Compiled(), "ResourceGather(table, taken)");
}

// If the branch is not taken, the read is not dead, but the Gather's other inputs are.
TEST_F(GatherFromVariablesTest, ATableThatIsSwitchedIsLeftAlone) {
  Node* const choice = Add("choice", "Switch", {{Read("read"), 0}, {numbers_, 0}});
  UseRows(Add("rows", "Gather", {{choice, 1}, {ids_, 0}}));
  EXPECT_EQ(Compiled(), "Gather(choice, ids)");
}

TEST_F(GatherFromVariablesTest, NodesThatArePlacedTogetherStayTogether) {
  const auto beside = [](const std::string& name) {
    return Attrs{{"_class", std::vector<std::string>{"loc:@" + name}}};
  };
  Node* const rows = Rows(Read("read"), ids_);
  UseRows(rows);
  EXPECT_EQ(Compiled(), "ResourceGather(table, ids)");
  graph_.set_requested_device(rows, kPs);
  graph_.set_attr(rows, "_class", std::vector<std::string>{"loc:@table"});
  EXPECT_EQ(Compiled(), "Gather(read, ids)");
  graph_.set_attr(rows->input(0).node, "_class", std::vector<std::string>{"loc:@table"});
  EXPECT_EQ(Compiled(), "ResourceGather(table, ids)");
  Add("with_rows", "Use", {{rows, 0}}, {}, beside("rows"), kPs);
  EXPECT_EQ(Compiled(), "Gather(read, ids)");
}

}  // namespace
}  // namespace penstock

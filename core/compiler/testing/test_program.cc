// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/testing/test_program.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace penstock {
namespace {

std::vector<TensorName> Parse(const std::vector<std::string>& texts) {
  std::vector<TensorName> names;
  for (const std::string& text : texts) names.push_back(*TensorName::Parse(text));
  return names;
}

}  // namespace

std::vector<DeviceInfo> TestCluster() {
  return {{.name = *DeviceName::Parse(kPs), .incarnation = 11},
          {.name = *DeviceName::Parse(kWorker), .incarnation = 22},
          {.name = *DeviceName::Parse(kWorker1), .incarnation = 33}};
}

Node* TestProgram::Add(const std::string& name, const std::string& op, std::vector<Endpoint> inputs,
                       const NodeOptions& more) {
  StatusOr<Node*> node = graph.AddNode({.name = name,
                                        .op = op,
                                        .inputs = std::move(inputs),
                                        .control_inputs = more.after,
                                        .attrs = more.attrs,
                                        .device = more.device});
  CHECK_OK(node.status());
  return *node;
}

Node* TestProgram::Constant(const std::string& name, std::vector<float> values,
                            const NodeOptions& more) {
  NodeOptions with_value = more;
  with_value.attrs["dtype"] = DType::kFloat;
  with_value.attrs["value"] = Tensor::Vector<float>(std::move(values));
  return Add(name, "Const", {}, with_value);
}

StatusOr<std::vector<Partition>> TestProgram::Compile(const std::vector<std::string>& feeds,
                                                      const std::vector<std::string>& fetches,
                                                      const std::vector<std::string>& targets) {
  options.feeds = Parse(feeds);
  options.fetches = Parse(fetches);
  options.targets = targets;
  options.dump = [this](string_view pass, const Graph& g) {
    after.insert_or_assign(std::string(pass), g.Clone());
  };
  return penstock::Compile(graph, devices, options, &report);
}

LoopTestProgram::LoopTestProgram() {
  const Attrs frame = {{"frame_name", "f"}};
  const Attrs constant_frame = {{"frame_name", "f"}, {"is_constant", true}};
  const NodeOptions worker = {.device = kWorker};
  Node* const k = Add("k", "Noise", {}, worker);
  Node* const x = Add("x", "Input", {}, worker);
  Node* const enter_k =
      Add("enter_k", "Enter", {{k, 0}}, {.device = kWorker, .attrs = constant_frame});
  Node* const enter = Add("enter", "Enter", {{x, 0}}, {.device = kWorker, .attrs = frame});
  Node* const merge = Add("merge", "Merge", {{enter, 0}, {}}, worker);
  Node* const cond = Add("cond", "LoopCond", {{merge, 0}}, worker);
  Node* const choice = Add("switch", "Switch", {{merge, 0}, {cond, 0}}, worker);
  Node* const sum = Add("sum", "Sum2", {{choice, 1}, {choice, 1}}, {.device = kPs});
  Node* const plus = Add("plus", "Sum2", {{sum, 0}, {enter_k, 0}}, {.device = kPs});
  Node* const next = Add("next", "NextIteration", {{plus, 0}}, {.device = kWorker1});
  CHECK_OK(graph.SetInput(merge, 1, {next, 0}));
  Add("exit", "Exit", {{choice, 0}}, worker);
}

int CountOps(const Graph& graph, const std::string& op) {
  const std::vector<Node*> nodes = graph.nodes();
  return static_cast<int>(std::count_if(nodes.begin(), nodes.end(),
                                        [&](const Node* node) { return node->op_name() == op; }));
}

}  // namespace penstock

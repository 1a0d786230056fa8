// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/partition/partitioner.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/error_origin.h"
#include "core/compiler/partition/control_loops.h"
#include "core/op/edge_name.h"

namespace penstock {
namespace {

class Partitioner {
 public:
  Partitioner(const Graph& graph, const ControlLoops& loops, const std::vector<DeviceInfo>& devices)
      : graph_(graph), loops_(loops), copies_(graph.max_id(), nullptr) {
    for (const DeviceInfo& device : devices)
      incarnations_[device.name.ToString()] = device.incarnation;
  }

  StatusOr<std::vector<Partition>> Run(const std::vector<double>& urgency) {
    ASSIGN_OR_RETURN(std::vector<Node*> order, graph_.TopologicalOrder());
    SortRoots(urgency, &order);
    for (const Node* node : order) RETURN_IF_ERROR(Copy(*node));
    for (const auto& [received, iteration] : received_in_loops_) {
      GraphOf(Device(*iteration)).AddControlEdge(copies_[iteration->id()], received);
    }
    for (const auto& [node, input] : back_edges_) {
      ASSIGN_OR_RETURN(const Endpoint source, SourceFor(node->input(input), Device(*node)));
      RETURN_IF_ERROR(GraphOf(Device(*node)).SetInput(copies_[node->id()], input, source));
    }
    std::vector<Partition> partitions;
    for (auto& [device, part] : graphs_) partitions.push_back({device, std::move(part)});
    return partitions;
  }

 private:
  // Moves the roots, nodes without inputs, to the front of `order`, the most urgent first. Nodes
  // that control_loops added have no urgency and come last among the roots.
  static void SortRoots(const std::vector<double>& urgency, std::vector<Node*>* order) {
    if (urgency.empty()) return;
    const auto is_root = [](const Node* node) {
      return node->num_inputs() == 0 && node->control_inputs().empty();
    };
    const auto of = [&](const Node* node) {
      const auto id = static_cast<size_t>(node->id());
      return id < urgency.size() ? urgency[id] : 0;
    };
    const auto end = std::stable_partition(order->begin(), order->end(), is_root);
    std::stable_sort(order->begin(), end,
                     [&](const Node* a, const Node* b) { return of(a) > of(b); });
  }

  static const std::string& Device(const Node& node) { return node.assigned_device(); }

  Graph& GraphOf(const std::string& device) {
    return graphs_.try_emplace(device, graph_.registry()).first->second;
  }

  Status Copy(const Node& node) {
    const std::string& device = Device(node);
    CHECK(incarnations_.count(device) > 0, "node ", node.name(), " on unknown device ", device);
    Graph::NodeSpec spec{
        .name = node.name(), .op = node.op_name(), .attrs = node.attrs(), .device = device};
    for (int i = 0; i < node.num_inputs(); ++i) {
      const Endpoint in = node.input(i);
      if (copies_[in.node->id()] == nullptr) {  // a loop's back edge
        back_edges_.emplace_back(&node, i);
        spec.inputs.push_back({});
        continue;
      }
      if (Device(*in.node) != device && node.input_type(i).ref) {
        return WithNode(InvalidArgument("node '", node.name(), "' on ", device,
                                        " changes variable '", in.node->name(), "', which is on ",
                                        Device(*in.node), ": give both the same device"),
                        node.name());
      }
      ASSIGN_OR_RETURN(const Endpoint source, SourceFor(in, device));
      spec.inputs.push_back(source);
    }
    for (Node* control : node.control_inputs()) {
      ASSIGN_OR_RETURN(Node * source, ControlSourceFor(control, device));
      spec.control_inputs.push_back(source);
    }
    ASSIGN_OR_RETURN(copies_[node.id()], Add(device, std::move(spec)));
    return OkStatus();
  }

  // Adds a node to the graph of `device`, and assigns this device to it.
  StatusOr<Node*> Add(const std::string& device, Graph::NodeSpec spec) {
    Graph& part = GraphOf(device);
    if (part.FindNode(spec.name) != nullptr) spec.name = part.UniqueName(spec.name);
    ASSIGN_OR_RETURN(Node * node, part.AddNode(std::move(spec)));
    part.set_assigned_device(node, device);
    return node;
  }

  // Returns the output that consumers on `device` read instead of `source`. If there is none yet,
  // copies the source's node to the device or adds a transfer.
  StatusOr<Endpoint> SourceFor(const Endpoint& source, const std::string& device) {
    if (Device(*source.node) == device) return Endpoint{copies_[source.node->id()], source.index};
    Node*& received = received_[{source.node->id(), source.index, device}];
    if (received == nullptr) {
      if (source.node->op().is_constant && source.node->control_inputs().empty()) {
        ASSIGN_OR_RETURN(received, Add(device, {.name = source.node->name(),
                                                .op = source.node->op_name(),
                                                .attrs = source.node->attrs(),
                                                .device = device}));
      } else if (FlowOpOf(*source.node) == FlowOp::kEnter && !source.node->output_type(0).ref) {
        ASSIGN_OR_RETURN(received, CopyEnter(*source.node, device));
      } else {
        RETURN_IF_ERROR(CheckIsInAllIterations(*source.node, device));
        const Endpoint local{copies_[source.node->id()], source.index};
        const EdgeName edge{
            .id = source.node->id(), .node = source.node->name(), .output = source.index};
        ASSIGN_OR_RETURN(received, AddTransfer(local, edge, *source.node, device));
      }
    }
    return Endpoint{received, 0};
  }

  // Returns an error if the value is not sent in every iteration of its loop, because the receiving
  // device expects a value in every iteration.
  static Status CheckIsInAllIterations(const Node& source, const std::string& device) {
    const bool* const constant = source.attr<bool>("is_constant");
    if (FlowOpOf(source) != FlowOp::kEnter || (constant != nullptr && *constant)) return OkStatus();
    return InvalidArgument("the value behind '", source.name(), "' (", source.op_name(), "), on ",
                           Device(source), ", is read on ", device,
                           ", but a reference that is not constant enters a loop's first iteration "
                           "only: give both the same device, or lead the value in by Enter");
  }

  // Copies an Enter to `device`. A value that enters a loop is present in the first iteration only,
  // or is the same in all iterations. So the value is sent once per run of the loop, and enters the
  // loop on the device that uses it.
  StatusOr<Node*> CopyEnter(const Node& enter, const std::string& device) {
    Graph::NodeSpec spec{
        .name = enter.name(), .op = enter.op_name(), .attrs = enter.attrs(), .device = device};
    ASSIGN_OR_RETURN(const Endpoint source, SourceFor(enter.input(0), device));
    spec.inputs.push_back(source);
    for (Node* control : enter.control_inputs()) {
      ASSIGN_OR_RETURN(Node * before, ControlSourceFor(control, device));
      spec.control_inputs.push_back(before);
    }
    return Add(device, std::move(spec));
  }

  // Returns a node on `device` that runs after `source`. If there is none yet, adds a transfer.
  StatusOr<Node*> ControlSourceFor(Node* source, const std::string& device) {
    if (Device(*source) == device) return copies_[source->id()];
    if (FlowOpOf(*source) == FlowOp::kEnter && !source->output_type(0).ref) {
      ASSIGN_OR_RETURN(const Endpoint entered, SourceFor({source, 0}, device));
      return entered.node;
    }
    Node*& received = received_[{source->id(), -1, device}];
    if (received == nullptr) {
      const std::string& from = Device(*source);
      ASSIGN_OR_RETURN(Node * token,
                       Add(from, {.name = StrCat("_token_", source->name()),
                                  .op = "Const",
                                  .control_inputs = {copies_[source->id()]},
                                  .attrs = {{"dtype", DType::kFloat},
                                            {"value", Tensor(DType::kFloat, Shape({0}))}},
                                  .device = from}));
      const EdgeName edge{.id = source->id(), .node = source->name(), .output = EdgeName::kControl};
      ASSIGN_OR_RETURN(received, AddTransfer({token, 0}, edge, *source, device));
    }
    return received;
  }

  // Adds the _Send and the _Recv that move a tensor from the device of `original` to the device
  // `to`. Returns the _Recv.
  StatusOr<Node*> AddTransfer(Endpoint source, const EdgeName& edge, const Node& original,
                              const std::string& to) {
    const std::string& from = Device(original);
    const Attrs names = {{"tensor_name", edge.ToString()},
                         {"send_device", from},
                         {"send_device_incarnation", static_cast<int64_t>(incarnations_.at(from))},
                         {"recv_device", to},
                         {"client_terminated", false}};
    const DType dtype = source.node->output_type(source.index).dtype;
    Attrs send = names;
    send["T"] = dtype;
    RETURN_IF_ERROR(Add(from, {.name = StrCat("_send_", source.node->name(), "_", source.index),
                               .op = "_Send",
                               .inputs = {source},
                               .attrs = std::move(send),
                               .device = from})
                        .status());
    Attrs recv = names;
    recv["tensor_type"] = dtype;
    ASSIGN_OR_RETURN(Node * received,
                     Add(to, {.name = StrCat("_recv_", source.node->name(), "_", source.index),
                              .op = "_Recv",
                              .attrs = std::move(recv),
                              .device = to}));
    const int frame = loops_.frames.of_outputs[original.id()];
    if (frame != 0) received_in_loops_.emplace_back(received, loops_.iterations.at({frame, to}));
    return received;
  }

  const Graph& graph_;
  const ControlLoops& loops_;
  std::map<std::string, uint64_t> incarnations_;  // by device
  std::map<std::string, Graph> graphs_;           // by device
  std::vector<Node*> copies_;                     // by original id
  // (original id, output or -1 for control, destination) -> its copy or _Recv there
  std::map<std::tuple<int, int, std::string>, Node*> received_;
  std::vector<std::pair<const Node*, int>> back_edges_;
  // A _Recv in a loop, and the node that runs on its device in each iteration.
  std::vector<std::pair<Node*, const Node*>> received_in_loops_;
};

}  // namespace

StatusOr<std::vector<Partition>> PartitionGraph(const Graph& graph,
                                                const std::vector<DeviceInfo>& devices,
                                                const std::vector<double>& urgency) {
  ControlLoops loops;
  ASSIGN_OR_RETURN(loops.frames, FindLoopFrames(graph));
  if (!loops.frames.any()) return Partitioner(graph, loops, devices).Run(urgency);
  Graph with_loops = graph.Clone();
  ASSIGN_OR_RETURN(loops, AddControlLoops(&with_loops));
  return Partitioner(with_loops, loops, devices).Run(urgency);
}

}  // namespace penstock

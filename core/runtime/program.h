// SPDX-License-Identifier: Apache-2.0
//
// Program: a partition as the executor runs it: kernels, and the graph as flat arrays, its nodes in
// topological order. Made once, shared by all steps; private to this folder.
//
// Thread-safe: immutable, but for what is learned of the cost of its nodes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/op/kernel.h"
#include "core/runtime/device.h"

namespace penstock {

class Program {
 public:
  // A value's way from output `output` of a node to slot `slot`, an input of node `dst`.
  struct Edge {
    uint32_t dst;
    uint32_t slot;
    uint32_t output : 31;
    uint32_t last : 1;  // of this output: it takes the tensor, the others get copies
  };

  // What makes a node more than "run the kernel, pass the outputs on"; 0 for most.
  enum Special : uint32_t {
    kNoOp = 1,            // nothing to run, only order
    kAsync = 2,           // ends when its Done is called
    kReadsVariables = 4,  // takes values from reference edges
    kCopiesInputs = 8,    // takes values from the other side, host or device
    kHostOutputs = 16,    // leaves some outputs in the host's memory
    kMayBeDead = 32,      // an output without a value is dead, not forgotten
    kRunsDead = 64,       // runs although an input is dead
  };

  // One cache line.
  struct Item {
    Kernel* kernel;
    const Node* node;
    const DType* output_dtypes;  // a reference is a kResource
    uint32_t first_input;        // slot
    uint32_t num_inputs;
    uint32_t num_outputs;
    uint32_t first_edge;
    uint32_t num_edges;
    uint32_t first_control;
    uint32_t num_controls;
    uint32_t special;
    uint32_t detail;    // index, where special
    bool drops_output;  // an output has no consumer
  };
  static_assert(sizeof(Item) <= 64);

  // The rest, of special nodes.
  struct Detail {
    AsyncKernel* async = nullptr;
    int wait = -1;                           // its place among the nodes that may wait
    std::vector<uint32_t> variable_inputs;   // to be read
    std::vector<uint32_t> inputs_to_host;    // to be copied
    std::vector<uint32_t> inputs_to_device;  // to be copied
    std::unique_ptr<bool[]> output_on_host;  // where special says so
  };

  // Errors name the node.
  static StatusOr<std::unique_ptr<Program>> Make(Graph graph, Device& device);

  const Item& item(uint32_t i) const { return items_[i]; }
  const Detail& detail(const Item& item) const { return details_[item.detail]; }
  uint32_t num_items() const { return static_cast<uint32_t>(items_.size()); }
  const Edge* edges() const { return edges_.data(); }
  const uint32_t* controls() const { return controls_.data(); }
  const std::vector<uint32_t>& roots() const { return roots_; }
  // Nodes that may wait, by Detail::wait; some are asynchronous, some wait for copies.
  const std::vector<uint32_t>& waiting_items() const { return waiting_items_; }
  uint32_t num_slots() const { return num_slots_; }
  uint32_t outputs_max() const { return outputs_max_; }

  // The word that a step counts down: edges yet to come, and whether the node is expensive, in
  // which case another thread may run it.
  static constexpr uint32_t kDead = 1u << 31;
  static constexpr uint32_t kExpensive = 1u << 30;
  static constexpr uint32_t kCount = kExpensive - 1;
  uint32_t pending(uint32_t i) const { return pending_[i].load(std::memory_order_relaxed); }

  // What one execution of node `i` was seen to take.
  void RecordCost(uint32_t i, int64_t nanos) const;

 private:
  explicit Program(Graph graph) : graph_(std::move(graph)) {}
  Status MakeItem(Node* node, Device& device);
  Status AddKernel(const Node& node, Device& device, Item* item, Detail* detail);
  void Connect();

  Graph graph_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<Item> items_;
  std::vector<Detail> details_;
  std::vector<Edge> edges_;
  std::vector<uint32_t> controls_;
  std::vector<uint32_t> roots_;
  std::vector<uint32_t> waiting_items_;
  std::vector<DType> output_dtypes_;
  uint32_t num_slots_ = 0;
  uint32_t outputs_max_ = 0;
  std::unique_ptr<std::atomic<uint32_t>[]> pending_;
  std::unique_ptr<std::atomic<int32_t>[]> cost_ns_;
};

// The error with the node's name in the form that clients look for, unless it names one already:
// "text\n\t [[{{node NAME}}]]". Payloads are kept.
Status AtNode(const Status& status, string_view node);

}  // namespace penstock

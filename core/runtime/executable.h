// SPDX-License-Identifier: Apache-2.0
//
// Executable: the executable form of one partition: its kernels, and its graph as flat arrays. The
// executor makes it once, and all steps share it. Private to this folder.
//
// The nodes of one loop (frame) are stored together, in topological order; the nodes outside of
// loops come first. A slot is the storage for one input of a node. Nodes, slots and waits are
// numbered within their frame, because each iteration of a loop has its own counts and values.
//
// Thread-safe: immutable except for the measured costs of its nodes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/graph/loop_frames.h"
#include "core/op/kernel.h"
#include "core/runtime/device.h"
#include "core/runtime/kernel_cache.h"
#include "core/runtime/swapped_stacks.h"

namespace penstock {

class Executable {
 public:
  // An edge from output `output` of a node to slot `slot`, an input of node `dst`.
  struct Edge {
    uint32_t dst;
    uint32_t slot;
    uint32_t output : 30;
    uint32_t merges : 1;  // dst has kMerges: its pending word has the fields of a Merge
    uint32_t last : 1;    // the output's last edge: it moves the tensor, other edges copy it
  };

  // Flags of special nodes: those for which the executor does more than run the kernel and pass its
  // outputs on. Most nodes have none.
  enum Special : uint32_t {
    kNoOp = 1,            // has no kernel; only its control edges matter
    kAsync = 2,           // asynchronous: ends when its Done is called
    kReadsVariables = 4,  // reads the variables behind ref edges
    kCopiesInputs = 8,    // needs copies of inputs between host and device
    kHostOutputs = 16,    // leaves some outputs in host memory
    kMayBeDead = 32,      // may set no value for an output; the output is then dead
    kRunsDead = 64,       // runs even if an input is dead
    kFlow = 128,          // a control-flow node, without a kernel; Item::flow is its kind
    kFeedsMerge = 256,    // an edge leads to a node with kMerges
    kMerges = 512,        // runs when its first live input arrives, or all inputs are dead
    kFetch = 1024,
    kCommits = 2048,  // the nodes after it run even if the step has failed
  };

  // One node. An Item fills one cache line.
  struct alignas(64) Item {
    Kernel* kernel;
    const Node* node;
    const DType* output_dtypes;  // kResource for a reference
    uint32_t first_input;        // the slot of input 0
    uint32_t num_inputs;
    uint32_t num_outputs;
    uint32_t first_edge;
    uint32_t num_edges;
    uint32_t first_control;
    uint32_t num_controls;
    uint32_t detail;  // index of the node's Detail, if special != 0
    uint16_t special;
    FlowOp flow;
    bool drops_output;  // true if an output has no consumer

    // Returns whether an output's value may be left over after all edges have been served: it has
    // no consumer, or its consumer is a Merge, which takes only the first live input.
    bool may_drop() const { return drops_output || (special & kFeedsMerge) != 0; }
  };
  static_assert(sizeof(Item) == 64);

  // Further fields of special nodes.
  struct Detail {
    AsyncKernel* async = nullptr;
    int wait = -1;                           // index among the loop's nodes that may wait
    std::vector<uint32_t> variable_inputs;   // inputs to replace by the variable's value
    std::vector<uint32_t> inputs_to_host;    // inputs to copy to the host
    std::vector<uint32_t> inputs_to_device;  // inputs to copy to the device
    std::unique_ptr<bool[]> output_on_host;  // set if kHostOutputs
    uint32_t loop = 0;                       // for an Enter: the loop that it leads into
    int constant = -1;                       // for an Enter: index among the loop's constants
    int exit = -1;                           // for an Exit: index among the loop's exits
  };

  // The nodes of one loop (a frame), without those of its inner loops. loops()[0] has the nodes
  // outside of loops.
  struct Loop {
    std::string name;
    uint32_t parent = 0;
    uint32_t child = 0;         // index among the parent's children
    uint32_t num_children = 0;  // loops directly inside
    uint32_t first_item = 0;
    uint32_t num_items = 0;
    uint32_t num_slots = 0;
    uint32_t num_enters = 0;
    uint32_t num_constants = 0;
    int64_t parallel_iterations = 1;
    std::vector<uint32_t> exits;  // the loop's Exit nodes
    std::vector<uint32_t> waits;  // the nodes that may wait, indexed by Detail::wait
    // The initial counts of later iterations, by node, if they differ from those of the first
    // iteration.
    std::vector<std::pair<uint32_t, uint32_t>> later_pending;
  };

  // Makes the executable form of `graph` for `device`. Errors name the node. If `cache` is null, no
  // kernel is shared with other executables.
  static StatusOr<std::unique_ptr<Executable>> Make(Graph graph, Device& device,
                                                    KernelCache* cache = nullptr);

  const Graph& graph() const { return graph_; }
  const Item* items() const { return items_.data(); }
  const Detail& detail(const Item& item) const { return details_[item.detail]; }
  uint32_t IndexOf(const Item& item) const { return static_cast<uint32_t>(&item - items()); }
  uint32_t num_items() const { return static_cast<uint32_t>(items_.size()); }
  const Edge* edges() const { return edges_.data(); }
  const uint32_t* controls() const { return controls_.data(); }
  // Returns the nodes without inputs. All of them are outside of loops.
  const std::vector<uint32_t>& roots() const { return roots_; }
  const std::vector<Loop>& loops() const { return loops_; }
  uint32_t outputs_max() const { return outputs_max_; }

  // The bits of the pending word that a step has for each node: whether an input is dead; whether
  // the node is expensive, so that another thread may run it; and the number of edges over which
  // nothing has arrived yet.
  static constexpr uint32_t kDead = 1u << 31;
  static constexpr uint32_t kExpensive = 1u << 30;
  static constexpr uint32_t kCount = kExpensive - 1;
  // For a node with kMerges the pending word has other fields. kClaimed: a live input is being
  // written to its slot, or has arrived. kAlive: it has arrived. kControls: the number of pending
  // control edges. kInputs: the number of inputs that are not known to be dead.
  static constexpr uint32_t kClaimed = 1u << 29;
  static constexpr uint32_t kAlive = 1u << 28;
  static constexpr uint32_t kControl = 1u << 14;
  static constexpr uint32_t kControls = kAlive - kControl;
  static constexpr uint32_t kInputs = kControl - 1;
  static bool MergeReady(uint32_t word) {
    return (word & kControls) == 0 && ((word & kAlive) != 0 || (word & kInputs) == 0);
  }
  // Returns the initial pending count of item `i`.
  uint32_t pending(uint32_t i) const { return pending_[i].load(std::memory_order_relaxed); }
  // Copies the initial pending counts of the items of `loop` to `counts`.
  void ReadPending(const Loop& loop, std::atomic<uint32_t>* counts) const {
    const std::atomic<uint32_t>* const pending = &pending_[loop.first_item];
    for (uint32_t i = 0, n = loop.num_items; i < n; ++i) {
      counts[i].store(pending[i].load(std::memory_order_relaxed), std::memory_order_relaxed);
    }
  }

  // Records how long one execution of item `i` took, to learn whether the item is expensive. Caps
  // the sample at twice the limit of a cheap item. (The times in StepStats, from which the
  // compiler's CostTable is made, are not capped.)
  void RecordCost(uint32_t i, int64_t nanos) const;
  // Returns whether the measured times of all items add up to only some microseconds, and no item
  // may wait.
  bool quick() const;

 private:
  explicit Executable(Graph graph) : graph_(std::move(graph)) {}
  void MakeLoops(const LoopFrames& frames);
  Status MakeItem(Node* node, Loop& loop, Device& device);
  Status AddKernel(const Node& node, Device& device, Item* item, Detail* detail);
  Status PlaceArguments(const Node& node, Device& device, Item* item, Detail* detail);
  void AddFlow(const LoopFrames& frames);
  Status AddCounts(const LoopFrames& frames);
  Status CountInputs(const Item& item, Loop* loop, uint32_t* count);
  void AddEdges(const LoopFrames& frames);
  void AddEdgesOf(Item& item, const std::vector<const Item*>& item_of, const LoopFrames& frames);
  uint32_t IndexInLoop(const Item& item, const LoopFrames& frames) const;

  Graph graph_;
  KernelCache* cache_ = nullptr;  // only while the Executable is made
  SwappedStacks swapped_;         // empty if the host can read the device's memory
  std::vector<std::shared_ptr<Kernel>> kernels_;
  std::vector<Item> items_;
  std::vector<Detail> details_;
  std::vector<Edge> edges_;
  std::vector<uint32_t> controls_;
  std::vector<uint32_t> roots_;
  std::vector<Loop> loops_;
  std::vector<DType> output_dtypes_;
  uint32_t outputs_max_ = 0;
  std::unique_ptr<std::atomic<uint32_t>[]> pending_;
  std::unique_ptr<std::atomic<int32_t>[]> cost_ns_;
};

}  // namespace penstock

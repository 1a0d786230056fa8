// SPDX-License-Identifier: Apache-2.0
//
// MemoryModel: predicts the memory that a placed step takes on each device while its nodes run in a
// given order. MemoryPlan judges changes of the graph by this prediction.
//
// An output takes memory from the start of its node until the last node that reads the output has
// ended, unless it shares the memory of another output (buffer_sharing.h). A tensor from another
// task takes memory on the receiving device as soon as the other task has computed it. On the
// sending device it takes memory until its reader in the other task has ended, because only then it
// has surely been sent. An update of a variable copies the value if a node has still to read a
// snapshot of it. Not counted: memory that a kernel takes only while it runs, names of tensors in
// messages, and the contents of strings. The model assumes one iteration of each loop, and that
// every branch is taken.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/compiler/pass/cost_table.h"
#include "core/graph/graph.h"

namespace penstock {

// Returns the bytes that the allocator takes for a tensor of `bytes` bytes: above 32 KiB, it rounds
// up to whole pages.
double AllocatedBytes(double bytes);

struct MemoryProfile {
  // A buffer that lives from the position of the node that makes it to the position of the last
  // node that needs it.
  struct Buffer {
    Endpoint value;  // the output for which the buffer was allocated
    int device = 0;
    double bytes = 0;
    int begin = 0, end = 0;  // positions; `end` is the number of nodes if the buffer outlives all
    bool received = false;   // true if the tensor comes from another task
    bool counted = true;     // false for variables, constants and feeds
    std::vector<Endpoint> values = {};  // all outputs that the buffer has held, in order of nodes

    // Returns whether the buffer holds, or held, the value of a variable. Then `value` is the
    // variable's handle.
    bool is_state() const { return value.node->output_type(value.index).refers_to_state(); }
  };
  struct Device {
    double peak_bytes = 0;       // peak bytes of the step's tensors
    double peak_own_bytes = 0;   // the peak without tensors from other tasks
    int peak_at = 0;             // the position of the node that runs at the peak
    double state_bytes = 0;      // variables that the step uses
    double fed_bytes = 0;        // feeds that enter the step on this device
    std::vector<double> during;  // bytes in use, by position
  };
  // A node that changes a variable, and the node that made the variable's handle.
  struct Update {
    const Node* state = nullptr;
    const Node* by = nullptr;
  };
  std::vector<Device> devices;  // indexed as MemoryModel::devices()
  std::vector<Buffer> buffers;  // in the order in which the nodes make them
  std::vector<Update> updates;  // in the order in which the nodes run

  // Returns by how much, and for how long, devices exceed `limit`: the sum, over devices and
  // positions, of the bytes above the limit. 0 if the step fits.
  double Excess(double limit) const;
};

class MemoryModel {
 public:
  // Takes the sizes of outputs from `costs`. Borrows the graph. REQUIRES: `costs` has estimates for
  // the graph.
  MemoryModel(const Graph& graph, const CostTable& costs);

  // Adds a node that was added to the graph after construction; its outputs have the sizes of those
  // of `node`.
  void AddCopy(const Node& copy, const Node& node);
  // Adds a node that was added to the graph after construction; its only output has `bytes` bytes.
  void AddNode(const Node& node, double bytes);

  // Returns the bytes that the allocator reserves for the value.
  double Bytes(const Endpoint& value) const;
  const std::vector<std::string>& devices() const { return devices_; }  // in order of name
  int DeviceOf(const Node& node) const { return device_of_[node.id()]; }
  // Returns whether the tensors of two devices are in the same memory.
  bool ShareMemory(int a, int b) const { return memory_of_[a] == memory_of_[b]; }
  // Returns the profile of a step that runs its nodes in this order. `order` has every node once,
  // after the nodes whose outputs it reads and after its control inputs; the back edges of loops do
  // not count.
  MemoryProfile Profile(absl::Span<Node* const> order) const;

 private:
  friend class MemorySimulation;
  void SetNode(const Node& node, std::vector<double> bytes);

  const Graph& graph_;
  std::vector<std::string> devices_;
  std::vector<int> memory_of_;                     // by device: the number of its memory
  std::vector<int> device_of_;                     // by node id
  std::vector<std::vector<double>> output_bytes_;  // by node id
};

}  // namespace penstock

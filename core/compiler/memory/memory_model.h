// SPDX-License-Identifier: Apache-2.0
//
// MemoryModel: the memory that a placed step takes on each device while its nodes run in a given
// order: what is predicted before the first step, and what transformations are judged by.
//
// An output takes memory from when its node begins until the last node that reads it has ended,
// unless it shares another's (buffer_sharing.h). What another task's node reads is there as soon as
// it is made. An update of a variable copies its value if a snapshot of it is still to be read.
// Not counted: memory that a kernel takes only while it runs, and the keys and strings of tensors.
// A loop counts as one iteration, and a branch as taken.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/compiler/pass/cost_table.h"
#include "core/graph/graph.h"

namespace penstock {

// Bytes, as the allocator hands them out: whole pages above 32 KiB.
double AllocatedBytes(double bytes);

struct MemoryProfile {
  // A buffer, from the position of the node that makes it to that of the last node that needs it.
  struct Buffer {
    Endpoint value;  // the output that it was made for
    int device = 0;
    double bytes = 0;
    int begin = 0, end = 0;  // positions; `end` is the number of nodes if it outlives them
    bool received = false;   // from another task
    bool counted = true;     // false: variables, constants and feeds
    std::vector<Endpoint> values = {};  // all that it has held, in the order of their nodes
  };
  struct Device {
    double peak_bytes = 0;       // of the step's tensors
    double peak_own_bytes = 0;   // the same without those that came from other tasks
    int peak_at = 0;             // the position of the node that runs at the peak
    double state_bytes = 0;      // variables that the step uses
    double fed_bytes = 0;        // feeds that enter here
    std::vector<double> during;  // by position
  };
  // A node that changes a variable, and the node that made the variable's handle.
  struct Update {
    const Node* state = nullptr;
    const Node* by = nullptr;
  };
  std::vector<Device> devices;  // as MemoryModel::devices
  std::vector<Buffer> buffers;  // in the order in which they are made
  std::vector<Update> updates;  // in order

  // How far, and for how long, devices are above `limit`: bytes times positions. 0: it fits.
  double Excess(double limit) const;
};

class MemoryModel {
 public:
  // The sizes of outputs are those of `costs`, which has estimates for the graph. Borrows the
  // graph.
  MemoryModel(const Graph& graph, const CostTable& costs);

  // Gives a node that was added since the sizes of its outputs, those of `node`.
  void AddCopy(const Node& copy, const Node& node);
  // Gives an added node of one output its size.
  void AddNode(const Node& node, double bytes);

  double Bytes(const Endpoint& value) const;                            // as allocated
  const std::vector<std::string>& devices() const { return devices_; }  // in order of name
  int DeviceOf(const Node& node) const { return device_of_[node.id()]; }
  // Whether the tensors of two devices are in one memory.
  bool ShareMemory(int a, int b) const { return memory_of_[a] == memory_of_[b]; }
  // `order` has every node once, after the nodes whose outputs it reads and its control inputs; the
  // back edges of loops do not count.
  MemoryProfile Profile(absl::Span<Node* const> order) const;

 private:
  friend class MemorySimulation;
  void SetNode(const Node& node, std::vector<double> bytes);

  const Graph& graph_;
  std::vector<std::string> devices_;
  std::vector<int> memory_of_;                     // by device: where tensors are shared
  std::vector<int> device_of_;                     // by node id
  std::vector<std::vector<double>> output_bytes_;  // by node id
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Restoring: one attempt to free a buffer for a part of the step. The nodes that read the buffer
// late get a copy instead, which is made shortly before they run. Private to this folder.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/compiler/memory/memory_plan.h"

namespace penstock {

class Restoring {
 public:
  // Prepares an attempt to free `buffer` (an index into the plan's profile) while the node at
  // `position` runs.
  Restoring(MemoryPlan* plan, int buffer, int position, MemoryPlan::Method means);

  // Changes graph and order. Returns false if the buffer cannot be freed by this method. After
  // false or an error, Undo must be called.
  StatusOr<bool> Apply();
  // Undoes all changes of Apply.
  void Undo();
  int num_added() const { return num_added_; }

 private:
  using Value = std::pair<int, int>;  // node id, output
  // An input that is to read the copy.
  struct Reader {
    Node* node;
    int input;
    Endpoint value;
  };
  static constexpr int kDepthMax = 8;  // the maximum length of a chain of recomputed nodes

  bool FindReaders();
  StatusOr<bool> Restore(const Endpoint& value, int depth, Endpoint* restored);
  StatusOr<bool> CopyNode(const Endpoint& value, int depth, Endpoint* restored);
  StatusOr<bool> SwapThroughFile(const Endpoint& value, Endpoint* restored);
  bool IsInMemory(const Endpoint& value) const;
  bool IsCheap(const Node& node) const;
  int BufferOf(const Endpoint& value) const;
  bool IsViewOfInput(const Endpoint& value) const;
  StatusOr<Node*> Add(Graph::NodeSpec spec, const std::string& device, int position);
  int SwapInPosition() const;
  int SwapOutPosition(const Node& maker) const;

  MemoryPlan& plan_;
  Graph& graph_;
  const MemoryProfile::Buffer buffer_;
  const int index_, position_;
  const MemoryPlan::Method method_;
  const int first_id_;
  const std::vector<Node*> order_before_;
  std::vector<int> position_of_;  // by node id: position in order_before_
  std::map<Value, int> buffers_;  // the buffer that holds a value on the device of its node
  std::vector<Reader> readers_;   // inputs that read the buffer late, in order
  int first_late_ = 0;            // the position of the first late reader
  int last_early_ = 0;            // the last position before position_ that uses the buffer
  std::map<Value, Endpoint> restored_;
  std::vector<std::pair<int, Node*>> added_;  // position in order_before_, node
  int num_added_ = 0;
};

}  // namespace penstock

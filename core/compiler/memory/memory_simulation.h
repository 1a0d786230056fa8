// SPDX-License-Identifier: Apache-2.0
//
// MemorySimulation: walks over the nodes of a step in a given order, and makes, shares and frees
// buffers as the executor does. Private to this folder.
#pragma once

#include <map>
#include <vector>

#include "absl/types/span.h"
#include "core/compiler/memory/buffer_sharing.h"
#include "core/compiler/memory/memory_model.h"

namespace penstock {

class MemorySimulation {
 public:
  MemorySimulation(const MemoryModel& model, absl::Span<Node* const> order);
  MemoryProfile Run();

  // Simulates one more node, for callers that choose the order node by node. The constructor's
  // `order` may then be empty.
  void RunNode(const Node& node);
  // Returns by how many bytes the memory in use on the node's device would change if the node ran
  // next. Negative if the node frees more than it allocates.
  double ChangeInBytes(const Node& node) const;

 private:
  using Buffer = MemoryProfile::Buffer;
  static constexpr int kNone = -1;
  // The reads of a buffer that are left until it can be freed.
  struct Uses {
    int left = 0;
    bool counted = true;  // false for state, constants and feeds
  };

  int Find(const Endpoint& value, int memory) const;
  // Returns the buffer that the node reads as this input, or kNone.
  int InputBuffer(const Node& node, int input) const;
  // Returns the buffer from which this input is sent to the node's task; kNone if the node reads
  // that buffer itself.
  int SentBuffer(const Node& node, int input) const;
  int NewBuffer(const Endpoint& value, int device, double bytes, bool counted);
  void MakeOutputs(const Node& node);
  int LargestInput(const Node& node) const;
  bool MergeIsCopy(const Node& node) const;
  bool OnlyMergeReads(const Endpoint& value, const Node& merge) const;
  int MergedBuffer(const Node& node, const Endpoint& value);
  int ReusedBuffer(const Node& node, int output, const Sharing& sharing) const;
  int UsesOf(const Node& node, int buffer) const;
  void CountUses(const Node& node, int output, int buffer);
  void CopyStateThatIsRead(const Node& node);
  void Release(int buffer, int uses);
  void Count(int device, const Buffer& buffer, double sign);
  const Node* StateOf(const Node& node, int input) const;
  int StateBuffer(const Node& node, int input, int device);
  int MemoryOf(const Node& node) const { return model_.memory_of_[model_.DeviceOf(node)]; }

  const MemoryModel& model_;
  const absl::Span<Node* const> order_;
  int position_ = 0;
  MemoryProfile profile_;
  std::vector<Uses> uses_;                 // by buffer
  std::vector<double> bytes_, own_bytes_;  // by device
  std::vector<std::vector<int>>
      buffer_of_;  // by node id and output: the buffer on the device that made it
  std::map<std::pair<std::pair<int, int>, int>, int> received_;  // (node, output), memory -> copy
  std::vector<const Node*> state_of_;  // by node id: the state that its outputs refer to
  std::map<int, int> state_buffer_;    // by id of the state's node: the buffer of its value
};

}  // namespace penstock

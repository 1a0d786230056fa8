// SPDX-License-Identifier: Apache-2.0
//
// BufferRanges: for each buffer of a step, the nodes between which it may be in memory, whatever
// the order in which nodes run. Private to this folder.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/compiler/memory/memory_model.h"
#include "core/graph/graph.h"

namespace penstock {

// A buffer is in memory from the start of its maker until all users have ended.
struct BufferRange {
  Endpoint value;  // the output for which it was allocated
  int device = 0;
  double bytes = 0;
  bool received = false;  // true if it comes from another task
  const Node* maker = nullptr;
  std::vector<const Node*> users = {};
};

class BufferRanges {
 public:
  // Tells whether the first node has to end before the second node begins. May return false though
  // the answer is yes; the ranges are then too long.
  using Precedes = absl::FunctionRef<bool(const Node&, const Node&)>;

  // Takes the ranges from a profile of the step in any order. Adds buffers of less than `bytes_min`
  // bytes to small_bytes() instead. Borrows the model and the profile.
  BufferRanges(const MemoryModel& model, const MemoryProfile& profile, double bytes_min);

  // Returns, by device, the sum of the bytes of small buffers.
  const std::vector<double>& small_bytes() const { return small_; }
  // Returns the number of ranges.
  size_t size() const { return ranges_.size(); }
  // Returns all nodes that Get may give to `precedes` as its first argument, with duplicates.
  std::vector<const Node*> Nodes() const;
  // Returns the ranges that take memory on the device, or on any device. Two ranges become one if
  // the second surely reuses the memory of the first. For a variable, calls `precedes` at most 12
  // times for each pair of an update and a reader of a snapshot.
  static constexpr int kAnyDevice = -1;
  std::vector<BufferRange> Get(Precedes precedes, int device = kAnyDevice) const;

 private:
  using Buffer = MemoryProfile::Buffer;
  using Value = std::pair<int, int>;  // node id, output

  // `reader` reads the value that a variable had when `taken` ran.
  struct SnapshotReader {
    const Node* taken = nullptr;
    const Node* reader = nullptr;
  };
  // An update of a variable, and the range of the copy that it may have to make; -1 if none counts.
  struct Copy {
    const Node* update = nullptr;
    int range = -1;
  };
  struct Variable {
    std::vector<const Buffer*> buffers;   // that have held its values
    std::vector<SnapshotReader> readers;  // those of one snapshot stand together
    std::vector<Copy> copies;             // in the order in which the updates run
  };
  // `node` writes range `to` into the memory of range `from`, if no other node still needs `from`.
  struct Reuse {
    int from = 0, to = 0;
    const Node* node = nullptr;
  };

  void AddRanges(const Buffer& buffer);
  void AddCopy(const MemoryProfile::Update& update);
  void FindReaders(Variable* variable) const;
  void FindUsersOfCopies(Precedes precedes, const Variable& variable, int device,
                         std::vector<BufferRange>* ranges) const;
  bool HasCopy(const Variable& variable, int device) const;
  bool IsWanted(int range, int device) const {
    return device == kAnyDevice || ranges_[range].device == device;
  }
  template <class Add>
  void ForReaders(const Buffer& buffer, const Endpoint& value, Add add) const;

  const MemoryModel& model_;
  const double bytes_min_;
  std::vector<double> small_;          // by device
  std::map<int, Variable> variables_;  // by id of the handle's node
  std::vector<BufferRange> ranges_;
  std::vector<Reuse> reuses_;  // in order
};

}  // namespace penstock

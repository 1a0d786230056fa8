// SPDX-License-Identifier: Apache-2.0
//
// StateLog: receives every change of every resource of one ResourceStore, in commit order.
// Replication, incremental checkpoints, exactly-once recovery, staleness bounds and replay use it.
//
// A record holds the values that a step applied, not how the step computed them. StateReplayer
// (core/op/state_replay.h) applies records to a store with the same history. Records are made only
// if a log is attached.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock {

// The step and the node that make a change. Empty for a change that no step makes, such as the
// reset of a container. The strings are borrowed from the running kernel: they are valid until its
// Compute returns or its Done is called.
struct UpdateOrigin {
  int64_t step_id = 0;
  uint64_t incarnation = 0;  // the task's incarnation; 0: unknown
  string_view device = {};   // full name: "/job:ps/replica:0/task:0/device:CPU:0"
  string_view node = {};
};

struct ResourceId {
  string_view container, name;
  string_view type;  // Resource::TypeName()
  // Unique in its store; a new resource with the name of a removed one has another id. A step that
  // still holds the handle of a removed resource may change that resource. By the id, a reader of
  // the log tells such a change from a change of the new resource, and must skip it, because it has
  // no effect on the store.
  uint64_t id = 0;
};

// The actions that the store itself records. All other actions are listed in the header of the
// resource class that records them.
inline constexpr char kCreateAction[] = "create";  // values: Resource::Describe()
inline constexpr char kRemoveAction[] = "remove";  // no values

struct ResourceChange {
  ResourceId resource;
  // The resource's version after the change. Every change except creation and removal raises it by
  // one.
  int64_t version = 0;
  string_view action;
  // The tensors may share buffers with the resource: if a log keeps them, the next update of a
  // variable must copy the value. They may be in a device's memory; a log must then read them by
  // work on the device's stream.
  std::vector<Tensor> values;
  // The reason why the change cannot be replayed (Resource::OpaqueReason); empty if it can.
  string_view opaque = {};
};

// Changes that take effect together: all of them, or none. Usually this is one change of one
// resource. But an optimizer's update changes a variable and its slots, and clearing a container
// removes all resources in it.
struct StateChange {
  UpdateOrigin origin;
  absl::Span<const ResourceChange> parts;
};

class StateLog {
 public:
  virtual ~StateLog() = default;
  // Called under the locks of all resources that change. So the records of one resource come in the
  // order of its versions, and a change is recorded before any step sees it. For creations and
  // removals only the store's lock is held, so an update that runs at the same time may be recorded
  // after the removal. Several threads may call Record at once for different resources; any order
  // in which the log writes their records is a commit order. `change` is borrowed during the call.
  // Record must be quick, and must not call the store or its resources.
  virtual void Record(const StateChange& change) = 0;
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// StateLog: sees every change of every resource of one ResourceStore, in commit order. Replication,
// incremental checkpoints, exactly-once recovery, staleness bounds and replay read such a log.
//
// A record says what a step applied, not how: values that StateReplayer (core/op/state_replay.h)
// applies to a store with the same history. It is made only where a log is attached.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock {

// The step and node that make a change. Empty if no step does, as when containers are reset. The
// strings are borrowed from the kernel that runs: they are valid until its Compute returns or its
// Done is called.
struct UpdateOrigin {
  int64_t step_id = 0;
  uint64_t incarnation = 0;  // of the task; 0: unknown
  string_view device = {};   // full name: "/job:ps/replica:0/task:0/device:CPU:0"
  string_view node = {};
  // The part of `device` that names the task.
  string_view task() const { return device.substr(0, device.find("/device:")); }
};

struct ResourceId {
  string_view container, name;
  string_view type;  // Resource::TypeName()
  // Unique in its store. Two resources that had one name after the other have different ids, so
  // that a late change of a removed resource, by a step that still holds its handle, cannot be
  // taken for one of its successor. Such a change matters to nobody: skip it.
  uint64_t id = 0;
};

// The actions that the store itself records. All others belong to a class of resources, whose
// header lists them with their values.
inline constexpr char kCreateAction[] = "create";  // values: Resource::Describe()
inline constexpr char kRemoveAction[] = "remove";  // no values

struct ResourceChange {
  ResourceId resource;
  // The resource's version after the change. Every change but its creation and removal raises it by
  // one.
  int64_t version = 0;
  string_view action;
  // They share buffers with the resource: a log that keeps them makes the next update of a variable
  // write into a copy. A value of a device's resource may be in the device's memory; read it in the
  // order of the device's stream.
  std::vector<Tensor> values;
  // Why the change cannot be replayed (Resource::OpaqueReason); empty: it can.
  string_view opaque = {};
};

// What one step changed at once. Usually one resource; an optimizer's update changes a variable and
// its slots, clearing a container removes all that is in it. All parts take effect, or none.
struct StateChange {
  UpdateOrigin origin;
  absl::Span<const ResourceChange> parts;
};

class StateLog {
 public:
  virtual ~StateLog() = default;
  // Called under the lock of each resource that changed, so that the records of one resource come
  // in the order of its versions, and a change is recorded before it can be seen. Creations and
  // removals come under the store's lock alone: an update that runs meanwhile may be recorded after
  // the removal. Several threads may call it at once for different resources; whatever order the
  // log gives their records is a commit order. `change` is borrowed for the time of the call. It
  // must be quick, and must not call the store or its resources.
  virtual void Record(const StateChange& change) = 0;
};

}  // namespace penstock

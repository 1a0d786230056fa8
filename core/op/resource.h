// SPDX-License-Identifier: Apache-2.0
//
// Resource: state that outlives a step, such as a variable, a queue or a table. Each device keeps
// its resources by name, in containers. ResourceStore: the containers of one device.
//
// Thread-safe. A resource is identified on its device by (container, name); container "" means
// kDefaultContainer. All sessions of the process share resources, except isolated sessions, each of
// which has its own store.
//
// Every change of a resource calls Resource::Changed, which raises its version and records the
// change in the store's StateLog, if there is one. A resource may also keep hints, such as the
// marks of a dynamic table. Hints only save work: a resource without them gives equally good
// results. They are neither described nor recorded, and const functions may change them.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/op/state_log.h"
#include "core/tensor/resource_handle.h"

namespace penstock {

inline constexpr char kDefaultContainer[] = "localhost";

class Resource {
 public:
  virtual ~Resource() = default;
  virtual const char* TypeName() const = 0;  // "Variable"
  virtual std::string DebugString() const = 0;
  // Wakes all threads and operations that wait on the resource, because its container is being
  // cleared.
  virtual void Shutdown() {}
  // Returns the number of changes so far.
  int64_t version() const { return version_.load(std::memory_order_acquire); }

  // Returns null if the records of a StateLog can rebuild the resource in another store. That needs
  // a maker registered for TypeName() (core/op/state_replay.h), which takes the values that
  // Describe returns, and a Replay that applies every change. Otherwise returns the reason, as the
  // end of a sentence: "it lives within one step". The resource's changes are recorded in either
  // case.
  virtual const char* OpaqueReason() const = 0;
  // Returns the values from which a maker builds an equal resource, without its history. REQUIRES:
  // no other thread has access to the resource yet.
  virtual std::vector<Tensor> Describe() const { return {}; }
  // Does the same as Describe while other threads use the resource. Also returns the version to
  // which the values belong. Unimplemented if the resource cannot give these values after it has
  // changed.
  struct Description {
    std::vector<Tensor> values;
    int64_t version = 0;
  };
  virtual StatusOr<Description> DescribeNow() const;
  // Applies a recorded change of an equal resource, as one change. InvalidArgument if the values do
  // not fit; they are not trusted. Unimplemented if the class has no Replay of its own.
  virtual Status Replay(const ResourceChange& change, const UpdateOrigin& origin);
  // Ends the replay of recorded changes. Puts back the elements that unfinished operations had
  // taken.
  virtual void EndReplay(const UpdateOrigin& origin) {}

 protected:
  // Raises the version and records the change. Every change must call Changed while it holds the
  // lock under which the change takes effect. `values()` returns the values of the record; it is
  // called only if there is a log.
  template <class Values>
  void Changed(const UpdateOrigin& origin, const char* action, Values values) {
    RaiseVersion();
    if (place_ != nullptr) [[unlikely]]
      Record(origin, action, values());
  }
  // Replace Changed for several resources that change at once, under all of their locks. Call
  // RaiseVersion for each resource. If any of them is logged, then call RecordTogether with one
  // Part for each logged resource.
  void RaiseVersion() {
    // No other thread writes version_, because the lock is held.
    version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  bool logged() const { return place_ != nullptr; }
  struct Part {
    const Resource* resource;
    const char* action;
    std::vector<Tensor> values;
  };
  static void RecordTogether(const UpdateOrigin& origin, std::vector<Part> parts);

 private:
  friend class ResourceStore;
  friend class StateReplayer;
  // Describes the resource to the log of its store.
  struct Place {
    StateLog* log;
    uint64_t id;
    std::string container, name;
  };
  ResourceChange MakeChange(const char* action, std::vector<Tensor> values) const;
  void Record(const UpdateOrigin& origin, const char* action, std::vector<Tensor> values) const;

  std::atomic<int64_t> version_{0};
  std::unique_ptr<const Place> place_;  // null: not logged. Set before *this is shared
};

class ResourceStore {
 public:
  using Factory = absl::FunctionRef<StatusOr<std::shared_ptr<Resource>>()>;

  // From now on `log` gets every change. `log` must outlive the store and every handle.
  // FailedPrecondition if the store already has a log, or has resources, because the log would lack
  // their history.
  Status AttachLog(StateLog* log) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the resource; on first use creates it with `make` (under the lock: it must be quick,
  // and not call the store). Records its creation with `origin`. InvalidArgument if it exists with
  // another type name than `type`.
  StatusOr<std::shared_ptr<Resource>> LookupOrCreate(string_view container, string_view name,
                                                     string_view type, Factory make,
                                                     const UpdateOrigin& origin = {})
      ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the resource; NotFound if there is none.
  StatusOr<std::shared_ptr<Resource>> Lookup(string_view container, string_view name) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // Removes the resource and shuts it down; NotFound if there is none.
  Status Remove(string_view container, string_view name, const UpdateOrigin& origin = {})
      ABSL_LOCKS_EXCLUDED(mu_);
  // Removes all resources in `container`, if there are any, and shuts them down.
  void ClearContainer(string_view container) ABSL_LOCKS_EXCLUDED(mu_);
  void ClearAll() ABSL_LOCKS_EXCLUDED(mu_);
  // Returns (container, name) of all resources, sorted.
  std::vector<std::pair<std::string, std::string>> List() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Key = std::pair<std::string, std::string>;
  void PlaceInLog(const Key& key, Resource& resource, const UpdateOrigin& origin)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RecordRemoval(absl::Span<const std::shared_ptr<Resource>> removed,
                     const UpdateOrigin& origin) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable Mutex mu_;  // locked after the locks of kernels
  std::map<Key, std::shared_ptr<Resource>> resources_ ABSL_GUARDED_BY(mu_);
  StateLog* log_ ABSL_GUARDED_BY(mu_) = nullptr;
  uint64_t last_id_ ABSL_GUARDED_BY(mu_) = 0;
};

// Returns the resource that is attached to the handle, else the resource of that name in `store`;
// NotFound if there is none.
StatusOr<std::shared_ptr<Resource>> ResolveHandle(const ResourceHandle& handle,
                                                  const ResourceStore& store);
// Does the same as ResolveHandle, for a resource of class R. InvalidArgument names the handle and
// the type found.
template <class R>
StatusOr<std::shared_ptr<R>> ResolveHandleAs(const ResourceHandle& handle,
                                             const ResourceStore& store) {
  ASSIGN_OR_RETURN(std::shared_ptr<Resource> resource, ResolveHandle(handle, store));
  auto typed = std::dynamic_pointer_cast<R>(resource);
  if (typed == nullptr) {
    return InvalidArgument("resource '", handle.name, "' is a ", resource->TypeName(),
                           ", which is not what this op works on");
  }
  return typed;
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Resource: state that outlives a step, such as a variable, a queue or a table. Each device keeps
// its resources by name, in containers. ResourceStore: the containers of one device.
//
// Thread-safe. A resource is identified on its device by (container, name); container "" means
// kDefaultContainer. All sessions of the process share the devices' resources, except isolated
// sessions: each isolated session has its own store.
//
// Every change of a resource calls Resource::Changed, which raises its version and records the
// change in the store's StateLog, if there is one. A resource may also keep hints, such as the
// marks of a dynamic table. Hints only save work: a resource that has lost them gives equally good
// results. Describe and the log leave hints out, and const functions may change them.
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

  // Returns null if the records of a StateLog can rebuild the resource in another store. The class
  // then needs a ResourceMakerDeclaration (core/op/state_replay.h) whose maker takes the values
  // that Describe returns, and a Replay that applies every change. Otherwise returns the reason, as
  // the end of a sentence: "it lives within one step". The log records changes in either case.
  virtual const char* OpaqueReason() const = 0;
  // Returns the values from which a maker builds an equal resource, without its history. REQUIRES:
  // no other thread has access to the resource yet.
  virtual std::vector<Tensor> Describe() const { return {}; }
  // Does the same as Describe, but other threads may use the resource meanwhile. Also returns the
  // version to which the values belong. Unimplemented if the class cannot describe a resource that
  // has changed since it was made.
  struct Description {
    std::vector<Tensor> values;
    int64_t version = 0;
  };
  virtual StatusOr<Description> DescribeNow() const;
  // Applies a change that was recorded for an equal resource, as one change. The values of the
  // record are not trusted: InvalidArgument if they do not fit. Unimplemented unless the class
  // overrides this function.
  virtual Status Replay(const ResourceChange& change, const UpdateOrigin& origin);
  // Called once after the last Replay. Puts back the elements that an operation had taken when the
  // log ended in the middle of it.
  virtual void EndReplay(const UpdateOrigin& origin) {}

 protected:
  // Raises the version and records the change. A function that changes the resource must call this
  // while it holds the lock under which the change takes effect. `values()` returns the values of
  // the record; it is called only if there is a log.
  template <class Values>
  void Changed(const UpdateOrigin& origin, const char* action, Values values) {
    RaiseVersion();
    if (place_ != nullptr) [[unlikely]]
      Record(origin, action, values());
  }
  // RaiseVersion and RecordTogether replace Changed when several resources change at once. Under
  // the locks of all of them, call RaiseVersion for each; then, if any of them is logged(), call
  // RecordTogether with one Part for each logged resource.
  void RaiseVersion() {
    // The caller holds the lock, so no other thread writes version_.
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
  // The store's log, and the resource's identity in it.
  struct Place {
    StateLog* log;
    uint64_t id;
    std::string container, name;
  };
  ResourceChange MakeChange(const char* action, std::vector<Tensor> values) const;
  void Record(const UpdateOrigin& origin, const char* action, std::vector<Tensor> values) const;

  std::atomic<int64_t> version_{0};
  // Null if changes are not logged. Set before other threads can access this object.
  std::unique_ptr<const Place> place_;
};

class ResourceStore {
 public:
  using Factory = absl::FunctionRef<StatusOr<std::shared_ptr<Resource>>()>;

  // From now on, passes every change to `log`, which must outlive the store and every handle.
  // FailedPrecondition if the store already has a log, or has resources, because the log would lack
  // the history of these resources.
  Status AttachLog(StateLog* log) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the resource. If there is none, creates it with `make`, and records its creation with
  // `origin`. Calls `make` under the store's lock: it must be quick and must not call the store.
  // InvalidArgument if the resource exists with another type name than `type`.
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
  // Does the same as Remove if the resource has this id in the log (ResourceId::id); otherwise
  // NotFound.
  Status RemoveIfId(string_view container, string_view name, uint64_t id,
                    const UpdateOrigin& origin = {}) ABSL_LOCKS_EXCLUDED(mu_);
  // Removes all resources in `container`, which may be empty, and shuts them down.
  void ClearContainer(string_view container) ABSL_LOCKS_EXCLUDED(mu_);
  void ClearAll() ABSL_LOCKS_EXCLUDED(mu_);
  // Returns (container, name) of all resources, sorted.
  std::vector<std::pair<std::string, std::string>> List() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Key = std::pair<std::string, std::string>;
  // Removes the resource. If `id` is not 0, only if the resource has this id.
  Status RemoveOne(string_view container, string_view name, uint64_t id, const UpdateOrigin& origin)
      ABSL_LOCKS_EXCLUDED(mu_);
  void PlaceInLog(const Key& key, Resource& resource, const UpdateOrigin& origin)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RecordRemoval(absl::Span<const std::shared_ptr<Resource>> removed,
                     const UpdateOrigin& origin) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable Mutex mu_;  // locked after the locks of kernels
  std::map<Key, std::shared_ptr<Resource>> resources_ ABSL_GUARDED_BY(mu_);
  StateLog* log_ ABSL_GUARDED_BY(mu_) = nullptr;
  uint64_t last_id_ ABSL_GUARDED_BY(mu_) = 0;
};

// Returns the resource to which the handle points. If it points to none, looks up the handle's
// container and name in `store`; NotFound if there is no such resource.
StatusOr<std::shared_ptr<Resource>> ResolveHandle(const ResourceHandle& handle,
                                                  const ResourceStore& store);
// Does the same as ResolveHandle, and casts to the class R. If the resource has another class,
// returns an InvalidArgument that names the handle and the type found.
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

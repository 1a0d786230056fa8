// SPDX-License-Identifier: Apache-2.0
//
// Resource: state that outlives a step, such as a variable, a queue or a table. It is kept by name
// in containers on its device. ResourceStore: the containers of one device.
//
// Thread-safe. Identity on a device is (container, name); container "" means kDefaultContainer.
// Resources are shared by every session of the process unless a session is isolated, in which case
// it has a store of its own.
//
// Every change of a resource passes through Resource::Changed, which raises its version and tells
// the store's StateLog, if it has one.
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
  // Wakes whatever waits inside, because the container is being cleared.
  virtual void Shutdown() {}
  // How many changes it has had.
  int64_t version() const { return version_.load(std::memory_order_acquire); }

  // Null if the records of a StateLog make an equal resource in another store: the maker registered
  // for TypeName() (core/op/state_replay.h) takes what Describe returns, and Replay every change.
  // Else why not, as the end of a sentence: "it lives within one step". Its changes are recorded
  // all the same.
  virtual const char* OpaqueReason() const = 0;
  // Returns the values from which a maker builds an equal resource without history. REQUIRES that
  // no other thread knows it yet.
  virtual std::vector<Tensor> Describe() const { return {}; }
  // Applies a change of an equal resource, as one change. InvalidArgument where the values do not
  // fit; they may come from outside.
  virtual Status Replay(const ResourceChange& change, const UpdateOrigin& origin);
  // The history that was replayed ends here. Gives back what unfinished operations had taken.
  virtual void EndReplay(const UpdateOrigin& origin) {}

 protected:
  // Raises the version and records the change. Every change calls it, under the lock under which
  // the change takes effect. `values()` returns the values of the record; it is called only if
  // there is a log.
  template <class Values>
  void Changed(const UpdateOrigin& origin, const char* action, Values values) {
    RaiseVersion();
    if (place_ != nullptr) [[unlikely]]
      Record(origin, action, values());
  }
  // As Changed, for several resources that change at once under all of their locks: RaiseVersion of
  // each, then, if any of them is logged, RecordTogether with the parts of those that are.
  void RaiseVersion() {
    // Under the lock: no other thread writes it.
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
  // Where a store with a log keeps it.
  struct Place {
    StateLog* log;
    uint64_t id;
    std::string container, name;
  };
  ResourceChange MakeChange(const char* action, std::vector<Tensor> values) const;
  void Record(const UpdateOrigin& origin, const char* action, std::vector<Tensor> values) const;

  std::atomic<int64_t> version_{0};
  std::unique_ptr<const Place> place_;  // null: not logged. Set before anyone else sees *this
};

class ResourceStore {
 public:
  using Factory = absl::FunctionRef<StatusOr<std::shared_ptr<Resource>>()>;

  // From now on `log` sees every change. It outlives the store and every handle. FailedPrecondition
  // if the store has a log, or has resources: nothing tells how they came about.
  Status AttachLog(StateLog* log) ABSL_LOCKS_EXCLUDED(mu_);

  // The resource, made by `make` on first use (under the lock: it must be quick, and not call
  // back). Its creation is recorded with `origin`. InvalidArgument where it exists with another
  // type name than `type`.
  StatusOr<std::shared_ptr<Resource>> LookupOrCreate(string_view container, string_view name,
                                                     string_view type, Factory make,
                                                     const UpdateOrigin& origin = {})
      ABSL_LOCKS_EXCLUDED(mu_);
  // NotFound where there is none.
  StatusOr<std::shared_ptr<Resource>> Lookup(string_view container, string_view name) const
      ABSL_LOCKS_EXCLUDED(mu_);
  Status Remove(string_view container, string_view name, const UpdateOrigin& origin = {})
      ABSL_LOCKS_EXCLUDED(mu_);
  // Drops everything in `container`; OK where there is no such container.
  void ClearContainer(string_view container) ABSL_LOCKS_EXCLUDED(mu_);
  void ClearAll() ABSL_LOCKS_EXCLUDED(mu_);
  // (container, name) of everything, sorted.
  std::vector<std::pair<std::string, std::string>> List() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Key = std::pair<std::string, std::string>;
  void PlaceInLog(const Key& key, Resource& resource, const UpdateOrigin& origin)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RecordRemoval(absl::Span<const std::shared_ptr<Resource>> removed,
                     const UpdateOrigin& origin) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable Mutex mu_;  // locked after those of kernels
  std::map<Key, std::shared_ptr<Resource>> resources_ ABSL_GUARDED_BY(mu_);
  StateLog* log_ ABSL_GUARDED_BY(mu_) = nullptr;
  uint64_t last_id_ ABSL_GUARDED_BY(mu_) = 0;
};

// The resource of a handle as type R: the attached one, else by name from `store`. The error names
// the handle and the type found.
StatusOr<std::shared_ptr<Resource>> ResolveHandle(const ResourceHandle& handle,
                                                  const ResourceStore& store);
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

// SPDX-License-Identifier: Apache-2.0
//
// Resource: state that outlives a step (variables now; queues, tables, readers later), kept by name
// in containers on its device. ResourceStore: the containers of one device.
//
// Thread-safe. Identity on a device is (container, name); container "" means kDefaultContainer.
// Resources are shared by every session of the process unless a session is isolated, in which case
// it has a store of its own.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
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
};

class ResourceStore {
 public:
  using Factory = absl::FunctionRef<StatusOr<std::shared_ptr<Resource>>()>;

  // The resource, made by `make` on first use (under the lock: it must be quick, and not call
  // back).
  // InvalidArgument where it exists with another type name than `type`.
  StatusOr<std::shared_ptr<Resource>> LookupOrCreate(string_view container, string_view name,
                                                     string_view type, Factory make)
      ABSL_LOCKS_EXCLUDED(mu_);
  // NotFound where there is none.
  StatusOr<std::shared_ptr<Resource>> Lookup(string_view container, string_view name) const
      ABSL_LOCKS_EXCLUDED(mu_);
  Status Remove(string_view container, string_view name) ABSL_LOCKS_EXCLUDED(mu_);
  // Drops everything in `container`; OK where there is no such container.
  void ClearContainer(string_view container) ABSL_LOCKS_EXCLUDED(mu_);
  void ClearAll() ABSL_LOCKS_EXCLUDED(mu_);
  // (container, name) of everything, sorted.
  std::vector<std::pair<std::string, std::string>> List() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Key = std::pair<std::string, std::string>;
  mutable Mutex mu_;  // locked after those of kernels
  std::map<Key, std::shared_ptr<Resource>> resources_ ABSL_GUARDED_BY(mu_);
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

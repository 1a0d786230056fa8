// SPDX-License-Identifier: Apache-2.0
#include "core/op/resource.h"

#include <algorithm>

#include "core/base/mutex.h"

namespace penstock {
namespace {

std::string Named(string_view container, string_view name) {
  return StrCat("'", name, "' in container '", container, "'");
}

std::pair<std::string, std::string> MakeKey(string_view container, string_view name) {
  return {std::string(container.empty() ? kDefaultContainer : container), std::string(name)};
}

}  // namespace

StatusOr<Resource::Description> Resource::DescribeNow() const {
  return Unimplemented("a ", TypeName(), " cannot be described while it is in use");
}

Status Resource::Replay(const ResourceChange& change, const UpdateOrigin& origin) {
  const char* const reason = OpaqueReason();
  return Unimplemented("a change '", change.action, "' of a ", TypeName(),
                       " cannot be replayed: ", reason != nullptr ? reason : "it never changes");
}

ResourceChange Resource::MakeChange(const char* action, std::vector<Tensor> values) const {
  const char* const reason = OpaqueReason();
  return {.resource = {.container = place_->container,
                       .name = place_->name,
                       .type = TypeName(),
                       .id = place_->id},
          .version = version(),
          .action = action,
          .values = std::move(values),
          .opaque = reason != nullptr ? reason : ""};
}

void Resource::Record(const UpdateOrigin& origin, const char* action,
                      std::vector<Tensor> values) const {
  const ResourceChange change = MakeChange(action, std::move(values));
  place_->log->Record({.origin = origin, .parts = {&change, 1}});
}

void Resource::RecordTogether(const UpdateOrigin& origin, std::vector<Part> parts) {
  // Resources of different stores may have different logs.
  while (!parts.empty()) {
    StateLog* const log = parts[0].resource->place_->log;
    const auto others = std::stable_partition(parts.begin(), parts.end(), [log](const Part& part) {
      return part.resource->place_->log == log;
    });
    std::vector<ResourceChange> changes;
    for (auto part = parts.begin(); part != others; ++part) {
      changes.push_back(part->resource->MakeChange(part->action, std::move(part->values)));
    }
    log->Record({.origin = origin, .parts = changes});
    parts.erase(parts.begin(), others);
  }
}

Status ResourceStore::AttachLog(StateLog* log) {
  MutexLock lock(mu_);
  if (log_ != nullptr) return FailedPrecondition("the resource store has a log already");
  if (!resources_.empty()) {
    const auto& [key, resource] = *resources_.begin();
    return FailedPrecondition("a log must be attached before there are resources; there is a ",
                              resource->TypeName(), " ", Named(key.first, key.second));
  }
  log_ = log;
  return OkStatus();
}

void ResourceStore::PlaceInLog(const Key& key, Resource& resource, const UpdateOrigin& origin) {
  if (log_ == nullptr) return;
  resource.place_ = std::make_unique<const Resource::Place>(
      Resource::Place{.log = log_, .id = ++last_id_, .container = key.first, .name = key.second});
  resource.Record(origin, kCreateAction, resource.Describe());
}

void ResourceStore::RecordRemoval(absl::Span<const std::shared_ptr<Resource>> removed,
                                  const UpdateOrigin& origin) const {
  if (log_ == nullptr || removed.empty()) return;
  std::vector<Resource::Part> parts;
  for (const auto& resource : removed) parts.push_back({resource.get(), kRemoveAction, {}});
  Resource::RecordTogether(origin, std::move(parts));
}

StatusOr<std::shared_ptr<Resource>> ResourceStore::LookupOrCreate(string_view container,
                                                                  string_view name,
                                                                  string_view type, Factory make,
                                                                  const UpdateOrigin& origin) {
  Key key = MakeKey(container, name);
  MutexLock lock(mu_);
  const auto it = resources_.find(key);
  if (it != resources_.end()) {
    if (it->second->TypeName() == type) return it->second;
    return InvalidArgument("resource ", Named(key.first, key.second), " is a ",
                           it->second->TypeName(), ", not a ", type);
  }
  ASSIGN_OR_RETURN(std::shared_ptr<Resource> resource, make());
  PlaceInLog(key, *resource, origin);
  resources_.emplace(std::move(key), resource);
  return resource;
}

StatusOr<std::shared_ptr<Resource>> ResourceStore::Lookup(string_view container,
                                                          string_view name) const {
  const Key key = MakeKey(container, name);
  MutexLock lock(mu_);
  const auto it = resources_.find(key);
  if (it != resources_.end()) return it->second;
  return NotFound("there is no resource ", Named(key.first, key.second));
}

Status ResourceStore::Remove(string_view container, string_view name, const UpdateOrigin& origin) {
  return RemoveOne(container, name, 0, origin);
}

Status ResourceStore::RemoveIfId(string_view container, string_view name, uint64_t id,
                                 const UpdateOrigin& origin) {
  return RemoveOne(container, name, id, origin);
}

Status ResourceStore::RemoveOne(string_view container, string_view name, uint64_t id,
                                const UpdateOrigin& origin) {
  const Key key = MakeKey(container, name);
  std::shared_ptr<Resource> removed;  // destroyed after the lock is released
  {
    MutexLock lock(mu_);
    const auto it = resources_.find(key);
    if (it == resources_.end()) {
      return NotFound("there is no resource ", Named(key.first, key.second));
    }
    const Resource::Place* const place = it->second->place_.get();
    if (id != 0 && (place == nullptr || place->id != id)) {
      return NotFound("the resource ", Named(key.first, key.second), " is another one");
    }
    removed = std::move(it->second);
    resources_.erase(it);
    RecordRemoval({&removed, 1}, origin);
  }
  removed->Shutdown();
  return OkStatus();
}

void ResourceStore::ClearContainer(string_view container) {
  const std::string wanted(container.empty() ? kDefaultContainer : container);
  std::vector<std::shared_ptr<Resource>> removed;
  {
    MutexLock lock(mu_);
    const auto begin = resources_.lower_bound({wanted, ""});
    auto end = begin;
    for (; end != resources_.end() && end->first.first == wanted; ++end) {
      removed.push_back(std::move(end->second));
    }
    resources_.erase(begin, end);
    RecordRemoval(removed, {});
  }
  for (const auto& resource : removed) resource->Shutdown();
}

void ResourceStore::ClearAll() {
  std::vector<std::shared_ptr<Resource>> removed;
  {
    MutexLock lock(mu_);
    for (auto& [key, resource] : resources_) removed.push_back(std::move(resource));
    resources_.clear();
    RecordRemoval(removed, {});
  }
  for (const auto& resource : removed) resource->Shutdown();
}

std::vector<std::pair<std::string, std::string>> ResourceStore::List() const {
  MutexLock lock(mu_);
  std::vector<Key> keys;
  for (const auto& [key, resource] : resources_) keys.push_back(key);
  return keys;
}

StatusOr<std::shared_ptr<Resource>> ResolveHandle(const ResourceHandle& handle,
                                                  const ResourceStore& store) {
  if (handle.resource != nullptr) return handle.resource;
  return store.Lookup(handle.container, handle.name);
}

}  // namespace penstock

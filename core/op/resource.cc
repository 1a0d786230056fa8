// SPDX-License-Identifier: Apache-2.0
#include "core/op/resource.h"

namespace penstock {
namespace {

std::string Named(string_view container, string_view name) {
  return StrCat("'", name, "' in container '", container, "'");
}

std::pair<std::string, std::string> MakeKey(string_view container, string_view name) {
  return {std::string(container.empty() ? kDefaultContainer : container), std::string(name)};
}

}  // namespace

StatusOr<std::shared_ptr<Resource>> ResourceStore::LookupOrCreate(string_view container,
                                                                  string_view name,
                                                                  string_view type, Factory make) {
  Key key = MakeKey(container, name);
  MutexLock lock(mu_);
  const auto it = resources_.find(key);
  if (it != resources_.end()) {
    if (it->second->TypeName() == type) return it->second;
    return InvalidArgument("resource ", Named(key.first, key.second), " is a ",
                           it->second->TypeName(), ", not a ", type);
  }
  ASSIGN_OR_RETURN(std::shared_ptr<Resource> made, make());
  resources_.emplace(std::move(key), made);
  return made;
}

StatusOr<std::shared_ptr<Resource>> ResourceStore::Lookup(string_view container,
                                                          string_view name) const {
  const Key key = MakeKey(container, name);
  MutexLock lock(mu_);
  const auto it = resources_.find(key);
  if (it != resources_.end()) return it->second;
  return NotFound("there is no resource ", Named(key.first, key.second));
}

Status ResourceStore::Remove(string_view container, string_view name) {
  const Key key = MakeKey(container, name);
  std::shared_ptr<Resource> removed;  // ends outside the lock
  {
    MutexLock lock(mu_);
    const auto it = resources_.find(key);
    if (it == resources_.end()) {
      return NotFound("there is no resource ", Named(key.first, key.second));
    }
    removed = std::move(it->second);
    resources_.erase(it);
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
  }
  for (const auto& resource : removed) resource->Shutdown();
}

void ResourceStore::ClearAll() {
  std::map<Key, std::shared_ptr<Resource>> removed;
  {
    MutexLock lock(mu_);
    removed.swap(resources_);
  }
  for (const auto& [key, resource] : removed) resource->Shutdown();
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

// SPDX-License-Identifier: Apache-2.0
#include "core/op/state_replay.h"

#include <functional>
#include <limits>
#include <utility>

#include "core/base/check.h"

namespace penstock {
namespace {

// Versions are raised one by one, so no valid record has a higher version.
constexpr int64_t kVersionMax = std::numeric_limits<int64_t>::max() / 2;

std::map<std::string, ResourceMaker, std::less<>>& Makers() {
  static auto& makers = *new std::map<std::string, ResourceMaker, std::less<>>;
  return makers;
}

std::string Describe(const ResourceChange& change) {
  return StrCat("record '", change.action, "' of ", change.resource.type, " '",
                change.resource.name, "' in container '", change.resource.container, "', version ",
                change.version);
}

}  // namespace

ResourceMakerDeclaration::ResourceMakerDeclaration(const char* type, ResourceMaker make) {
  CHECK(Makers().emplace(type, make).second, "two makers of resources of type ", type);
}

Status StateReplayer::Apply(const StateChange& change) {
  for (const ResourceChange& part : change.parts) {
    const Status status = ApplyPart(part, change.origin);
    if (!status.ok()) return Annotate(status, Describe(part));
  }
  return OkStatus();
}

Status StateReplayer::ApplyPart(const ResourceChange& change, const UpdateOrigin& origin) {
  if (!change.opaque.empty()) {
    return Unimplemented("a ", change.resource.type, " cannot be replayed: ", change.opaque);
  }
  if (change.action == kCreateAction) return Create(change, origin);
  const auto it = resources_.find(change.resource.id);
  if (it == resources_.end()) {
    // A step that still held the handle has changed a resource that was removed before.
    if (change.resource.id <= last_id_) return OkStatus();
    return DataLoss("there is no record of its creation before this one");
  }
  Resource& resource = *it->second;
  if (change.resource.type != resource.TypeName()) {
    return DataLoss("the resource of that id is a ", resource.TypeName());
  }
  if (change.action == kRemoveAction) {
    const auto named = store_.Lookup(change.resource.container, change.resource.name);
    if (!named.ok() || *named != it->second) return DataLoss("another resource has its name");
    resources_.erase(it);
    return store_.Remove(change.resource.container, change.resource.name, origin);
  }
  if (resource.version() + 1 != change.version) {
    return DataLoss("it follows version ", resource.version(), ": records are missing or repeated");
  }
  return resource.Replay(change, origin);
}

Status StateReplayer::Create(const ResourceChange& change, const UpdateOrigin& origin) {
  const auto maker = Makers().find(change.resource.type);
  if (maker == Makers().end()) return InvalidArgument("this program has no such type of resource");
  if (change.resource.id <= last_id_) return DataLoss("it has been created before");
  if (change.version < 0 || change.version > kVersionMax) {
    return InvalidArgument("version ", change.version, " is out of range");
  }
  bool made = false;
  const auto make = [&]() -> StatusOr<std::shared_ptr<Resource>> {
    made = true;
    ASSIGN_OR_RETURN(
        std::shared_ptr<Resource> resource,
        maker->second(std::string(change.resource.name), ReplayValues(change), files_));
    if (change.resource.type != resource->TypeName()) {
      return InvalidArgument("its recorded values are those of a ", resource->TypeName());
    }
    resource->version_ = change.version;
    return resource;
  };
  ASSIGN_OR_RETURN(std::shared_ptr<Resource> resource,
                   store_.LookupOrCreate(change.resource.container, change.resource.name,
                                         change.resource.type, make, origin));
  if (!made) return AlreadyExists("the store already has a resource of its name");
  last_id_ = change.resource.id;
  resources_[last_id_] = std::move(resource);
  return OkStatus();
}

void StateReplayer::End(const UpdateOrigin& origin) {
  for (const auto& [id, resource] : resources_) resource->EndReplay(origin);
}

Status ReplayValues::Error(string_view what) const {
  return InvalidArgument(change_.resource.type, " '", change_.resource.name, "', action '",
                         change_.action, "': ", what);
}

Status ReplayValues::Expect(size_t count) const {
  return size() == count ? OkStatus() : Error(StrCat(size(), " values, expected ", count));
}

Status ReplayValues::ExpectAtLeast(size_t count) const {
  if (size() >= count) return OkStatus();
  return Error(StrCat(size(), " values, expected at least ", count));
}

StatusOr<int64_t> ReplayValues::Int(size_t i) const {
  const Tensor& value = Get(i);
  if (value.dtype() == DType::kInt64 && value.rank() == 0) return value.scalar<int64_t>();
  return Error(StrCat("value ", i, " must be an int64 scalar, is ", value.ToString()));
}

StatusOr<DType> ReplayValues::Type(size_t i) const {
  ASSIGN_OR_RETURN(const int64_t number, Int(i));
  const auto dtype = static_cast<DType>(number);
  if (number > 0 && number <= Number(DType::kUint64)) return dtype;
  return Error(StrCat("value ", i, " is no type of elements: ", number));
}

StatusOr<PartialShape> ReplayValues::GetShape(size_t i) const {
  const Tensor& value = Get(i);
  const bool scalar = value.dtype() == DType::kInt64 && value.rank() == 0;
  if (scalar && value.scalar<int64_t>() == -1) return PartialShape();
  if (value.dtype() == DType::kInt64 && value.rank() == 1) {
    return PartialShape::Make(value.flat<int64_t>());
  }
  return Error(StrCat("value ", i, " must be a shape, is ", value.ToString()));
}

Status ReplayValues::ExpectStrings(size_t i) const {
  if (Get(i).dtype() == DType::kString && Get(i).rank() == 1) return OkStatus();
  return Error(StrCat("value ", i, " must be a vector of strings, is ", Get(i).ToString()));
}

Tensor Value(int64_t value) { return Tensor::Scalar(value); }
Tensor Value(DType dtype) { return Tensor::Scalar(static_cast<int64_t>(dtype)); }
Tensor Value(const PartialShape& shape) {
  if (!shape.known_rank()) return Tensor::Scalar(int64_t{-1});
  return Tensor::Vector(std::vector<int64_t>(shape.dims().begin(), shape.dims().end()));
}

}  // namespace penstock

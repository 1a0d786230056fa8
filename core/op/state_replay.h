// SPDX-License-Identifier: Apache-2.0
//
// StateReplayer: applies the records of a StateLog to another store, which then holds the same
// state, byte by byte.
//
// Records may come from outside: one that does not fit is an error, not a crash.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "core/base/status.h"
#include "core/op/resource.h"

namespace penstock {

// Not thread-safe. Nobody else changes the resources of `store` until End.
class StateReplayer {
 public:
  // `store` is empty, and may have a log of its own, which sees the same changes.
  explicit StateReplayer(ResourceStore& store) : store_(store) {}

  // Applies the next record. Unimplemented for an opaque change, and names the resource, its type
  // and why. DataLoss where records are missing before it, or come twice.
  Status Apply(const StateChange& change);
  // Ends the replay. Elements that unfinished operations had taken go back to their
  // places, as if the steps had been cancelled.
  void End(const UpdateOrigin& origin);

 private:
  Status ApplyPart(const ResourceChange& change, const UpdateOrigin& origin);
  Status Create(const ResourceChange& change, const UpdateOrigin& origin);

  ResourceStore& store_;
  std::map<uint64_t, std::shared_ptr<Resource>> resources_;  // by id
  uint64_t last_id_ = 0;
};

// The values of a record, checked. Errors name the resource and the action.
class ReplayValues {
 public:
  // Borrows `change`.
  explicit ReplayValues(const ResourceChange& change) : change_(change) {}

  size_t size() const { return change_.values.size(); }
  Status Expect(size_t count) const;
  Status ExpectAtLeast(size_t count) const;
  // Value i. REQUIRES that it is there.
  const Tensor& Get(size_t i) const { return change_.values[i]; }
  // Decode value i, which Value() encoded. InvalidArgument if it is of another kind.
  StatusOr<int64_t> Int(size_t i) const;
  StatusOr<DType> Type(size_t i) const;
  StatusOr<PartialShape> GetShape(size_t i) const;
  // InvalidArgument unless value i is a vector of strings.
  Status ExpectStrings(size_t i) const;
  Status Error(string_view what) const;
  Status UnknownAction() const { return Error("there is no such action"); }

 private:
  const ResourceChange& change_;
};

// Values of records, as ReplayValues reads them.
Tensor Value(int64_t value);
Tensor Value(DType dtype);
Tensor Value(const PartialShape& shape);

// Makes a resource from what Describe returned.
using ResourceMaker = StatusOr<std::shared_ptr<Resource>> (*)(const std::string& name,
                                                              const ReplayValues& values);
// How replay makes resources of one type. Declared statically, before main; REQUIRES that `type` is
// new. For every class whose OpaqueReason is null.
struct ResourceMakerDeclaration {
  ResourceMakerDeclaration(const char* type, ResourceMaker make);
};

}  // namespace penstock

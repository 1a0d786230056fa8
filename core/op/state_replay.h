// SPDX-License-Identifier: Apache-2.0
//
// StateReplayer: applies the records of a StateLog to another store, which then holds the same
// state, byte by byte.
//
// Records are not trusted: a record that does not fit the store is an error, not a crash.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "core/base/env.h"
#include "core/base/status.h"
#include "core/op/resource.h"

namespace penstock {

// Not thread-safe. No other code may change the resources of `store` until End.
class StateReplayer {
 public:
  // `store` is empty. It may have a log of its own, which gets the same changes. Resources that
  // keep state in files keep it in those of `files`, which must outlive the store.
  StateReplayer(ResourceStore& store, Env& files) : store_(store), files_(files) {}

  // Applies the next record. Unimplemented if the change is opaque; names the resource, its type
  // and the reason. DataLoss if an earlier record is missing, or if this record was applied before.
  // InvalidArgument if the type or the values of the record do not fit. Skips changes of removed
  // resources.
  Status Apply(const StateChange& change);
  // Ends the replay. Elements that unfinished operations had taken are put back in their places, as
  // if their steps had been cancelled.
  void End(const UpdateOrigin& origin);

 private:
  Status ApplyPart(const ResourceChange& change, const UpdateOrigin& origin);
  Status Create(const ResourceChange& change, const UpdateOrigin& origin);

  ResourceStore& store_;
  Env& files_;
  std::map<uint64_t, std::shared_ptr<Resource>> resources_;  // by id
  uint64_t last_id_ = 0;
};

// Reads and checks the values of a record. Errors name the resource and the action.
class ReplayValues {
 public:
  // Borrows `change`.
  explicit ReplayValues(const ResourceChange& change) : change_(change) {}

  size_t size() const { return change_.values.size(); }
  // InvalidArgument unless the record has `count` values, or at least as many.
  Status Expect(size_t count) const;
  Status ExpectAtLeast(size_t count) const;
  // Returns value i. REQUIRES: it exists.
  const Tensor& Get(size_t i) const { return change_.values[i]; }
  // Decode value i, which Value() encoded. InvalidArgument if the value is of another kind.
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

// Encode a value of a record, which ReplayValues decodes.
Tensor Value(int64_t value);
Tensor Value(DType dtype);
Tensor Value(const PartialShape& shape);

// Makes a resource from the values that Describe returned. `files` is the task's Env, for resources
// that keep state in files; the resource borrows it.
using ResourceMaker = StatusOr<std::shared_ptr<Resource>> (*)(const std::string& name,
                                                              const ReplayValues& values,
                                                              Env& files);
// Declares how replay makes resources of one type. Needed for every class whose OpaqueReason is
// null. Declared statically, before main; REQUIRES: no other declaration has this `type`.
struct ResourceMakerDeclaration {
  ResourceMakerDeclaration(const char* type, ResourceMaker make);
};

}  // namespace penstock

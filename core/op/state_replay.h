// SPDX-License-Identifier: Apache-2.0
//
// StateReplayer: applies the records of a StateLog to another store, which then holds the same
// state, byte by byte.
//
// Records are not trusted: Apply returns an error for a record that does not fit the store.
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
  // REQUIRES: `store` is empty. It may have a log of its own, which then receives the same changes.
  // Resources that keep state in files use `files`, which must outlive the store.
  StateReplayer(ResourceStore& store, Env& files) : store_(store), files_(files) {}

  // Applies the next record. Skips changes of removed resources. Errors:
  //   Unimplemented: the change is opaque; names the resource, its type and the reason.
  //   DataLoss: an earlier record is missing, or this record was applied before.
  //   InvalidArgument: the type or the values of the record do not fit.
  Status Apply(const StateChange& change);
  // Ends the replay. Puts back elements that unfinished operations had taken, as if the steps of
  // these operations had been cancelled.
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
  // InvalidArgument unless the record has `count` values, or (ExpectAtLeast) at least `count`.
  Status Expect(size_t count) const;
  Status ExpectAtLeast(size_t count) const;
  // Returns value i. REQUIRES: it exists.
  const Tensor& Get(size_t i) const { return change_.values[i]; }
  // Decode value i, which Value() has encoded. InvalidArgument if it encodes another kind of value.
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

// Encode a value for a record. ReplayValues decodes it.
Tensor Value(int64_t value);
Tensor Value(DType dtype);
Tensor Value(const PartialShape& shape);

// Makes a resource from the values that Resource::Describe returned. `files` is the task's Env: a
// resource that keeps state in files borrows it.
using ResourceMaker = StatusOr<std::shared_ptr<Resource>> (*)(const std::string& name,
                                                              const ReplayValues& values,
                                                              Env& files);
// Declares how replay makes resources of one type. Every class whose OpaqueReason returns null
// needs a static object of this struct. REQUIRES: no other declaration has this `type`.
struct ResourceMakerDeclaration {
  ResourceMakerDeclaration(const char* type, ResourceMaker make);
};

}  // namespace penstock

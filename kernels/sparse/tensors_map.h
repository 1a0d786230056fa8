// SPDX-License-Identifier: Apache-2.0
//
// SparseTensorsMap: maps numbers to sparse tensors, so that queues can hold the numbers instead of
// the tensors.
//
// Thread-safe. Actions in a StateLog: "add" {number of the first tensor; indices, values, shape of
// each}, "take" {numbers}.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/op/resource.h"
#include "core/tensor/tensor.h"

namespace penstock {

class SparseTensorsMap final : public Resource {
 public:
  static constexpr char kType[] = "SparseTensorsMap";
  // A sparse tensor, which the map does not check.
  struct Entry {
    Tensor indices, values, shape;
  };

  explicit SparseTensorsMap(std::string name) : name_(std::move(name)) {}

  const char* TypeName() const override { return kType; }
  std::string DebugString() const override;
  const char* OpaqueReason() const override { return nullptr; }
  Status Replay(const ResourceChange& change, const UpdateOrigin& origin) override
      ABSL_LOCKS_EXCLUDED(mu_);

  // Adds the entries, with successive numbers, and returns the first number.
  int64_t Add(std::vector<Entry> entries, const UpdateOrigin& origin) ABSL_LOCKS_EXCLUDED(mu_);
  // Removes the entries of `numbers` and returns them. InvalidArgument, with nothing removed, if a
  // number has no entry or occurs twice.
  StatusOr<std::vector<Entry>> Take(absl::Span<const int64_t> numbers, const UpdateOrigin& origin)
      ABSL_LOCKS_EXCLUDED(mu_);
  int64_t size() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const std::string name_;
  mutable Mutex mu_;
  std::map<int64_t, Entry> entries_ ABSL_GUARDED_BY(mu_);
  int64_t next_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace penstock

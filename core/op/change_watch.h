// SPDX-License-Identifier: Apache-2.0
//
// ChangeWatch: records which ranges of a variable change while it is being copied, so that the
// copier can bring the copy up to date without reading the whole variable again.
//
//   ChangeWatch watch(*variable, value.bytes());
//   ... copy the value piece by piece under Variable::Inspect, while updates go on ...
//   variable->Inspect(... watch.Take(...): copy what has changed since ...);
//
// An update of rows marks the chunks that contain these rows. An assignment, or an update of the
// whole value, marks everything. While no variable is watched, an update pays one atomic load.
// Thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/mutex.h"
#include "core/op/slices.h"

namespace penstock {

class Variable;

class ChangeWatch {
 public:
  static constexpr int64_t kChunkBytes = 4096;

  // Watches `variable`, which must outlive the watch. Its value has `bytes` bytes.
  ChangeWatch(const Variable& variable, int64_t bytes);
  ~ChangeWatch();
  ChangeWatch(const ChangeWatch&) = delete;
  ChangeWatch& operator=(const ChangeWatch&) = delete;

  // Returns whether the whole value has changed since the watch began, so that pieces copied before
  // are useless.
  bool all() const;
  // Calls fn(begin, end) with the byte range of each chunk that has changed since the last Take, in
  // ascending order, and clears the chunks' marks. Does not report a change of the whole value;
  // all() does. `fn` must not call the watch or the variable.
  void Take(absl::FunctionRef<void(int64_t begin, int64_t end)> fn);

 private:
  static void Note(const Variable& variable, absl::FunctionRef<Slices()> changed);
  void Mark(const Slices& slices);

  const Variable& variable_;
  const int64_t bytes_;
  // The mutex of the list of all watches guards the members below.
  bool all_ = false;
  std::vector<uint64_t> marks_;  // a bit for each chunk
};

}  // namespace penstock

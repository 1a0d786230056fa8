// SPDX-License-Identifier: Apache-2.0
//
// Callables: the callables of one session, by handle: prepared steps that a client runs again and
// again without naming their feeds and fetches.
//
// Thread-safe. Locks: while mu_ is held, no other lock is taken, and no prepared step is destroyed,
// because the destructor of a step calls its tasks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/base/mutex.h"
#include "distributed/master/prepared_step.h"
#include "distributed/session/session.h"

namespace penstock {

class Callables {
 public:
  struct Entry {
    std::shared_ptr<PreparedStep> step;
    RunOptions options;  // the options with which asynchronous calls run the step
  };

  // Returns the handle of the new callable: 1, 2, ...
  int64_t Add(Entry entry) ABSL_LOCKS_EXCLUDED(mu_);
  // Find returns the callable with this handle, and Release removes it. InvalidArgument if there
  // is none.
  StatusOr<Entry> Find(int64_t callable) const ABSL_LOCKS_EXCLUDED(mu_);
  Status Release(int64_t callable) ABSL_LOCKS_EXCLUDED(mu_);
  // Removes all callables.
  void Clear() ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the steps of all callables, in the order of their handles.
  std::vector<std::shared_ptr<PreparedStep>> Steps() const ABSL_LOCKS_EXCLUDED(mu_);
  // In all callables that run `step`, replaces it by `other`, which has the same names.
  void Replace(const PreparedStep& step, const std::shared_ptr<PreparedStep>& other)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable Mutex mu_;
  std::map<int64_t, Entry> entries_ ABSL_GUARDED_BY(mu_);
  int64_t next_ ABSL_GUARDED_BY(mu_) = 1;
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Barrier: assembles tuples by key whose components come from different steps, and returns tuples
// when they are complete, the oldest first.
//
// Thread-safe. Actions in a StateLog: "insert" {component, keys, their values}, also for an
// insertion that failed, with the keys inserted before the failure; "take" {count}; "close"
// {drop_incomplete}.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/types/span.h"
#include "kernels/data/blocking.h"
#include "kernels/data/element_store.h"

namespace penstock {

class Barrier final : public Blocking {
 public:
  struct Spec {
    std::vector<DType> types;
    std::vector<PartialShape> shapes;
    bool operator==(const Spec&) const = default;
  };
  // Receives tuples of the form {index, key, component 0, ...}. The index is the number of the
  // insertion that began the tuple. Indices count only insertions that begin a tuple; they start at
  // the least int64.
  using Receive = absl::AnyInvocable<Status(std::vector<Element>) &&>;
  struct TakeOptions {
    // If `allow_small_batch` and the barrier is closed with fewer tuples than `count`, Take returns
    // fewer: the complete tuples or, if `wait_for_incomplete`, all tuples, as soon as all are
    // complete.
    bool allow_small_batch = false;
    bool wait_for_incomplete = false;
  };

  Barrier(std::string name, Spec spec)
      : Blocking("Barrier", std::move(name), 1), spec_(std::move(spec)) {}

  const Spec& spec() const { return spec_; }
  std::string DebugString() const override;
  const char* OpaqueReason() const override { return nullptr; }
  std::vector<Tensor> Describe() const override;
  Status Replay(const ResourceChange& change, const UpdateOrigin& origin) override;

  // Sets component `c` of each key. InvalidArgument if a key already has this component; Cancelled
  // if a key is new and the barrier is closed.
  Status Insert(int c, absl::Span<const std::string> keys, std::vector<Element> values,
                const UpdateOrigin& origin);
  // Waits for `count` complete tuples. OutOfRange if the barrier is closed and will never have that
  // many.
  void Take(int64_t count, const TakeOptions& options, Receive receive, const Caller& caller,
            Done done);
  // Stops accepting new keys. Incomplete tuples are dropped if `drop_incomplete`, else they can
  // still be completed. Cancelled if the barrier is closed already, unless this is the first call
  // with `drop_incomplete`.
  Status Close(bool drop_incomplete, const UpdateOrigin& origin);

  int64_t ready_size() const;
  int64_t incomplete_size() const;

 private:
  class TakeOperation;
  struct Tuple {
    int64_t index;
    Element components;  // invalid tensors stand for components that are not there yet
  };
  Status CheckKeys(absl::Span<const std::string> keys) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Inserts one component. Sets `*began` if the key is new. InvalidArgument if the key already has
  // the component.
  Status InsertOne(int c, const std::string& key, Tensor value, bool* began)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // All changes of the state go through these functions, both in operations and in replay of a log.
  Status InsertAll(int c, absl::Span<const std::string> keys, std::vector<Element> values,
                   const UpdateOrigin& origin) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<Element> TakeReady(int64_t count, const UpdateOrigin& origin)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status MarkClosed(bool drop_incomplete, const UpdateOrigin& origin)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status ReplayInsert(const ResourceChange& change, const UpdateOrigin& origin)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Spec spec_;
  std::map<std::string, Tuple> incomplete_ ABSL_GUARDED_BY(mu_);
  const std::unique_ptr<ElementStore> ready_ ABSL_PT_GUARDED_BY(mu_) = NewPriorityStore();
  int64_t next_index_ ABSL_GUARDED_BY(mu_) = INT64_MIN;
  bool closed_ ABSL_GUARDED_BY(mu_) = false, dropping_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace penstock

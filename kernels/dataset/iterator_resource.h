// SPDX-License-Identifier: Apache-2.0
//
// IteratorResource: an iterator that a graph refers to by a handle, and the dataset that it reads.
//
// Thread-safe. Operations on the iterator run one at a time, in order. An operation runs on the
// caller's thread if the iterator does not wait. Otherwise it runs on a thread of the resource,
// which the first such operation starts. If a step is cancelled, its operations that have not begun
// are not run. Shutdown and the destructor stop the threads with which the iterator reads ahead.
//
// Actions in a StateLog, both without values: "run", for each operation, because all of them may
// move the iterator; "delete".
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/base/done.h"
#include "core/op/resource.h"
#include "kernels/dataset/captured_function.h"
#include "kernels/dataset/dataset.h"

namespace penstock {

class IteratorResource final : public Resource {
 public:
  static constexpr char kType[] = "Iterator";

  // The iterator and its dataset. A running operation may change them.
  struct Content {
    std::unique_ptr<IteratorCalls> calls = std::make_unique<IteratorCalls>();
    DatasetPtr dataset;
    IteratorPtr iterator;  // null until there is a dataset
  };
  // An operation gets `content.calls` as `ctx.calls`.
  using Operation = std::function<Status(const IteratorContext& ctx, Content& content)>;

  // Makes a resource without a dataset. `threads` must outlive the resource.
  IteratorResource(ElementSpec spec, Scheduler& threads);
  ~IteratorResource() override;

  const char* TypeName() const override { return kType; }
  std::string DebugString() const override { return "an iterator of a dataset"; }
  const char* OpaqueReason() const override { return "its dataset may read files and functions"; }
  void Shutdown() override;

  // Returns the types and shapes that the elements must have. Empty: any.
  const ElementSpec& spec() const { return spec_; }
  // Sets the function that returns the dataset; it has no arguments. Prepare calls it.
  void set_factory(CapturedFunction factory) { factory_ = std::move(factory); }

  // Queues an operation. Calls `done` with its status, on any thread. The resource must live until
  // then.
  void Run(const IteratorContext& ctx, Operation operation, Done done);
  // Does the same as Shutdown, and records the action "delete" with the origin.
  void Delete(const UpdateOrigin& origin);
  // Replaces the dataset and the iterator in `content`. InvalidArgument if the dataset does not
  // have the types and shapes of spec(). Call it within an operation.
  Status SetDataset(const IteratorContext& ctx, DatasetPtr dataset, Content& content) const;
  // If there is no iterator, calls the factory to make a dataset, and makes its iterator.
  // FailedPrecondition if there is no factory either.
  Status Prepare(const IteratorContext& ctx, Content& content) const;

 private:
  struct State;
  // Runs an operation as one change. REQUIRES: no other operation runs.
  Status Perform(const IteratorContext& ctx, const Operation& operation);
  void StartThread();
  bool TryRunHere(const IteratorContext& ctx, const Operation& operation, Status* status);

  const ElementSpec spec_;
  std::optional<CapturedFunction> factory_;
  Scheduler& threads_;
  const std::shared_ptr<State> state_;
};

}  // namespace penstock

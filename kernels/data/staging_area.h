// SPDX-License-Identifier: Apache-2.0
//
// StagingArea: a first-in, first-out buffer of tuples of any tensors, limited by their number and
// their memory. It holds the next step's input while the current step computes.
//
// Thread-safe. Actions in a StateLog: "stage" {tensors}, "unstage" {}, "clear" {}.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "kernels/data/blocking.h"
#include "kernels/data/element_store.h"

namespace penstock {

class StagingArea final : public Blocking {
 public:
  struct Limits {
    int64_t elements = 0, bytes = 0;  // 0: no limit
    bool operator==(const Limits&) const = default;
    // ResourceExhausted if tensors of `bytes_of_tensors` bytes exceed the limit `bytes`, even if
    // the area is empty.
    Status CheckSize(int64_t bytes_of_tensors) const;
  };
  // Returns the bytes of the tensors that are valid.
  static int64_t BytesOf(const Element& element);
  using Types = std::vector<DType>;
  using Receive = absl::AnyInvocable<void(Element) &&>;

  StagingArea(std::string name, Limits limits)
      : Blocking("StagingArea", std::move(name), kNumLines), limits_(limits) {}

  const Limits& limits() const { return limits_; }
  std::string DebugString() const override;
  const char* OpaqueReason() const override { return nullptr; }
  std::vector<Tensor> Describe() const override;
  Status Replay(const ResourceChange& change, const UpdateOrigin& origin) override;

  // Adds an element; waits until there is room. ResourceExhausted if the element alone exceeds the
  // limit.
  void Stage(Element element, const Caller& caller, Done done);
  // Waits for an element and takes the oldest one. InvalidArgument if its types are not `types`;
  // then the element stays in the area.
  void Unstage(Types types, Receive receive, const Caller& caller, Done done);
  // Waits until there are more than `index` elements and returns element `index` without taking it.
  // InvalidArgument if the element's types are not `types`.
  void Peek(int64_t index, Types types, Receive receive, const Caller& caller, Done done);
  void Clear(const UpdateOrigin& origin);
  int64_t size() const;

 private:
  enum Lines { kStages, kUnstages, kPeeks, kNumLines };
  class StageOperation;
  class UnstageOperation;
  class PeekOperation;
  Status CheckTypes(const Element& element, const Types& types) const;
  // All changes of the state go through these functions, both in operations and in replay of a log.
  void Push(Element element, const UpdateOrigin& origin) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Element Pop(const UpdateOrigin& origin) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::deque<Element> PopAll(const UpdateOrigin& origin) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Limits limits_;
  std::deque<Element> elements_ ABSL_GUARDED_BY(mu_);
  int64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;  // total bytes of elements_
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// RowExchange: passes tensors from one step to another. A tensor is identified by the id that Batch
// gave to one of its executions.
//
// Tensors that no step takes are dropped after the time that Put got, and the number of tensors is
// limited. Thread-safe. Actions in a StateLog: "put", "take".
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "core/base/env.h"
#include "core/base/scheduler.h"
#include "core/tensor/tensor.h"
#include "kernels/batching/alarm.h"
#include "kernels/data/blocking.h"

namespace penstock {

class RowExchange final : public Blocking {
 public:
  using Receive = absl::AnyInvocable<void(std::vector<Tensor>) &&>;
  static constexpr int64_t kTensorsMax = 1 << 16;

  // `type` must never be freed. `threads` and `env` must outlive the exchange. ResourceExhausted as
  // from Alarm::Make.
  static StatusOr<std::shared_ptr<RowExchange>> Make(const char* type, std::string name,
                                                     Scheduler& threads, Env& env);

  // Keeps the tensors under their ids for `keep_ns`. InvalidArgument if a tensor with one of the
  // ids is there already; ResourceExhausted if there would be more than kTensorsMax tensors.
  Status Put(std::vector<std::pair<int64_t, Tensor>> tensors, int64_t keep_ns,
             const UpdateOrigin& origin);
  // Waits for the tensors of all `ids`, and takes them. DeadlineExceeded if they are not there
  // after `wait_ns`.
  void Take(std::vector<int64_t> ids, int64_t wait_ns, Receive receive, const Caller& caller,
            Done done);

  std::string DebugString() const override;
  const char* OpaqueReason() const override { return "its tensors belong to running steps"; }

 private:
  class TakeOperation;
  struct Kept {
    Tensor tensor;
    int64_t until_ns = 0;
  };
  RowExchange(const char* type, std::string name, Env& env)
      : Blocking(type, std::move(name), 1, Order::kAnyOrder), env_(env) {}
  void OnAlarm();
  // Returns the time that is `ns` nanoseconds from now, as Env::NowNanos() counts.
  int64_t After(int64_t ns) const;
  void DropExpired(int64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  Env& env_;
  std::unique_ptr<Alarm> alarm_;
  std::map<int64_t, Kept> kept_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock

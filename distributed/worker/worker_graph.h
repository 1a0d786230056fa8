// SPDX-License-Identifier: Apache-2.0
//
// WorkerGraph: one task's part of a prepared step: an executor per device that has a partition.
//
// Immutable; Run and RunAsync are thread-safe. Held by shared pointers: running steps keep it
// alive, so that it may be deregistered at any time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/done.h"
#include "core/op/task_name.h"
#include "core/runtime/executor.h"
#include "core/tensor/memory_account.h"

namespace penstock {

// The bytes of tensors that a session, and each of its steps, may hold in a task; 0: no separate
// limit.
struct MemoryLimits {
  int64_t session = 0;
  int64_t step = 0;
};

// The memory account of one session in a task, with the limits of the session and of each of its
// steps. A tensor is charged from its creation by a kernel of the session until it is freed, even
// while it is in a variable, in a queue, or on its way to a client. core/tensor/memory_account.h
// lists the memory that is not counted. Immutable; held by shared pointers.
class SessionMemory {
 public:
  SessionMemory(const std::string& handle, const MemoryLimits& limits,
                MemoryAccount& task = MemoryAccount::Task())
      : step_limit_(limits.step),
        account_(*MemoryAccount::New(StrCat("session ", handle, " (--session_memory_limit)"),
                                     limits.session, task)) {}
  ~SessionMemory() { account_.Unref(); }
  SessionMemory(const SessionMemory&) = delete;
  SessionMemory& operator=(const SessionMemory&) = delete;

  MemoryAccount& account() const { return account_; }
  int64_t step_limit() const { return step_limit_; }

 private:
  const int64_t step_limit_;
  MemoryAccount& account_;
};

// The memory account of one step. Keeps the account alive while the step runs.
class StepMemory {
 public:
  // If there is no limit for steps, this is the session's account, and nothing is allocated.
  StepMemory(const SessionMemory& session, int64_t step_id) : account_(&session.account()) {
    if (session.step_limit() > 0) {
      account_ = MemoryAccount::New(StrCat("step ", step_id, " (--step_memory_limit)"),
                                    session.step_limit(), session.account());
    } else {
      account_->Ref();
    }
  }
  StepMemory(StepMemory&& other) noexcept : account_(std::exchange(other.account_, nullptr)) {}
  StepMemory& operator=(StepMemory&&) = delete;
  ~StepMemory() {
    if (account_ != nullptr) account_->Unref();
  }

  MemoryAccount* account() const { return account_; }

 private:
  MemoryAccount* account_;
};

class WorkerGraph : public std::enable_shared_from_this<WorkerGraph> {
 public:
  struct Part {
    std::unique_ptr<Executor> executor;
    ResourceStore* resources = nullptr;         // null: the resources of the device
    std::shared_ptr<ResourceStore> store_kept;  // owns `resources`, if they belong to a session
  };

  // `producers`: other tasks from which it receives tensors. `communicates`: it has a _Send, a
  // _Recv or a collective, so a step needs a rendezvous. `memory`: the account that is charged for
  // its steps.
  WorkerGraph(std::vector<Part> parts, std::vector<TaskName> producers, bool communicates,
              std::shared_ptr<const SessionMemory> memory)
      : parts_(std::move(parts)),
        producers_(std::move(producers)),
        communicates_(communicates),
        memory_(std::move(memory)) {}

  const std::vector<TaskName>& producers() const { return producers_; }
  bool communicates() const { return communicates_; }
  const std::vector<Part>& parts() const { return parts_; }
  bool one_part() const { return parts_.size() == 1; }

  // Runs all executors; calls `done` when none of them runs any more. They share `args`, which
  // must have a cancellation: the first failure cancels all of them and is the status.
  void RunAsync(const StepArgs& args, Done done);
  // Runs the only executor on the caller's thread, and returns its status. REQUIRES: one_part().
  Status Run(StepArgs args) {
    args.resources = parts_[0].resources;
    const StepMemory memory(*memory_, args.step_id);
    args.memory = memory.account();
    return parts_[0].executor->Run(args);
  }

 private:
  const std::vector<Part> parts_;
  const std::vector<TaskName> producers_;
  const bool communicates_;
  const std::shared_ptr<const SessionMemory> memory_;
};

}  // namespace penstock

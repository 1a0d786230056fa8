// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/reset_tasks.h"

#include <atomic>
#include <memory>
#include <utility>

#include "core/base/join.h"

namespace penstock {
namespace {

constexpr int64_t kResetTimeoutMs = 60'000;

// Resets the called process, whatever its incarnation. If `serves` is not null, the process is a
// replica: it is reset only if it answers and serves, and `*serves` is then set to true.
void ResetIfServing(const std::shared_ptr<WorkerClient>& client,
                    const std::vector<std::string>& containers,
                    std::shared_ptr<std::atomic<bool>> serves, Done done) {
  client->GetStatus({}, {.timeout_ms = kResetTimeoutMs},
                    [client, containers, serves = std::move(serves),
                     done = std::move(done)](StatusOr<TaskStatus> answer) mutable {
                      if (serves != nullptr) {
                        if (!answer.ok() || !answer->serving) return std::move(done)(OkStatus());
                        *serves = true;
                      }
                      if (!answer.ok()) return std::move(done)(answer.status());
                      client->Reset(
                          containers,
                          {.incarnation = answer->self.incarnation, .timeout_ms = kResetTimeoutMs},
                          std::move(done));
                    });
}

// Resets that replica of the task which serves. Unavailable if neither replica serves.
void ResetReplicas(const TaskWait::Task& task, const std::vector<std::string>& containers,
                   Done done) {
  const auto serves = std::make_shared<std::atomic<bool>>(false);
  const auto both = std::make_shared<Join>(
      Done([serves, name = task.id.name, done = std::move(done)](Status status) mutable {
        if (status.ok() && !*serves) status = Unavailable("neither replica of ", name, " serves");
        std::move(done)(std::move(status));
      }));
  for (const auto& client : {task.client, task.other_client}) {
    ResetIfServing(client, containers, serves, Join::Part(both));
  }
}

}  // namespace

void ResetOnTask(const TaskWait::Task& task, const std::vector<std::string>& containers,
                 Done done) {
  if (task.other_client == nullptr) {
    return ResetIfServing(task.client, containers, nullptr, std::move(done));
  }
  ResetReplicas(task, containers, std::move(done));
}

}  // namespace penstock

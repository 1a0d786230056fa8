// SPDX-License-Identifier: Apache-2.0
//
// MasterSession: its client, the steps that run, and how long it has been idle.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error_origin.h"
#include "distributed/master/master_session.h"

namespace penstock {
namespace {

// Returns "a step of 'a:0', 'b:0' and 3 more": its fetches and targets.
std::string NamesText(const CallableSpec& spec) {
  constexpr size_t kShownMax = 3;
  std::vector<std::string> names = spec.fetches;
  names.insert(names.end(), spec.targets.begin(), spec.targets.end());
  const size_t more = names.size() - std::min(names.size(), kShownMax);
  names.resize(names.size() - more);
  for (std::string& name : names) name = StrCat("'", name, "'");
  return StrCat("a step of ", absl::StrJoin(names, ", "),
                more > 0 ? StrCat(" and ", more, " more") : "");
}

}  // namespace

Status MasterSession::WhileRunning(const Status& why, const PreparedStep& step) {
  const char* const end =
      absl::EndsWith(why.message(), ".") ? " It was running " : "; it was running ";
  return WithMessage(why, StrCat(why.message(), end, NamesText(step.names())));
}

std::string MasterSession::RunningText() const {
  std::vector<std::string> running;
  for (const auto& [id, step] : steps_) {
    std::vector<std::string> tasks;
    for (const TaskId& task : step->UnfinishedTasks()) tasks.push_back(task.name);
    running.push_back(
        StrCat(NamesText(step->prepared().names()), " runs in ", absl::StrJoin(tasks, " and ")));
  }
  for (const auto& step : local_steps_) {
    if (step->running == nullptr) continue;
    running.push_back(StrCat(NamesText(step->running->names()), " runs in this process"));
  }
  return absl::StrJoin(running, "; ");
}

std::string MasterSession::client() const {
  MutexLock lock(client_mu_);
  return client_;
}

std::vector<std::shared_ptr<const MasterStep>> MasterSession::running_steps() const {
  std::vector<std::shared_ptr<const MasterStep>> steps;
  MutexLock lock(running_mu_);
  for (const auto& [id, step] : steps_) steps.push_back(step);
  return steps;
}

void MasterSession::NoteConnectedClient(const absl::flat_hash_set<std::string>& connected) {
  MutexLock lock(client_mu_);
  if (!client_.empty() && !connected.contains(client_)) return;
  last_used_ns_ = options_.services.env->NowNanos();
}

int64_t MasterSession::idle_ns() const {
  MutexLock lock(running_mu_);
  if (steps_.size() > partial_steps_) return 0;
  return options_.services.env->NowNanos() - last_used_ns_;
}

}  // namespace penstock

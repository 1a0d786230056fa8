// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/stuck_watch.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "distributed/insight/explain.h"
#include "distributed/insight/words.h"

namespace penstock {
namespace {

// The maximum number of steps that one message describes.
constexpr size_t kStepsMax = 5;

int64_t OldestWaitMs(const wire::PartReport& part) {
  int64_t oldest_ms = -1;
  for (const wire::WaitReport& wait : part.wait()) oldest_ms = std::max(oldest_ms, wait.age_ms());
  return oldest_ms;
}

// Returns whether a part of the step computes in some task.
bool Computes(const wire::ClusterReport& cluster, uint64_t step_id) {
  for (const wire::ClusterTask& task : cluster.task()) {
    for (const wire::PartReport& part : task.report().part()) {
      if (part.step_id() == step_id && part.computing()) return true;
    }
  }
  return false;
}

// Returns whether a node of the step has waited for `patience_ms`, or a task that runs a part of
// it does not answer.
bool Waits(const wire::ClusterReport& cluster, uint64_t step_id, int64_t patience_ms) {
  std::set<std::string> silent;
  for (const wire::ClusterTask& task : cluster.task()) {
    if (task.has_error()) silent.insert(task.name());
    for (const wire::PartReport& part : task.report().part()) {
      if (part.step_id() == step_id && OldestWaitMs(part) >= patience_ms) return true;
    }
  }
  for (const wire::ClusterTask& task : cluster.task()) {
    for (const wire::SessionReport& session : task.report().session()) {
      for (const wire::StepReport& step : session.step()) {
        if (step.step_id() != step_id) continue;
        for (const std::string& part : step.running_in()) {
          if (silent.count(part) > 0) return true;
        }
      }
    }
  }
  return false;
}

}  // namespace

// Returns the steps of the task's own sessions that may be stuck: they are old enough, and none of
// their parts in this task computes.
StuckWatch::Ages StuckWatch::FindOldSteps(const wire::TaskReport& task) const {
  Ages suspects;
  std::set<std::string> own_sessions;
  for (const wire::SessionReport& session : task.session()) {
    own_sessions.insert(session.handle());
    for (const wire::StepReport& step : session.step()) {
      if (step.age_ms() >= options_.patience_ms) suspects[step.step_id()] = step.age_ms();
    }
  }
  for (const wire::PartReport& part : task.part()) {
    // The report has no age for a step that runs only in its client's process. Uses the age of the
    // step's oldest wait instead.
    const int64_t waits_ms = OldestWaitMs(part);
    if (own_sessions.count(part.session()) > 0 && waits_ms >= options_.patience_ms) {
      suspects.emplace(part.step_id(), waits_ms);
    }
    if (part.computing()) suspects.erase(part.step_id());
  }
  return suspects;
}

void StuckWatch::Forget(const wire::TaskReport& task) {
  std::set<uint64_t> running;
  for (const wire::PartReport& part : task.part()) running.insert(part.step_id());
  for (const wire::SessionReport& session : task.session()) {
    for (const wire::StepReport& step : session.step()) running.insert(step.step_id());
  }
  for (auto it = report_at_ms_.begin(); it != report_at_ms_.end();) {
    it = running.count(it->first) > 0 ? std::next(it) : report_at_ms_.erase(it);
  }
}

void StuckWatch::Look() {
  const wire::TaskReport task = options_.ask_task();
  Forget(task);
  Ages suspects = FindOldSteps(task);
  for (auto it = suspects.begin(); it != suspects.end();) {
    const auto told = report_at_ms_.find(it->first);
    const bool too_early = told != report_at_ms_.end() && it->second < told->second;
    it = too_early ? suspects.erase(it) : std::next(it);
  }
  if (suspects.empty()) return;
  const wire::ClusterReport cluster = options_.ask_cluster();
  std::vector<std::string> stuck;
  for (const auto& [id, age_ms] : suspects) {
    if (Computes(cluster, id) || !Waits(cluster, id, options_.patience_ms)) {
      report_at_ms_[id] = age_ms + options_.patience_ms;  // when it is examined next
      continue;
    }
    stuck.push_back(absl::StrCat(StepText(id), ForText(age_ms)));
    report_at_ms_[id] = 2 * age_ms;
  }
  if (stuck.empty()) return;
  options_.say(absl::StrCat("no progress: ", absl::StrJoin(stuck, "; "), ". ",
                            Explain(cluster, options_.patience_ms, kStepsMax).ToString()));
}

}  // namespace penstock

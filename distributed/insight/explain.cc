// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/explain.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "distributed/insight/outside_causes.h"
#include "distributed/insight/wait_graph.h"
#include "distributed/insight/wait_text.h"
#include "distributed/insight/words.h"

namespace penstock {
namespace {

using absl::StrAppend;
using absl::StrCat;
using Kind = wire::UseReport;

std::string Plural(size_t n, const char* one, const char* many) {
  return StrCat(n, " ", n == 1 ? one : many);
}

class Explainer {
 public:
  Explainer(const wire::ClusterReport& cluster, int64_t patience_ms, size_t steps_max)
      : cluster_(cluster), graph_(cluster), patience_ms_(patience_ms), steps_max_(steps_max) {}

  Explanation Explain() {
    CollectSteps();
    FindSilentTasks();
    FindAll(FindCutPairs(cluster_, graph_, patience_ms_));
    FindAll(FindAwaitedVariables(cluster_, patience_ms_));
    FindAll(FindFailedSaves(cluster_));
    FindNewSessions();
    FindMissingParts();
    FindCycles();
    FindUnfilledQueues();
    FindComputations();
    FindBlockingCalls();
    DescribeSteps();
    Summarise();
    return std::move(explanation_);
  }

 private:
  struct Step {
    std::string session;
    std::string master;                      // "": not known
    const wire::StepReport* step = nullptr;  // null: the step runs in the client's own process
    int64_t age_ms = -1;
    std::map<std::string, const wire::PartReport*> parts;  // by task
  };

  bool ExceedsPatience(int64_t age_ms) const { return age_ms >= patience_ms_; }
  void Find(std::string finding) { explanation_.findings.push_back(std::move(finding)); }
  void FindAll(std::vector<std::string> findings) {
    for (std::string& finding : findings) Find(std::move(finding));
  }

  void CollectSteps() {
    for (const wire::ClusterTask& task : cluster_.task()) {
      for (const wire::SessionReport& session : task.report().session()) {
        for (const wire::StepReport& step : session.step()) {
          Step& known = steps_[step.step_id()];
          known.session = session.handle();
          known.master = task.name();
          known.step = &step;
          known.age_ms = std::max(known.age_ms, step.age_ms());
        }
      }
      for (const wire::PartReport& part : task.report().part()) {
        Step& known = steps_[part.step_id()];
        known.session = part.session();
        known.age_ms = std::max(known.age_ms, part.age_ms());
        for (const wire::WaitReport& wait : part.wait()) {
          known.age_ms = std::max(known.age_ms, wait.age_ms());
        }
        known.parts[task.name()] = &part;
      }
    }
  }

  void FindSilentTasks() {
    for (const wire::ClusterTask& task : cluster_.task()) {
      if (!task.has_error()) continue;
      size_t waiting = 0;
      for (const auto& [id, step] : steps_) {
        if (step.step == nullptr) continue;
        const auto& tasks = step.step->running_in();
        waiting += std::count(tasks.begin(), tasks.end(), task.name()) > 0 ? 1 : 0;
      }
      std::string text = StrCat(ShortTask(task.name()), " at ", task.address(),
                                " does not answer (", task.error().message(), ").");
      int64_t silent_ms = -1;
      for (const wire::ClusterTask& other : cluster_.task()) {
        for (const wire::PeerReport& peer : other.report().peer()) {
          if (peer.task() != task.name() || peer.heartbeats_missed() == 0) continue;
          silent_ms = std::max(silent_ms, peer.silent_ms());
        }
      }
      if (silent_ms >= 0) StrAppend(&text, " It was last heard ", AgeText(silent_ms), " ago.");
      StrAppend(&text, " It has died, is stopped, or cannot be reached.");
      if (waiting > 0)
        StrAppend(&text, " ", Plural(waiting, "step waits", "steps wait"), " for it.");
      Find(std::move(text));
    }
  }

  void FindNewSessions() {
    for (const wire::ClusterTask& task : cluster_.task()) {
      // For each task that does not answer: the number of new sessions that wait for it, and the
      // longest of these waits in milliseconds.
      std::map<std::string, std::pair<size_t, int64_t>> waiting;
      for (const wire::NewSessionReport& session : task.report().new_session()) {
        if (!ExceedsPatience(session.age_ms())) continue;
        std::set<std::string> silent;
        for (const std::string& needed : session.task()) {
          const wire::ClusterTask* const other = graph_.FindTask(needed);
          if (other == nullptr || other->has_error()) silent.insert(ShortTask(needed));
        }
        for (const wire::UnansweredTask& unanswered : session.unanswered()) {
          silent.insert(ShortTask(unanswered.task()));
        }
        auto& [count, age_ms] = waiting[absl::StrJoin(silent, ", ")];
        ++count;
        age_ms = std::max(age_ms, session.age_ms());
      }
      for (const auto& [silent, found] : waiting) {
        Find(StrCat(Plural(found.first, "new session", "new sessions"), " of ",
                    ShortTask(task.name()), found.first == 1 ? " waits" : " wait",
                    ForText(found.second), ", for ",
                    silent.empty() ? "the answers of the tasks" : silent,
                    silent.empty() ? "." : ", which must answer before a session can begin."));
      }
    }
  }

  void FindMissingParts() {
    for (const auto& [id, step] : steps_) {
      if (step.step == nullptr || !ExceedsPatience(step.step->age_ms())) continue;
      for (const std::string& task : step.step->running_in()) {
        const wire::ClusterTask* const known = graph_.FindTask(task);
        if (known == nullptr || known->has_error() || step.parts.count(task) > 0) continue;
        Find(StrCat(StepText(id), " waits for its part in ", ShortTask(task),
                    ", which answers but does not run it: it has been restarted, or the call has "
                    "not reached it yet."));
      }
    }
  }

  void FindCycles() {
    for (const std::vector<size_t>& cycle : graph_.Cycles()) {
      const auto& waits = graph_.waits();
      const bool recent = std::none_of(cycle.begin(), cycle.end(), [&](size_t i) {
        return ExceedsPatience(waits[i].wait->age_ms());
      });
      if (recent) continue;
      std::string text =
          cycle.size() == 1 ? "A step waits for itself:" : "Steps wait for each other, in a cycle:";
      for (const size_t i : cycle) {
        StrAppend(&text, "\n     ", WaitText(graph_, waits[i]), " of ",
                  StepText(waits[i].part->step_id()), " in ", ShortTask(waits[i].task),
                  ";\n       ", WayText(graph_, waits[i], *graph_.Next(i).second));
      }
      Find(std::move(text));
    }
  }

  void FindUnfilledQueues() {
    std::map<std::pair<WaitGraph::ResourceKey, Kind::Kind>, std::vector<const WaitGraph::Wait*>>
        found;
    for (const WaitGraph::Wait& wait : graph_.waits()) {
      if (!wait.is_unservable() || !ExceedsPatience(wait.wait->age_ms())) continue;
      found[{WaitGraph::KeyOf(wait.wait->resource()), wait.wait->kind()}].push_back(&wait);
    }
    for (const auto& [key, waits] : found) {
      int64_t oldest_ms = 0;
      std::set<std::string> nodes;
      for (const WaitGraph::Wait* const wait : waits) {
        oldest_ms = std::max(oldest_ms, wait->wait->age_ms());
        nodes.insert(StrCat("'", wait->wait->node(), "'"));
      }
      const char* const verb = key.second == Kind::TAKE  ? "fills"
                               : key.second == Kind::PUT ? "takes from"
                                                         : "would free";
      Find(StrCat("Nobody ", verb, " ", ResourceText(graph_, waits[0]->wait->resource()), ": ",
                  absl::StrJoin(nodes, ", "), nodes.size() == 1 ? " waits" : " wait",
                  ForText(oldest_ms), ", and no step that runs now in any task has a node that ",
                  key.second == Kind::TAKE  ? "would put an element in or close it. Whatever fills "
                                              "it has ended, failed or was never started."
                  : key.second == Kind::PUT ? "would take an element out. Whatever empties it has "
                                              "ended, failed or was never started."
                                            : "holds it."));
    }
  }

  void FindComputations() {
    for (const auto& [id, step] : steps_) {
      if (!ExceedsPatience(step.age_ms)) continue;
      for (const auto& [task, part] : step.parts) {
        if (!part->computing() || part->wait_size() > 0) continue;
        std::string text = StrCat(StepText(id), " computes in ", ShortTask(task),
                                  ForText(part->age_ms()), ", and waits for nothing there");
        for (const wire::LoopReport& loop : part->loop()) {
          StrAppend(&text, "; it is in iteration ", loop.iteration(), " of loop '", loop.name(),
                    "'");
        }
        StrAppend(&text, part->loop_size() > 0 ? ": a loop without an end, or a long one."
                                               : ": a long computation, or a loop without an end.");
        Find(std::move(text));
      }
    }
  }

  void FindBlockingCalls() {
    for (const wire::ClusterTask& task : cluster_.task()) {
      for (const std::string& call : task.report().blocking_call()) {
        Find(StrCat("In ", ShortTask(task.name()), " the operating system has not come back to ",
                    call, "."));
      }
    }
  }

  void DescribeSteps() {
    for (const auto& [id, step] : steps_) {
      if (!ExceedsPatience(step.age_ms)) continue;
      ++old_;
      if (explanation_.steps.size() < steps_max_) explanation_.steps.push_back(Describe(id, step));
    }
  }

  std::string Describe(uint64_t id, const Step& step) const {
    std::string text = StrCat(StepText(id), " of session ", step.session, ForText(step.age_ms));
    if (step.step != nullptr) {
      if (step.step->fetch_size() > 0) {
        StrAppend(&text, ", fetches ", absl::StrJoin(step.step->fetch(), ", "));
      }
      if (step.step->target_size() > 0) {
        StrAppend(&text, ", runs ", absl::StrJoin(step.step->target(), ", "));
      }
      StrAppend(&text, ", master ", ShortTask(step.master));
      for (const std::string& task : step.step->running_in()) {
        if (step.parts.count(task) == 0) StrAppend(&text, "\n  ", ShortTask(task), ": unknown");
      }
    } else {
      StrAppend(&text, ", run in its client's own process");
    }
    for (const auto& [task, part] : step.parts) {
      StrAppend(&text, "\n  ", ShortTask(task), ": ");
      StrAppend(&text, PartText(graph_, task, *part));
    }
    return text;
  }

  void Summarise() {
    size_t silent = 0, sessions = 0;
    for (const wire::ClusterTask& task : cluster_.task()) {
      silent += task.has_error() ? 1 : 0;
      sessions += static_cast<size_t>(task.report().session_size());
    }
    explanation_.summary =
        StrCat(Plural(static_cast<size_t>(cluster_.task_size()), "task", "tasks"), ", ",
               silent == 0 ? "all answer" : Plural(silent, "does not answer", "do not answer"),
               "; ", Plural(sessions, "session", "sessions"), "; ",
               steps_.empty() ? "no step runs" : Plural(steps_.size(), "step runs", "steps run"));
    if (!steps_.empty()) {
      StrAppend(&explanation_.summary, ", ", old_ == 0 ? "none" : StrCat(old_), " for longer than ",
                AgeText(patience_ms_));
    }
  }

  const wire::ClusterReport& cluster_;
  const WaitGraph graph_;
  const int64_t patience_ms_;
  const size_t steps_max_;
  std::map<uint64_t, Step> steps_;
  size_t old_ = 0;
  Explanation explanation_;
};

}  // namespace

std::string Explanation::ToString() const {
  std::string text = StrCat(summary, ".\n");
  if (findings.empty()) {
    StrAppend(&text,
              "\nNothing is stuck in the cluster. A client that does not go on waits on its "
              "own side: no step of it is in flight, or its step goes on.\n");
  }
  for (size_t i = 0; i < findings.size(); ++i) {
    StrAppend(&text, i == 0 ? "\nWhy:\n" : "", "  ", i + 1, ". ", findings[i], "\n");
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    StrAppend(&text, i == 0 ? "\nWhat waits for what:\n" : "", steps[i], "\n");
  }
  return text;
}

bool AgesAreMissing(const wire::ClusterReport& cluster) {
  for (const wire::ClusterTask& task : cluster.task()) {
    for (const wire::PartReport& part : task.report().part()) {
      if (part.age_ms() < 0) return true;
    }
  }
  return false;
}

void LearnAges(const wire::ClusterReport& before, int64_t passed_ms, wire::ClusterReport* now) {
  std::set<uint64_t> ageless;
  for (const wire::ClusterTask& task : before.task()) {
    for (const wire::PartReport& part : task.report().part()) {
      if (part.age_ms() < 0) ageless.insert(part.step_id());
    }
  }
  for (wire::ClusterTask& task : *now->mutable_task()) {
    if (!task.has_report()) continue;
    for (wire::PartReport& part : *task.mutable_report()->mutable_part()) {
      if (part.age_ms() < 0 && ageless.count(part.step_id()) > 0) part.set_age_ms(passed_ms);
    }
  }
}

Explanation Explain(const wire::ClusterReport& cluster, int64_t patience_ms, size_t steps_max) {
  return Explainer(cluster, patience_ms, steps_max).Explain();
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/outside_causes.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/op/task_name.h"
#include "distributed/insight/words.h"

namespace penstock {
namespace {

using absl::StrAppend;
using absl::StrCat;

constexpr int kMissesMin = 2;
// The longest time between two questions of a client that waits for variables. TensorFlow's clients
// ask every 30 s.
constexpr int64_t kAskedAgainMs = 35'000;
constexpr size_t kNamesShown = 5;

bool HasSessions(const wire::ClusterReport& cluster) {
  return std::any_of(cluster.task().begin(), cluster.task().end(),
                     [](const auto& task) { return task.report().session_size() > 0; });
}

// Finds the pairs of tasks of which one cannot reach the other.
class CutFinder {
 public:
  CutFinder(const wire::ClusterReport& cluster, const WaitGraph& graph, int64_t patience_ms)
      : cluster_(cluster), graph_(graph), patience_ms_(patience_ms) {}

  std::vector<std::string> Find() {
    for (const wire::ClusterTask& task : cluster_.task()) {
      AddUnreached(task);
      AddPeers(task);
      AddNewSessions(task);
      AddTransfers(task);
    }
    std::vector<std::string> findings;
    for (const auto& [pair, cut] : cuts_) {
      const auto& [from, to] = pair;
      const auto back = cuts_.find({to, from});
      if (back != cuts_.end() && to < from)
        continue;  // this pair was described with the other direction
      Cut shown = cut;
      if (back != cuts_.end()) shown.since_ms = std::max(cut.since_ms, back->second.since_ms);
      findings.push_back(Describe(from, to, shown, back != cuts_.end()));
    }
    return findings;
  }

 private:
  struct Cut {
    int64_t since_ms = -1;
    std::string why;
  };

  // Returns the task if it has answered, else null. A follower's answer does not count.
  const wire::ClusterTask* Answers(const std::string& name) const {
    const wire::ClusterTask* const task = graph_.FindTask(name);
    if (task == nullptr || !task->has_report() || task->has_error()) return nullptr;
    const bool serves = !task->has_other_replica() ||
                        task->report().replica().role() == wire::ReplicaReport::PRIMARY;
    return serves ? task : nullptr;
  }

  void Add(const std::string& from, const std::string& to, int64_t since_ms,
           const std::string& why) {
    if (from == to || Answers(to) == nullptr) return;
    Cut& cut = cuts_[{from, to}];
    cut.since_ms = std::max(cut.since_ms, since_ms);
    if (cut.why.empty()) cut.why = why;
  }

  void AddUnreached(const wire::ClusterTask& task) {
    if (!task.has_unreached_by_asked()) return;
    Add(cluster_.asked(), task.name(), -1, task.unreached_by_asked().message());
  }

  void AddPeers(const wire::ClusterTask& task) {
    for (const wire::PeerReport& peer : task.report().peer()) {
      const wire::ClusterTask* const other = Answers(peer.task());
      // Skips a task that was restarted: another incarnation of it has missed the heartbeats.
      const bool same =
          other != nullptr && other->report().self().incarnation() == peer.incarnation();
      if (!same || peer.heartbeats_missed() < kMissesMin || peer.silent_ms() < patience_ms_) {
        continue;
      }
      Add(task.name(), peer.task(), peer.silent_ms(),
          StrCat(peer.heartbeats_missed(), " heartbeats in a row were not answered"));
    }
  }

  void AddNewSessions(const wire::ClusterTask& task) {
    for (const wire::NewSessionReport& session : task.report().new_session()) {
      if (session.age_ms() < patience_ms_) continue;
      for (const wire::UnansweredTask& unanswered : session.unanswered()) {
        Add(task.name(), unanswered.task(), session.age_ms(), unanswered.error().message());
      }
    }
  }

  // Finds tensors that are ready, and for which a consumer waits, although its subscription has not
  // arrived at the producer.
  void AddTransfers(const wire::ClusterTask& task) {
    for (const wire::PartReport& part : task.report().part()) {
      for (const wire::WaitReport& wait : part.wait()) {
        if (wait.from_device().empty() || wait.age_ms() < patience_ms_) continue;
        const std::string source = TaskOfDevice(wait.from_device());
        const wire::PartReport* const sends = graph_.FindPart(source, part.step_id());
        if (sends == nullptr) continue;
        const auto& unasked = sends->unasked_by();
        if (std::count(unasked.begin(), unasked.end(), task.name()) == 0) continue;
        Add(task.name(), source, wait.age_ms(),
            StrCat("the tensor '", wait.tensor(), "' of ", StepText(part.step_id()),
                   " is ready, but was not asked for"));
      }
    }
  }

  static std::string Describe(const std::string& from, const std::string& to, const Cut& cut,
                              bool both_ways) {
    return StrCat(ShortTask(from), both_ways ? " and " : " cannot reach ", ShortTask(to),
                  both_ways ? " cannot reach each other" : "", ForText(cut.since_ms),
                  ", although both of them have answered now: the network between the two is cut, "
                  "or a firewall, a route or a wrong address keeps them apart (",
                  cut.why, ").");
  }

  const wire::ClusterReport& cluster_;
  const WaitGraph& graph_;
  const int64_t patience_ms_;
  std::map<std::pair<std::string, std::string>, Cut> cuts_;  // from, to
};

// Returns a text about the chief: the task whose client usually initialises the variables.
std::string ChiefText(const wire::ClusterReport& cluster) {
  const wire::ClusterTask* chief = nullptr;
  for (const char* const job : {"chief", "master", "worker"}) {
    const std::string name = TaskName{.job = job}.ToString();
    for (const wire::ClusterTask& task : cluster.task()) {
      if (chief == nullptr && task.name() == name) chief = &task;
    }
  }
  if (chief == nullptr) return "";
  const std::string name = StrCat("the chief, in most programs ", ShortTask(chief->name()), ",");
  if (chief->has_error()) return StrCat("; ", name, " does not answer");
  if (chief->report().session_size() > 0) {
    return StrCat("; ", name,
                  " has a session, so its program may lack the variable or be about "
                  "to initialise it");
  }
  return StrCat("; ", name,
                chief->report().new_session_size() > 0
                    ? " has no session yet, because its new session waits for tasks"
                    : " has no session: its program has not started, or has ended");
}

// Returns the tasks that have sessions.
std::string SessionsText(const wire::ClusterReport& cluster) {
  std::vector<std::string> tasks;
  for (const wire::ClusterTask& task : cluster.task()) {
    const int count = task.report().session_size();
    if (count > 0) tasks.push_back(StrCat(ShortTask(task.name()), " (", count, ")"));
  }
  return absl::StrJoin(tasks, ", ");
}

std::string NamesText(std::vector<std::string> names) {
  const size_t count = names.size();
  names.resize(std::min(count, kNamesShown));
  for (std::string& name : names) name = StrCat("'", name, "'");
  std::string text = absl::StrJoin(names, ", ");
  if (count > kNamesShown) StrAppend(&text, " and ", count - kNamesShown, " more");
  return text;
}

}  // namespace

std::vector<std::string> FindCutPairs(const wire::ClusterReport& cluster, const WaitGraph& graph,
                                      int64_t patience_ms) {
  return CutFinder(cluster, graph, patience_ms).Find();
}

std::vector<std::string> FindAwaitedVariables(const wire::ClusterReport& cluster,
                                              int64_t patience_ms) {
  std::vector<std::string> findings;
  if (!HasSessions(cluster)) return findings;
  for (const wire::ClusterTask& task : cluster.task()) {
    std::vector<std::string> names;
    int64_t first_ms = 0, last_ms = kAskedAgainMs, times = 0;
    for (const wire::AwaitedVariableReport& variable : task.report().awaited_variable()) {
      const bool waited_for = variable.times() > 1 && variable.age_ms() <= kAskedAgainMs &&
                              variable.first_age_ms() >= patience_ms;
      if (!waited_for) continue;
      names.push_back(variable.name().name());
      first_ms = std::max(first_ms, variable.first_age_ms());
      last_ms = std::min(last_ms, variable.age_ms());
      times = std::max(times, variable.times());
    }
    if (names.empty()) continue;
    findings.push_back(
        StrCat("Nobody has initialised ", names.size() == 1 ? "the variable " : "the variables ",
               NamesText(names), " on ", ShortTask(task.name()), ". Clients wait for ",
               names.size() == 1 ? "it" : "them", ForText(first_ms), ": they have asked ", times,
               " times, last ", AgeText(last_ms), " ago", ChiefText(cluster),
               ". Sessions now: ", SessionsText(cluster), "."));
  }
  return findings;
}

std::vector<std::string> FindFailedSaves(const wire::ClusterReport& cluster) {
  std::vector<std::string> findings;
  if (!HasSessions(cluster)) return findings;
  for (const wire::ClusterTask& task : cluster.task()) {
    for (const wire::FailedSaveReport& failed : task.report().failed_save()) {
      std::string text = StrCat("Checkpoint ", failed.path(), " could not be written by ",
                                ShortTask(task.name()), ", ", AgeText(failed.age_ms()), " ago: '",
                                failed.node(), "' failed with ", failed.error().message(), ".");
      if (failed.times() > 1) {
        StrAppend(&text, " It is failure number ", failed.times(), " in a row there",
                  ForText(failed.first_age_ms()), ".");
      }
      findings.push_back(StrCat(text,
                                " Until a save succeeds, a failure loses what was trained "
                                "since the last good checkpoint."));
    }
  }
  return findings;
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "distributed/worker/update_rules.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_join.h"
#include "core/base/status.h"

namespace penstock {
namespace {

// The maximum number of updates of one variable, with different nodes, that are kept for a session.
// A session that makes new training ops again and again would otherwise fill the task's memory.
constexpr size_t kProgramsMax = 16;

std::string TextOf(const Node& node, const char* attr) {
  const std::string* const text = node.attr<std::string>(attr);
  return text == nullptr ? "" : *text;
}

// Returns the text of the first of `nodes` that is not among `others`; "" if there is none.
std::string FirstDifference(const std::vector<TrainingProgram::Node>& nodes,
                            const std::vector<TrainingProgram::Node>& others) {
  std::unordered_set<uint64_t> hashes;
  for (const TrainingProgram::Node& other : others) hashes.insert(other.hash);
  for (const TrainingProgram::Node& node : nodes) {
    if (hashes.count(node.hash) == 0) return node.text;
  }
  return "";
}

// Returns whether the two sorted containers have a key in common, or one of them is empty.
template <class Keys, class KeyOf>
bool Agree(const Keys& a, const Keys& b, KeyOf key) {
  if (a.empty() || b.empty()) return true;
  return std::any_of(a.begin(), a.end(),
                     [&](const auto& element) { return b.count(key(element)) > 0; });
}

}  // namespace

std::vector<std::string> UpdateRules::Add(const std::string& session, const std::string& master,
                                          const std::string& device, const Graph& partition,
                                          const TrainingProgram& program) {
  std::map<string_view, uint64_t> hashes;  // by the update's name
  for (const TrainingProgram::Update& update : program.updates) hashes[update.node] = update.hash;
  std::map<Pair, std::string> differences;
  MutexLock lock(mu_);
  std::set<std::string> newest;  // found when the first update is noted
  std::shared_ptr<const Nodes> nodes;
  for (const Node* node : partition.nodes()) {
    const std::string& rule = node->op().update_rule;
    if (rule.empty() || node->num_inputs() == 0) continue;
    const Node* const variable = node->input(0).node;
    if (variable == nullptr || !variable->op().stateful) continue;
    const std::string shared = TextOf(*variable, "shared_name");
    const VariableName name = {StrCat(device, " ", TextOf(*variable, "container")),
                               shared.empty() ? variable->name() : shared};
    if (newest.empty()) {
      if (!sessions_.contains(session)) sessions_[session] = {master, ++last_number_};
      newest = Newest();
    }
    Updates& updates = updates_[name][session];
    updates.rules.insert(rule);
    const auto hash = hashes.find(node->name());
    if (hash != hashes.end() && !updates.too_many_programs) {
      if (nodes == nullptr) nodes = Share(program);
      updates.programs.try_emplace(hash->second, nodes);
      updates.too_many_programs = updates.programs.size() > kProgramsMax;
      if (updates.too_many_programs) updates.programs.clear();
    }
    Compare(name, session, newest, &differences);
  }
  std::vector<std::string> added;
  for (auto& [pair, message] : differences) {
    if (reported_.insert(pair).second) added.push_back(std::move(message));
  }
  return added;
}

std::shared_ptr<const UpdateRules::Nodes> UpdateRules::Share(const TrainingProgram& program) {
  std::erase_if(shared_, [](const auto& nodes) { return nodes.expired(); });
  for (const auto& known : shared_) {
    if (auto nodes = known.lock(); nodes != nullptr && *nodes == program.nodes) return nodes;
  }
  auto nodes = std::make_shared<const Nodes>(program.nodes);
  shared_.push_back(nodes);
  return nodes;
}

std::set<std::string> UpdateRules::Newest() const {
  std::map<string_view, std::pair<int64_t, string_view>> by_master;
  for (const auto& [name, session] : sessions_) {
    auto& newest = by_master[session.master];
    newest = std::max(newest, {session.number, name});
  }
  std::set<std::string> names;
  for (const auto& [master, newest] : by_master) names.emplace(newest.second);
  return names;
}

void UpdateRules::Compare(const VariableName& variable, const std::string& session,
                          const std::set<std::string>& newest,
                          std::map<Pair, std::string>* differences) const {
  if (!newest.contains(session)) return;
  const std::map<std::string, Updates>& sessions = updates_.at(variable);
  const Updates& own = sessions.at(session);
  const auto first = std::find_if(sessions.begin(), sessions.end(), [&](const auto& entry) {
    return entry.first != session && newest.contains(entry.first);
  });
  if (first == sessions.end()) return;
  const auto& [other_session, other] = *first;
  const Pair pair = {std::min(session, other_session), std::max(session, other_session)};
  if (differences->contains(pair)) return;
  const auto text = [&](const std::string& name) {
    mu_.AssertHeld();
    return StrCat("in session ", name, " of ", sessions_.at(name).master);
  };
  std::string what;
  if (!Agree(own.rules, other.rules, [](const std::string& rule) { return rule; })) {
    what = StrCat("by ", absl::StrJoin(other.rules, " and "), " ", text(other_session), ", and by ",
                  absl::StrJoin(own.rules, " and "), " ", text(session));
  } else if (!Agree(own.programs, other.programs, [](const auto& entry) { return entry.first; })) {
    const Nodes &own_nodes = *own.programs.begin()->second,
                &other_nodes = *other.programs.begin()->second;
    const std::string there = FirstDifference(other_nodes, own_nodes),
                      here = FirstDifference(own_nodes, other_nodes);
    const auto node = [](const std::string& node) {
      return node.empty() ? "" : StrCat(" from node ", node);
    };
    what = StrCat("by different programs:", node(there), " ", text(other_session), ",", node(here),
                  " ", text(session));
  } else {
    return;
  }
  (*differences)[pair] = StrCat("variable '", variable.second, "' is updated ", what,
                                ": all workers should run the same program");
}

void UpdateRules::Remove(const std::string& session) {
  MutexLock lock(mu_);
  if (sessions_.erase(session) == 0) return;
  for (auto it = updates_.begin(); it != updates_.end();) {
    it->second.erase(session);
    it = it->second.empty() ? updates_.erase(it) : std::next(it);
  }
  std::erase_if(reported_,
                [&](const Pair& pair) { return pair.first == session || pair.second == session; });
}

std::vector<std::string> UpdateRules::Differences() const {
  std::map<Pair, std::string> differences;
  MutexLock lock(mu_);
  const std::set<std::string> newest = Newest();
  for (const auto& [variable, sessions] : updates_) {
    // Compares each session with the first one.
    bool is_first = true;
    for (const auto& [session, updates] : sessions) {
      if (!newest.contains(session)) continue;
      if (!std::exchange(is_first, false)) Compare(variable, session, newest, &differences);
    }
  }
  std::vector<std::string> messages;
  for (auto& [pair, message] : differences) messages.push_back(std::move(message));
  return messages;
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "distributed/worker/update_rules.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_join.h"
#include "core/base/status.h"

namespace penstock {
namespace {

std::string TextOf(const Node& node, const char* attr) {
  const std::string* const text = node.attr<std::string>(attr);
  return text == nullptr ? "" : *text;
}

}  // namespace

std::vector<std::string> UpdateRules::Add(const std::string& session, const std::string& master,
                                          const std::string& device, const Graph& partition) {
  std::map<Pair, std::string> differences;
  MutexLock lock(mu_);
  for (const Node* node : partition.nodes()) {
    const std::string& rule = node->op().update_rule;
    if (rule.empty() || node->num_inputs() == 0) continue;
    const Node* const variable = node->input(0).node;
    if (variable == nullptr || !variable->op().holds_parameters) continue;
    const std::string shared = TextOf(*variable, "shared_name");
    const VariableName name = {StrCat(device, " ", TextOf(*variable, "container")),
                               shared.empty() ? variable->name() : shared};
    masters_[session] = master;
    rules_[name][session].insert(rule);
    Compare(name, session, &differences);
  }
  std::vector<std::string> added;
  for (auto& [pair, message] : differences) {
    if (told_.insert(pair).second) added.push_back(std::move(message));
  }
  return added;
}

void UpdateRules::Compare(const VariableName& variable, const std::string& session,
                          std::map<Pair, std::string>* differences) const {
  const std::map<std::string, Rules>& sessions = rules_.at(variable);
  const Rules& own = sessions.at(session);
  const auto other =
      sessions.begin()->first == session ? std::next(sessions.begin()) : sessions.begin();
  if (other == sessions.end()) return;
  for (const std::string& rule : own) {
    if (other->second.count(rule) > 0) return;
  }
  const auto text = [&](const std::string& name, const Rules& rules) {
    mu_.AssertHeld();
    return StrCat("by ", absl::StrJoin(rules, " and "), " in session ", name, " of ",
                  masters_.at(name));
  };
  differences->try_emplace(
      {std::min(session, other->first), std::max(session, other->first)},
      StrCat("variable '", variable.second, "' is updated ", text(other->first, other->second),
             ", and ", text(session, own), ": all workers should run the same program"));
}

void UpdateRules::Remove(const std::string& session) {
  MutexLock lock(mu_);
  if (masters_.erase(session) == 0) return;
  for (auto it = rules_.begin(); it != rules_.end();) {
    it->second.erase(session);
    it = it->second.empty() ? rules_.erase(it) : std::next(it);
  }
  std::erase_if(told_,
                [&](const Pair& pair) { return pair.first == session || pair.second == session; });
}

std::vector<std::string> UpdateRules::Differences() const {
  std::map<Pair, std::string> differences;
  MutexLock lock(mu_);
  for (const auto& [variable, sessions] : rules_) {
    // Compares each session with the first one.
    for (auto it = sessions.begin(); it != sessions.end(); ++it) {
      if (it != sessions.begin()) Compare(variable, it->first, &differences);
    }
  }
  std::vector<std::string> messages;
  for (auto& [pair, message] : differences) messages.push_back(std::move(message));
  return messages;
}

}  // namespace penstock

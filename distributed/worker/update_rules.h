// SPDX-License-Identifier: Apache-2.0
//
// UpdateRules: by which rules ("Adam") the sessions of a task update its variables. In
// between-graph replication each worker sends a graph of its own, and all graphs should come from
// one program. Two sessions that update one variable by different rules run different programs.
//
// Only what is certain counts: the ops with an OpDef::update_rule, in graphs that were registered
// here, on variables and tables that are their direct inputs. A session that does not update a
// variable agrees with all: it may only evaluate, or its chief applies the gradients. Thread-safe.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/graph/graph.h"

namespace penstock {

class UpdateRules {
 public:
  // Notes the training ops in a partition that a session registers. `master`: the name of the
  // session's master, for messages. Returns a message for each pair of this session and the one of
  // the lowest name that updates the same variable, if the two are found to differ for the first
  // time.
  std::vector<std::string> Add(const std::string& session, const std::string& master,
                               const std::string& device, const Graph& partition);
  // Forgets a session that has ended.
  void Remove(const std::string& session);
  // Returns a message for each session that updates a variable by another rule than the session of
  // the lowest name that updates this variable.
  std::vector<std::string> Differences() const;

 private:
  using Rules = std::set<std::string>;
  using VariableName = std::pair<std::string, std::string>;  // device and container, name
  using Pair = std::pair<std::string, std::string>;          // two sessions

  // Adds to `differences` a message for `session`, unless it has one or its rules for `variable`
  // have something in common with those of the first session.
  void Compare(const VariableName& variable, const std::string& session,
               std::map<Pair, std::string>* differences) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable Mutex mu_;
  std::map<std::string, std::string> masters_ ABSL_GUARDED_BY(mu_);  // by session
  // The rules of each session, by variable.
  std::map<VariableName, std::map<std::string, Rules>> rules_ ABSL_GUARDED_BY(mu_);
  std::set<Pair> told_ ABSL_GUARDED_BY(mu_);  // pairs that Add has returned a message for
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// UpdateRules: remembers by which rules ("Adam") the sessions of a task update its variables. In
// between-graph replication each worker sends a graph of its own, and all graphs should come from
// one program. Two sessions run different programs if they update one variable by different rules,
// or compute their updates from different nodes, for example with another activation function.
//
// Only what is certain counts: the ops with an OpDef::update_rule, in graphs that were registered
// here, on variables, tables and gradient sums that are their direct inputs. A session that does
// not update a variable agrees with all: it may only evaluate, or its chief applies the gradients.
// A session that updates a variable in several ways agrees with all that know one of them, and with
// all if it has had too many ways to remember.
// Only the newest session of each master counts: the one whose first update was noted last. A
// client that was killed leaves a session behind, for an hour by default, and its next program may
// differ.
// distributed/master/summarize_training.h lists which differences of nodes count. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/graph/graph.h"
#include "distributed/worker/training_program.h"

namespace penstock {

class UpdateRules {
 public:
  // Notes the training ops in a partition that a session registers. `master`: the name of the
  // session's master, for messages; `program`: its summary of the step. Compares this session, for
  // each variable, with the session of the lowest name that updates the variable. Returns a message
  // for each pair of sessions that is found to differ for the first time.
  std::vector<std::string> Add(const std::string& session, const std::string& master,
                               const std::string& device, const Graph& partition,
                               const TrainingProgram& program = {});
  // Forgets a session that has ended.
  void Remove(const std::string& session);
  // Returns a message for each session that updates a variable by another rule, or from other
  // nodes, than the session of the lowest name that updates this variable. Meant for status reports
  // only, because it compares all variables.
  std::vector<std::string> Differences() const;

 private:
  using Nodes = std::vector<TrainingProgram::Node>;
  // The ways in which a session updates a variable.
  struct Updates {
    std::set<std::string> rules;
    // The nodes that the updates depend on (with others, perhaps), by the updates' hashes.
    std::map<uint64_t, std::shared_ptr<const Nodes>> programs;
    bool too_many_programs = false;  // if true, `programs` is empty
  };
  struct Session {
    std::string master;
    int64_t number = 0;  // sessions that were noted later have higher ones
  };
  using VariableName = std::pair<std::string, std::string>;  // device and container, name
  using Pair = std::pair<std::string, std::string>;          // two sessions

  // Returns the nodes of `program`, which all sessions that have the same share.
  std::shared_ptr<const Nodes> Share(const TrainingProgram& program)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns the newest session of each master.
  std::set<std::string> Newest() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Compares the updates of `variable` by `session` with those by the first other one of `newest`.
  // If they have nothing in common, adds a message to `differences`, unless the pair has one.
  void Compare(const VariableName& variable, const std::string& session,
               const std::set<std::string>& newest, std::map<Pair, std::string>* differences) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable Mutex mu_;
  std::map<std::string, Session> sessions_ ABSL_GUARDED_BY(mu_);
  int64_t last_number_ ABSL_GUARDED_BY(mu_) = 0;  // number of the session noted last
  // The updates of each session, by variable.
  std::map<VariableName, std::map<std::string, Updates>> updates_ ABSL_GUARDED_BY(mu_);
  std::vector<std::weak_ptr<const Nodes>> shared_ ABSL_GUARDED_BY(mu_);
  std::set<Pair> reported_ ABSL_GUARDED_BY(mu_);  // pairs that Add has returned a message for
};

}  // namespace penstock

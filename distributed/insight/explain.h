// SPDX-License-Identifier: Apache-2.0
//
// Explains why a cluster is stuck: what is wrong, in plain words, and below it the wait-for graph
// from which that follows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/penstock/insight.pb.h"

namespace penstock {

struct Explanation {
  // Each names a culprit: a task that does not answer, a queue that nobody fills, a cycle, a
  // computation without an end. Empty: nothing was found to be stuck.
  std::vector<std::string> findings;
  // A paragraph per step: the nodes that run or wait, and for what.
  std::vector<std::string> steps;
  // The number of tasks and steps that were examined: "5 tasks, 1 does not answer; 3 steps run, 2
  // of them for longer than 1 s".
  std::string summary;

  std::string ToString() const;
};

// Waits and steps younger than `patience_ms` are not looked at: in a cluster that works there are
// always some. `steps_max`: how many are described.
Explanation Explain(const wire::ClusterReport& cluster, int64_t patience_ms = 1'000,
                    size_t steps_max = 20);

// Steps that run in the client's own process do not say how old they are. A second look tells those
// that are still there: LearnAges says in `now` that they are `passed_ms` old, if `before` had
// them.
bool AgesAreMissing(const wire::ClusterReport& cluster);
void LearnAges(const wire::ClusterReport& before, int64_t passed_ms, wire::ClusterReport* now);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Explains why a cluster is stuck: findings in plain words, and the part of the wait-for graph from
// which they follow. Also estimates the ages of steps that reports leave out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/penstock/insight.pb.h"

namespace penstock {

struct Explanation {
  // Each finding names a culprit: a task that does not answer, a queue that no node fills, a
  // cycle of waits, a computation that does not end. Empty if nothing is stuck.
  std::vector<std::string> findings;
  // One paragraph per step: the nodes that run or wait, and what they wait for.
  std::vector<std::string> steps;
  // The number of tasks and steps that were examined: "5 tasks, 1 does not answer; 3 steps run, 2
  // of them for longer than 1 s".
  std::string summary;

  std::string ToString() const;
};

// Ignores waits and steps younger than `patience_ms`, because a working cluster always has some.
// Describes at most `steps_max` steps.
Explanation Explain(const wire::ClusterReport& cluster, int64_t patience_ms = 1'000,
                    size_t steps_max = 20);

// Estimate the age of steps that run in the client's own process: reports do not contain it.
// AgesAreMissing returns whether there is such a step. If so, the caller gets a second report,
// `now`, `passed_ms` after `before`. LearnAges then sets the age of each such step that is in both
// reports to `passed_ms`.
bool AgesAreMissing(const wire::ClusterReport& cluster);
void LearnAges(const wire::ClusterReport& before, int64_t passed_ms, wire::ClusterReport* now);

}  // namespace penstock

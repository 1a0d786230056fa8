// SPDX-License-Identifier: Apache-2.0
//
// StuckWatch: finds steps that make no progress, and prints the output of `penstock why` about them
// to the task's log.
//
// A step makes no progress if it has run for `patience_ms`, none of its parts computes when it is
// examined, and either one of its nodes has waited for `patience_ms` or a task that runs one of its
// parts does not answer. The watch reports it once, then again whenever its age has doubled. A
// watch reports only steps whose master is its own task, so only one task reports a step.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "proto/penstock/insight.pb.h"

namespace penstock {

class StuckWatch {
 public:
  struct Options {
    int64_t patience_ms = 60'000;
    // Return the reports of this task, and of all tasks of the cluster. `ask_cluster` is called
    // when a step of this task's sessions seems to be stuck; it may take a few seconds.
    std::function<wire::TaskReport()> ask_task;
    std::function<wire::ClusterReport()> ask_cluster;
    // Prints a text of several lines.
    std::function<void(const std::string&)> say;
  };
  explicit StuckWatch(Options options) : options_(std::move(options)) {}

  // Looks for stuck steps. The caller calls this every few seconds.
  void Look();

 private:
  // Ages of steps, in milliseconds, by step id.
  using Ages = std::map<uint64_t, int64_t>;

  Ages FindOldSteps(const wire::TaskReport& task) const;
  void Forget(const wire::TaskReport& task);

  const Options options_;
  // The age at which a step is examined next, and reported if it makes no progress.
  Ages report_at_ms_;
};

}  // namespace penstock

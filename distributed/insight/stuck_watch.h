// SPDX-License-Identifier: Apache-2.0
//
// StuckWatch: finds steps that make no progress, and says by itself what `penstock why` would tell.
//
// A step makes no progress if it has run for `patience_ms`, none of its parts computes when it is
// looked at, and a node of it has waited for `patience_ms` or a task that runs a part of it is
// silent. It is told about once, then again whenever it has become twice as old. A master's watch
// tells about the master's own steps alone, so a step is told about in one task.
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
    // Asks this task, and all tasks of the cluster. The second is called when a step of this task's
    // sessions seems to be stuck; it may take a few seconds.
    std::function<wire::TaskReport()> ask_task;
    std::function<wire::ClusterReport()> ask_cluster;
    // Is handed the text, of several lines.
    std::function<void(const std::string&)> say;
  };
  explicit StuckWatch(Options options) : options_(std::move(options)) {}

  // To be called every few seconds.
  void Look();

 private:
  // Ages of steps, in milliseconds, by step id.
  using Ages = std::map<uint64_t, int64_t>;

  Ages Suspects(const wire::TaskReport& task) const;
  void Forget(const wire::TaskReport& task);

  const Options options_;
  // How old a step must be for the next message.
  Ages tell_at_ms_;
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Progress: prints the state of a training: step, speed, measures such as the loss, and the time
// left. On a terminal it updates one line in place; otherwise it prints a plain line every few
// seconds.
//
// Uses colour only on a terminal and if NO_COLOR is not set. With --log_format=json
// (core/base/log.h) it writes "progress" events to the log instead, with the numbers as fields. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>

#include "core/base/env.h"

namespace penstock::client {

struct ProgressOptions {
  std::string label = "";         // printed before each line, such as "worker 1"
  int64_t max_steps = 0;          // 0: the end is not known, so no time left is shown
  int64_t examples_per_step = 0;  // 0: examples are not counted
  double live_seconds = 0.2;      // minimum time between changes of the line on a terminal
  double plain_seconds = 5;       // minimum time between lines that are not on a terminal
};

class Progress {
 public:
  using Options = ProgressOptions;
  // `out` and `env` must outlive the Progress.
  explicit Progress(const Options& options, std::FILE* out = stderr, Env& env = Env::Real());
  // Calls Finish.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Call this after each step. `measures` ("loss", "accuracy") are shown in order of name.
  void Step(int64_t step, const std::map<std::string, double>& measures = {});
  // Prints `line` as a separate line; on a terminal, above the line that is updated in place.
  void Say(const std::string& line);
  // Shows the last step if it was not shown yet. The line stays on the screen.
  void Finish();

  // Returns the text of a line, without colour.
  std::string Line() const;

 private:
  void Show();
  void Log() const;
  double rate() const;

  const Options options_;
  std::FILE* const out_;
  Env& env_;
  const bool live_, colour_;
  int64_t first_step_ = -1, step_ = -1;
  int64_t start_ns_ = 0, now_ns_ = 0, shown_ns_ = 0;
  int64_t shown_step_ = -1;
  bool line_open_ = false;
  std::map<std::string, double> measures_;
};

// Returns a text such as "1:05" or "2:03:04".
std::string DurationString(double seconds);

}  // namespace penstock::client

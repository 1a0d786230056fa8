// SPDX-License-Identifier: Apache-2.0
//
// Progress: tells a person how training is getting on: step, speed, loss, accuracy, time left. On a
// terminal one line that changes in place; elsewhere a plain line now and then.
//
// Colour only on a terminal without NO_COLOR in its environment. Not thread-safe.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>

#include "core/base/env.h"

namespace penstock::client {

struct ProgressOptions {
  std::string label = "";         // "worker 1"
  int64_t max_steps = 0;          // 0: no end known, no time left
  int64_t examples_per_step = 0;  // 0: examples are not counted
  double live_seconds = 0.2;      // between changes of the line on a terminal
  double plain_seconds = 5;       // between lines elsewhere
};

class Progress {
 public:
  using Options = ProgressOptions;
  // `out` and `env` must outlive it.
  explicit Progress(const Options& options, std::FILE* out = stderr, Env& env = Env::Real());
  // Finishes.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // After each step. `measures` ("loss", "accuracy") are shown in order of name.
  void Step(int64_t step, const std::map<std::string, double>& measures = {});
  // A line of its own, above the live one.
  void Say(const std::string& line);
  // Shows the last step if that was not shown yet, and leaves the live line standing.
  void Finish();

  // Returns the text of a line, without colour.
  std::string Line() const;

 private:
  void Show();

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

// "1:05", "2:03:04".
std::string DurationString(double seconds);

}  // namespace penstock::client

// SPDX-License-Identifier: Apache-2.0
#include "client/progress.h"

#include <unistd.h>

#include <cmath>
#include <cstdlib>

#include "absl/strings/str_format.h"
#include "core/base/log.h"

namespace penstock::client {
namespace {

constexpr char kEraseLine[] = "\r\x1b[K";
constexpr char kDim[] = "\x1b[2m";
constexpr char kPlain[] = "\x1b[0m";

bool IsJson() { return CurrentLogOptions().format == LogFormat::kJson; }

bool HasColour(bool live) {
  const char* const no_color = std::getenv("NO_COLOR");
  return live && (no_color == nullptr || *no_color == '\0');
}

}  // namespace

std::string DurationString(double seconds) {
  const int64_t s = std::llround(std::max(0.0, seconds));
  if (s < 3600) return absl::StrFormat("%d:%02d", s / 60, s % 60);
  return absl::StrFormat("%d:%02d:%02d", s / 3600, s / 60 % 60, s % 60);
}

Progress::Progress(const Options& options, std::FILE* out, Env& env)
    : options_(options),
      out_(out),
      env_(env),
      live_(!IsJson() && isatty(fileno(out)) == 1),
      colour_(HasColour(live_)),
      start_ns_(env.NowNanos()),
      now_ns_(start_ns_) {}

Progress::~Progress() { Finish(); }

void Progress::Step(int64_t step, const std::map<std::string, double>& measures) {
  now_ns_ = env_.NowNanos();
  if (first_step_ < 0 || step < step_) {  // at the start, or after going back to a checkpoint
    first_step_ = step;
    start_ns_ = now_ns_;
  }
  step_ = step;
  for (const auto& [name, value] : measures) measures_[name] = value;
  const double pause = live_ ? options_.live_seconds : options_.plain_seconds;
  const bool last = options_.max_steps > 0 && step >= options_.max_steps;
  if (shown_step_ < 0 || last || (now_ns_ - shown_ns_) * 1e-9 >= pause) Show();
}

std::string Progress::Line() const {
  std::string line = options_.label;
  if (!line.empty()) line += "  ";
  StrAppend(&line, "step ", step_);
  if (options_.max_steps > 0) StrAppend(&line, "/", options_.max_steps);
  if (rate() > 0) {
    absl::StrAppendFormat(&line, "  %.4g steps/s", rate());
    if (options_.examples_per_step > 0) {
      absl::StrAppendFormat(&line, "  %.0f examples/s", rate() * options_.examples_per_step);
    }
  }
  for (const auto& [name, value] : measures_) {
    absl::StrAppendFormat(&line, "  %s %.4f", name, value);
  }
  if (rate() > 0 && options_.max_steps > step_) {
    line += "  " + DurationString((options_.max_steps - step_) / rate()) + " left";
  }
  return line;
}

// Returns the steps per second since the first call of Step, or since the training went back to a
// checkpoint; 0 if not known yet.
double Progress::rate() const {
  const double seconds = (now_ns_ - start_ns_) * 1e-9;
  const int64_t steps = step_ - first_step_;
  return seconds > 0 && steps > 0 ? steps / seconds : 0;
}

void Progress::Log() const {
  LogLine line{.event = "progress", .text = Line(), .fields = {{"step", step_}}};
  if (options_.max_steps > 0) line.fields.push_back({"max_steps", options_.max_steps});
  if (rate() > 0) line.fields.push_back({"steps_per_second", rate()});
  for (const auto& [name, value] : measures_) line.fields.push_back({name, value});
  penstock::Log(line);
}

void Progress::Show() {
  const std::string line = Line();
  if (IsJson()) {
    Log();
  } else if (live_) {
    std::fprintf(out_, "%s%s%s%s", kEraseLine, colour_ ? kDim : "", line.c_str(),
                 colour_ ? kPlain : "");
    line_open_ = true;
  } else {
    std::fprintf(out_, "%s\n", line.c_str());
  }
  std::fflush(out_);
  shown_ns_ = now_ns_;
  shown_step_ = step_;
}

void Progress::Say(const std::string& line) {
  if (IsJson()) return penstock::Log({.event = "training", .text = line});
  std::fprintf(out_, "%s%s\n", line_open_ ? kEraseLine : "", line.c_str());
  line_open_ = false;
  std::fflush(out_);
}

void Progress::Finish() {
  if (step_ >= 0 && shown_step_ != step_) Show();
  if (line_open_) std::fputc('\n', out_);
  line_open_ = false;
  std::fflush(out_);
}

}  // namespace penstock::client

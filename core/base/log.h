// SPDX-License-Identifier: Apache-2.0
//
// Log: writes lines to standard error for the people who run the cluster, as text or as JSON
// objects.
//
//   Log({.level = LogLevel::kWarning,
//        .task = self.name,
//        .event = "task_lost",
//        .text = StrCat(peer.ToString(), " is lost: ", why.message()),
//        .fields = {{"peer", peer.name}}});
//
//   2026-11-25T12:59:01.123Z warning /job:worker/task:0: /job:ps/task:0 ... is lost: ...
//   {"time":"2026-11-25T12:59:01.123Z","level":"warning","task":"/job:worker/task:0",
//    "event":"task_lost","text":"...","peer":"/job:ps/task:0"}             (on one line)
//
// The settings apply to the whole process. The defaults are text and level `info`;
// PENSTOCK_LOG_FORMAT, PENSTOCK_LOG_LEVEL and SetLogOptions change them. Control characters are
// escaped and all lines of a text but the first are indented, so that text from another process
// cannot look like a log line. Colour is used only on a terminal, and not if NO_COLOR is set.
// Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/status.h"

namespace penstock {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };
enum class LogFormat { kText, kJson };

struct LogOptions {
  LogFormat format = LogFormat::kText;
  LogLevel level = LogLevel::kInfo;  // the lowest level that is written
};

// Parse a format ("text", "json") and a level ("debug", "info", "warning", "error", "off").
// InvalidArgument lists the names.
StatusOr<LogFormat> ParseLogFormat(const std::string& name);
StatusOr<LogLevel> ParseLogLevel(const std::string& name);
std::string Name(LogFormat format);
std::string Name(LogLevel level);

LogOptions CurrentLogOptions();
void SetLogOptions(const LogOptions& options);
// Returns `defaults`, with each field replaced for which an environment variable is set.
// InvalidArgument names a variable with an invalid value.
StatusOr<LogOptions> LogOptionsOfEnvironment(const LogOptions& defaults);
// Sets the task for lines whose `task` is empty: "/job:worker/task:0".
void SetLogTask(const std::string& task);

struct LogField {
  std::string name;  // snake_case
  std::variant<std::string, int64_t, double> value;
};

struct LogLine {
  LogLevel level = LogLevel::kInfo;
  std::string task =
      "";             // "/job:ps/replica:0/task:0"; "" stands for the task that SetLogTask has set
  const char* event;  // what happened, for programs: "session_made"
  std::string text;   // the event for people, without the task and without a full stop
  std::vector<LogField> fields = {};
  // If true, Log writes the first ten lines with this task and event, and then one every ten
  // seconds, with the number of lines left out before it. Set this for events that a client, or a
  // step in a loop, can cause any number of times.
  bool limited = false;
};
void Log(const LogLine& line);
// Returns the line as JSON, for output other than standard error.
std::string JsonLogLine(const LogLine& line);

}  // namespace penstock

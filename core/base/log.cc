// SPDX-License-Identifier: Apache-2.0
#include "core/base/log.h"

#include <spdlog/sinks/ansicolor_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/env.h"
#include "core/base/log_limiter.h"
#include "core/base/mutex.h"
#include "core/base/short_task.h"

namespace penstock {
namespace {

constexpr char kFormatVariable[] = "PENSTOCK_LOG_FORMAT";
constexpr char kLevelVariable[] = "PENSTOCK_LOG_LEVEL";
constexpr char kTextPattern[] = "%Y-%m-%dT%H:%M:%S.%eZ %^%l%$ %v";
// Erases the line that client/progress.h updates in place.
constexpr char kEraseLine[] = "\r\x1b[K";

constexpr std::pair<LogFormat, const char*> kFormats[] = {{LogFormat::kText, "text"},
                                                          {LogFormat::kJson, "json"}};
constexpr std::pair<LogLevel, const char*> kLevels[] = {{LogLevel::kDebug, "debug"},
                                                        {LogLevel::kInfo, "info"},
                                                        {LogLevel::kWarning, "warning"},
                                                        {LogLevel::kError, "error"},
                                                        {LogLevel::kOff, "off"}};

template <class Value, size_t n>
StatusOr<Value> Parse(const std::pair<Value, const char*> (&names)[n], const std::string& name) {
  std::vector<std::string> known;
  for (const auto& [value, its_name] : names) {
    if (name == its_name) return value;
    known.emplace_back(its_name);
  }
  return InvalidArgument("'", name, "': expected one of ", absl::StrJoin(known, ", "));
}

template <class Value, size_t n>
std::string NameOf(const std::pair<Value, const char*> (&names)[n], Value value) {
  for (const auto& [known, name] : names) {
    if (known == value) return name;
  }
  return "";
}

template <class Value>
Status FromEnvironment(const char* variable, StatusOr<Value> (*parse)(const std::string&),
                       Value* value) {
  const char* const text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return OkStatus();
  const StatusOr<Value> parsed = parse(text);
  if (!parsed.ok()) return Annotate(parsed.status(), StrCat(variable, " in the environment"));
  *value = *parsed;
  return OkStatus();
}

spdlog::level::level_enum LevelOf(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      break;
  }
  return spdlog::level::off;
}

std::string PlainText(const std::string& text) {
  std::string plain;
  for (const char c : text) {
    if (c == '\n') {
      plain += "\n    ";
    } else if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f) {
      absl::StrAppendFormat(&plain, "\\x%02x", static_cast<unsigned char>(c));
    } else {
      plain += c;
    }
  }
  return plain;
}

std::string TextOf(const LogLine& line, const std::string& task, int64_t left_out) {
  std::string text = PlainText(task.empty() ? line.text : StrCat(task, ": ", line.text));
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) text.pop_back();
  if (left_out > 0) StrAppend(&text, " (", left_out, " lines like it were left out)");
  return text;
}

std::string TimeString(int64_t wall_micros) {
  const std::time_t seconds = wall_micros / 1'000'000;
  std::tm utc = {};
  gmtime_r(&seconds, &utc);
  char text[32];
  const size_t length = std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
  return absl::StrFormat("%s.%03dZ", string_view(text, length), wall_micros / 1000 % 1000);
}

std::string JsonOf(const LogLine& line, const std::string& task, int64_t wall_micros,
                   int64_t left_out) {
  nlohmann::ordered_json json = {{"time", TimeString(wall_micros)},
                                 {"level", Name(line.level)},
                                 {"task", task},
                                 {"event", line.event},
                                 {"text", line.text}};
  for (const LogField& field : line.fields) {
    std::visit([&](const auto& value) { json[field.name] = value; }, field.value);
  }
  if (left_out > 0) json["left_out"] = left_out;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

class Logger {
 public:
  static Logger& Process() {
    static Logger* const logger = new Logger;  // never destroyed: used until the process ends
    return *logger;
  }

  void Set(const LogOptions& options) {
    MutexLock lock(mu_);
    options_ = options;
    const bool json = options.format == LogFormat::kJson;
    const bool live = !json && isatty(STDERR_FILENO) == 1;
    logger_->set_pattern(json ? std::string("%v") : StrCat(live ? kEraseLine : "", kTextPattern),
                         spdlog::pattern_time_type::utc);
    logger_->set_level(LevelOf(options.level));
  }
  LogOptions options() {
    MutexLock lock(mu_);
    return options_;
  }
  void SetTask(const std::string& task) {
    MutexLock lock(mu_);
    task_ = ShortTask(task);
  }

  void Write(const LogLine& line) {
    if (line.level == LogLevel::kOff || !logger_->should_log(LevelOf(line.level))) return;
    // Uses the real clock even in a simulation: only people read the lines, and compare them with
    // the lines of other processes.
    const int64_t wall_micros = Env::Real().WallMicros();
    MutexLock lock(mu_);
    const std::string task = line.task.empty() ? task_ : ShortTask(line.task);
    int64_t left_out = 0;
    if (line.limited) {
      const auto admitted = limiter_.Admit(StrCat(task, " ", line.event), Env::Real().NowNanos());
      if (!admitted.has_value()) return;
      left_out = *admitted;
    }
    const std::chrono::system_clock::time_point time{std::chrono::microseconds(wall_micros)};
    logger_->log(time, spdlog::source_loc(), LevelOf(line.level),
                 options_.format == LogFormat::kJson ? JsonOf(line, task, wall_micros, left_out)
                                                     : TextOf(line, task, left_out));
  }

 private:
  Logger() {
    const char* const no_colour = std::getenv("NO_COLOR");
    const bool colourless = no_colour != nullptr && *no_colour != '\0';
    logger_ = std::make_shared<spdlog::logger>(
        "penstock", std::make_shared<spdlog::sinks::ansicolor_stderr_sink_mt>(
                        colourless ? spdlog::color_mode::never : spdlog::color_mode::automatic));
    logger_->flush_on(spdlog::level::trace);
    // Ignores invalid environment variables. Servers report them when they start, and AddLogFlags
    // when flags are parsed.
    Set(LogOptionsOfEnvironment({}).value_or(LogOptions()));
  }

  std::shared_ptr<spdlog::logger> logger_;
  Mutex mu_;  // also held from reading the clock to writing the line: lines are in order of time
  LogOptions options_ ABSL_GUARDED_BY(mu_);
  std::string task_ ABSL_GUARDED_BY(mu_);
  LogLimiter limiter_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

StatusOr<LogFormat> ParseLogFormat(const std::string& name) { return Parse(kFormats, name); }
StatusOr<LogLevel> ParseLogLevel(const std::string& name) { return Parse(kLevels, name); }
std::string Name(LogFormat format) { return NameOf(kFormats, format); }
std::string Name(LogLevel level) { return NameOf(kLevels, level); }

LogOptions CurrentLogOptions() { return Logger::Process().options(); }
void SetLogOptions(const LogOptions& options) { Logger::Process().Set(options); }
void SetLogTask(const std::string& task) { Logger::Process().SetTask(task); }

StatusOr<LogOptions> LogOptionsOfEnvironment(const LogOptions& defaults) {
  LogOptions options = defaults;
  RETURN_IF_ERROR(FromEnvironment(kFormatVariable, ParseLogFormat, &options.format));
  RETURN_IF_ERROR(FromEnvironment(kLevelVariable, ParseLogLevel, &options.level));
  return options;
}

std::string JsonLogLine(const LogLine& line) {
  return JsonOf(line, ShortTask(line.task), Env::Real().WallMicros(), 0);
}

void Log(const LogLine& line) { Logger::Process().Write(line); }

}  // namespace penstock

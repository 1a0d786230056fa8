// SPDX-License-Identifier: Apache-2.0
#include "core/base/log_flags.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <string>

#include "core/base/log.h"

namespace penstock {
namespace {

template <class Value>
void AddFlag(CLI::App& app, const char* flag, StatusOr<Value> (*parse)(const std::string&),
             Value LogOptions::*field, const char* type, const char* about) {
  app.add_option_function<std::string>(
         flag,
         [flag, parse, field](const std::string& text) {
           const StatusOr<Value> value = parse(text);
           if (!value.ok()) throw CLI::ValidationError(flag, std::string(value.status().message()));
           LogOptions options = CurrentLogOptions();
           options.*field = *value;
           SetLogOptions(options);
         },
         about)
      ->type_name(type);
}

}  // namespace

void AddLogFlags(CLI::App& app) {
  app.preparse_callback([](size_t) {
    const StatusOr<LogOptions> options = LogOptionsOfEnvironment({});
    if (!options.ok()) throw CLI::ValidationError(std::string(options.status().message()));
    SetLogOptions(*options);
  });
  AddFlag(app, "--log_format", ParseLogFormat, &LogOptions::format, "text|json",
          "How the log on standard error looks: text, or json, an object on each line "
          "(PENSTOCK_LOG_FORMAT)");
  AddFlag(app, "--log_level", ParseLogLevel, &LogOptions::level, "LEVEL",
          "The least that is logged: debug, info, warning, error or off (PENSTOCK_LOG_LEVEL). By "
          "default info");
}

void ExportLogOptions() {
  const LogOptions options = CurrentLogOptions();
  setenv("PENSTOCK_LOG_FORMAT", Name(options.format).c_str(), 1);
  setenv("PENSTOCK_LOG_LEVEL", Name(options.level).c_str(), 1);
}

}  // namespace penstock

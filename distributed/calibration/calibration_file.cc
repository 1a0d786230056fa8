// SPDX-License-Identifier: Apache-2.0
#include "distributed/calibration/calibration_file.h"

#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace penstock {
namespace {

using Json = nlohmann::json;

constexpr int kVersion = 1;
constexpr char kVersionField[] = "penstock_calibration";
constexpr double kRateMin = 1e-4, kRateMax = 1e9;

struct RateField {
  const char* name;
  double DeviceRates::*value;
};
constexpr RateField kRates[] = {{"flops_per_ns", &DeviceRates::flops_per_ns},
                                {"bytes_per_ns", &DeviceRates::bytes_per_ns},
                                {"launch_ns", &DeviceRates::launch_ns}};

std::string CpuModel(Env& env) {
  const StatusOr<std::string> info = env.ReadFile("/proc/cpuinfo");
  if (!info.ok()) return "unknown CPU";
  for (const string_view line : absl::StrSplit(*info, '\n')) {
    const std::pair<string_view, string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 1));
    if (absl::StripAsciiWhitespace(parts.first) != "model name") continue;
    return std::string(absl::StripAsciiWhitespace(parts.second));
  }
  return "unknown CPU";
}

int CpuCount() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  return sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
}

// Returns ", 1.50 CPUs' time" if the control group (version 2) limits the CPU time; else "".
std::string CpuQuota(Env& env) {
  const StatusOr<std::string> group = env.ReadFile("/proc/self/cgroup");
  if (!group.ok()) return "";
  for (const string_view line : absl::StrSplit(*group, '\n')) {
    if (line.substr(0, 3) != "0::") continue;
    const StatusOr<std::string> limit =
        env.ReadFile(StrCat("/sys/fs/cgroup", line.substr(3), "/cpu.max"));
    if (!limit.ok()) return "";
    const std::vector<std::string> parts = absl::StrSplit(*limit, absl::ByAnyChar(" \n"));
    double quota = 0, period = 0;
    if (parts.size() < 2 || !absl::SimpleAtod(parts[0], &quota) ||
        !absl::SimpleAtod(parts[1], &period) || period <= 0) {
      return "";  // "max"
    }
    return absl::StrFormat(", %.2f CPUs' time", quota / period);
  }
  return "";
}

StatusOr<Calibration> Parse(const std::string& text, const std::string& machine) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains(kVersionField)) {
    return InvalidArgument("is not a calibration: expected JSON with the field ", kVersionField);
  }
  if (json[kVersionField] != kVersion) {
    return FailedPrecondition("is a calibration of version ", json[kVersionField].dump(),
                              ", expected version ", kVersion);
  }
  Calibration calibration;
  if (!json.contains("machine") || !json["machine"].is_string()) {
    return InvalidArgument("machine: expected a string");
  }
  calibration.machine = json["machine"].get<std::string>();
  if (calibration.machine != machine) {
    return FailedPrecondition("is a calibration of the machine '", calibration.machine,
                              "', this one is '", machine, "'");
  }
  if (!json.contains("measured_us") || !json["measured_us"].is_number_integer()) {
    return InvalidArgument("measured_us: expected a whole number");
  }
  calibration.measured_us = json["measured_us"].get<int64_t>();
  for (const RateField& field : kRates) {
    if (!json.contains("cpu") || !json["cpu"].is_object() || !json["cpu"].contains(field.name) ||
        !json["cpu"][field.name].is_number()) {
      return InvalidArgument("cpu.", field.name, ": expected a number");
    }
    calibration.cpu.*field.value = json["cpu"][field.name].get<double>();
  }
  RETURN_IF_ERROR(Annotate(CheckRates(calibration.cpu), "cpu"));
  return calibration;
}

}  // namespace

std::string MachineIdentity(Env& env) {
  char host[256] = "";
  if (gethostname(host, sizeof(host) - 1) != 0) host[0] = '\0';
  return StrCat(host, ", ", CpuCount(), " of ", CpuModel(env), CpuQuota(env));
}

Status CheckRates(const DeviceRates& rates) {
  for (const RateField& field : kRates) {
    const double value = rates.*field.value;
    if (value >= kRateMin && value <= kRateMax) continue;  // the comparisons are false for NaN
    return InvalidArgument(field.name, ": ", value, " is not between ", kRateMin, " and ",
                           kRateMax);
  }
  return OkStatus();
}

StatusOr<Calibration> ReadCalibration(Env& env, const std::string& path,
                                      const std::string& machine) {
  if (!env.FileExists(path)) return NotFound("there is no file ", path);
  ASSIGN_OR_RETURN(const std::string text, env.ReadFile(path));
  StatusOr<Calibration> calibration = Parse(text, machine);
  RETURN_IF_ERROR(Annotate(calibration.status(), path));
  return calibration;
}

Status WriteCalibration(Env& env, const std::string& path, const Calibration& calibration) {
  Json json = {{kVersionField, kVersion},
               {"machine", calibration.machine},
               {"measured_us", calibration.measured_us}};
  for (const RateField& field : kRates) json["cpu"][field.name] = calibration.cpu.*field.value;
  const size_t slash = path.rfind('/');
  if (slash != std::string::npos && slash > 0) {
    RETURN_IF_ERROR(env.CreateDirectories(path.substr(0, slash)));
  }
  return env.WriteFileAtomically(path, StrCat(json.dump(1), "\n"));
}

std::string DefaultCalibrationFile() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return StrCat(cache, "/penstock/calibration.json");
  const char* const home = std::getenv("HOME");
  if (home == nullptr || home[0] != '/') return "";
  return StrCat(home, "/.cache/penstock/calibration.json");
}

}  // namespace penstock

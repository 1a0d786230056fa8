// SPDX-License-Identifier: Apache-2.0
#include "distributed/calibration/calibrate.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <utility>

#include "absl/time/time.h"
#include "core/base/log.h"
#include "core/runtime/cpu_rates.h"
#include "distributed/calibration/calibration_file.h"

namespace penstock {
namespace {

constexpr int64_t kWaitNanos = 1'000'000'000, kPollNanos = 10'000'000;

// A lock that one process of the machine holds at a time, while it measures. The constructor waits
// for the lock for at most kWaitNanos, and then continues without it. The lock file is not deleted.
class MeasuringLock {
 public:
  MeasuringLock(const std::string& path, Env& env) {
    const size_t slash = path.rfind('/');
    if (slash != std::string::npos && slash > 0) {
      (void)env.CreateDirectories(path.substr(0, slash));
    }
    file_ = open(StrCat(path, ".lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
    const int64_t latest_ns = env.NowNanos() + kWaitNanos;
    while (file_ >= 0 && flock(file_, LOCK_EX | LOCK_NB) != 0) {
      if (env.NowNanos() >= latest_ns) return;
      env.SleepForNanos(kPollNanos);
    }
  }
  ~MeasuringLock() {
    if (file_ >= 0) close(file_);  // closing also releases the lock
  }
  MeasuringLock(const MeasuringLock&) = delete;
  MeasuringLock& operator=(const MeasuringLock&) = delete;

 private:
  int file_ = -1;
};

std::string TimeText(int64_t wall_us) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromUnixMicros(wall_us),
                          absl::LocalTimeZone());
}

Calibrated FromFile(const Calibration& kept, const std::string& path) {
  return {.cpu = kept.cpu,
          .origin = StrCat("measured at ", TimeText(kept.measured_us), " on ", kept.machine,
                           ", kept in ", path),
          .warning = ""};
}

StatusOr<Calibrated> Measure(const MeasureOptions& options) {
  ASSIGN_OR_RETURN(const DeviceRates rates, MeasureCpuRates(options));
  return Calibrated{
      .cpu = rates,
      .origin = StrCat("measured when the task started, on ", MachineIdentity(*options.env)),
      .warning = ""};
}

}  // namespace

StatusOr<Calibrated> Calibrate(const std::string& path, const MeasureOptions& options) {
  if (path.empty()) return Measure(options);
  Env& env = *options.env;
  const std::string machine = MachineIdentity(env);
  StatusOr<Calibration> kept = ReadCalibration(env, path, machine);
  if (kept.ok()) return FromFile(*kept, path);
  const MeasuringLock lock(path, env);
  kept = ReadCalibration(env, path, machine);  // another process may have measured meanwhile
  if (kept.ok()) return FromFile(*kept, path);
  ASSIGN_OR_RETURN(Calibrated measured, Measure(options));
  if (!absl::IsNotFound(kept.status())) {
    measured.warning = StrCat(kept.status().message(), ": measured anew");
  }
  const Status written = WriteCalibration(
      env, path, {.machine = machine, .measured_us = env.WallMicros(), .cpu = measured.cpu});
  if (!written.ok()) {
    measured.warning = StrCat("--calibration_file: cannot write ", path, ": ", written.message(),
                              "; every start measures anew");
  }
  return measured;
}

void UseMeasuredRates(const std::string& path, const std::string& task,
                      const MeasureOptions& options) {
  const auto warn = [&](const std::string& text) {
    Log({.level = LogLevel::kWarning, .task = task, .event = "calibration", .text = text});
  };
  const StatusOr<Calibrated> found = Calibrate(path, options);
  if (!found.ok()) {
    return warn(
        StrCat("the rates of this machine could not be measured: ", found.status().message()));
  }
  if (!found->warning.empty()) warn(found->warning);
  SetCpuRates({.rates = found->cpu, .origin = found->origin});
}

}  // namespace penstock

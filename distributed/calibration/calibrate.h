// SPDX-License-Identifier: Apache-2.0
//
// Calibrate: the rates of this machine's CPU, from the file of an earlier calibration or measured
// now and kept there.
#pragma once

#include <string>

#include "distributed/calibration/measure_rates.h"

namespace penstock {

struct Calibrated {
  DeviceRates cpu;
  // How the rates were obtained, for people: "measured at 2026-11-25 13:20:01 on MACHINE, kept in
  // PATH" (MachineIdentity).
  std::string origin;
  // Why a file was not used, or could not be written; "" if all went well.
  std::string warning;
};

// `path`: the file; "" if rates are not kept. Of processes that start together one measures: the
// others wait for the file, at most a second, and then measure for themselves. A file of another
// version or machine, or one that is damaged, is replaced; `warning` says why. Errors are those of
// MeasureCpuRates.
StatusOr<Calibrated> Calibrate(const std::string& path, const MeasureOptions& options);

// Gives the CPU devices that this process makes from now on the calibrated rates
// (core/runtime/cpu_rates.h). Before `task` makes its devices: errors and warnings go to its log,
// and rates that cannot be measured stay as they are.
void UseMeasuredRates(const std::string& path, const std::string& task,
                      const MeasureOptions& options);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Calibrate: returns the rates of this machine's CPU. Reads them from the file of an earlier
// calibration; if there is none that fits this machine and version, measures them and writes the
// file. UseMeasuredRates: makes the CPU devices of this process use these rates.
#pragma once

#include <string>

#include "distributed/calibration/measure_rates.h"

namespace penstock {

struct Calibrated {
  DeviceRates cpu;
  // A text that says how the rates were obtained: "measured at 2026-11-25 13:20:01 on MACHINE, kept
  // in PATH". MACHINE is the result of MachineIdentity.
  std::string origin;
  // Why a file was not used, or could not be written; "" if all went well.
  std::string warning;
};

// Returns the rates. `path`: the file; if it is "", the rates are measured and not kept. If several
// processes start together, one of them measures, and the others wait for its file; a process that
// has waited for a second measures as well. A file that is damaged, or belongs to another version
// or machine, is replaced; `warning` says why. Errors are those of MeasureCpuRates.
StatusOr<Calibrated> Calibrate(const std::string& path, const MeasureOptions& options);

// Sets the rates of all CPU devices that this process makes from now on (core/runtime/cpu_rates.h).
// Call this before `task` makes its devices. Errors and warnings are logged under the name `task`.
// If the rates cannot be measured, they stay as they are.
void UseMeasuredRates(const std::string& path, const std::string& task,
                      const MeasureOptions& options);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// A calibration: the rates of one machine, kept in a file so that later starts need not measure
// them.
//
// The file is JSON: {"penstock_calibration": 1, "machine": "...", "measured_us": ...,
// "cpu": {"flops_per_ns": ..., "bytes_per_ns": ..., "launch_ns": ...}}. A file is valid for one
// machine only (MachineIdentity); a process on another machine refuses it.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/env.h"
#include "core/base/status.h"
#include "core/op/device_name.h"

namespace penstock {

struct Calibration {
  std::string machine;
  int64_t measured_us = 0;  // wall clock
  DeviceRates cpu;
};

// Returns everything about this machine on which its rates depend: the host name, the model and
// number of its CPUs, and the CPU time that the process's control group may use: "node7, 8 of AMD
// EPYC 7B13, 1.50 CPUs' time".
std::string MachineIdentity(Env& env);

// Returns OK if each rate is a number in a believable range, else InvalidArgument, which names the
// first one that is not.
Status CheckRates(const DeviceRates& rates);

// Reads a calibration. NotFound if there is no file. InvalidArgument names the file and the field
// if the file is no calibration; FailedPrecondition if the file has another version, or belongs to
// another machine than `machine`.
StatusOr<Calibration> ReadCalibration(Env& env, const std::string& path,
                                      const std::string& machine);
// Writes the file; creates its directory if that does not exist.
Status WriteCalibration(Env& env, const std::string& path, const Calibration& calibration);

// Returns $XDG_CACHE_HOME/penstock/calibration.json, or ~/.cache/penstock/calibration.json if that
// variable is not set, or "" if there is no home directory.
std::string DefaultCalibrationFile();

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// CompileFlags: the flags of `penstock graph`, `place`, `cost` and `whatif` that say what to
// compile, and for which devices.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/compiler/compile.h"

namespace CLI {
class App;
}  // namespace CLI

namespace penstock {

// The rates of CPUs that the command's estimates use.
struct RatesOfCpus {
  DeviceRates rates;
  std::string origin;  // for people: "measured on this machine, from PATH", or "typical"
};

struct CompileFlags {
  std::vector<std::string> feeds, feed_shapes, fetches, targets, disabled_passes;
  bool bfloat16_transfers = false;
  int64_t memory_limit = 0;
  std::vector<std::string> devices = {"/job:localhost/replica:0/task:0/device:CPU:0"};
  // The file of measured rates of this machine's CPU. Not set: the file that a server on this
  // machine has written, if there is a usable one. "none": typical rates.
  std::optional<std::string> calibration_file;

  void AddTo(CLI::App& command);
  // Adds all flags except --devices.
  void AddStepTo(CLI::App& command);
  // Returns the rates from the calibration file, or typical rates if the flag says so or was not
  // given and there is no usable file. Returns an error if the flag names a file that is missing,
  // damaged or of another machine.
  StatusOr<RatesOfCpus> ReadCpuRates() const;
  // Prints where the rates come from: the file `costs`, unless it is "".
  Status PrintCpuRates(const std::string& costs) const;
  // Returns the devices that --devices names. Errors of this function and of Options name the flag
  // or the text that is wrong.
  StatusOr<std::vector<DeviceInfo>> Devices() const;
  // Returns the options for a client on the first of `devices`.
  StatusOr<CompileOptions> Options(const std::vector<DeviceInfo>& devices) const;
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// CompileFlags: the flags by which `penstock graph`, `place`, `cost` and `whatif` say what to
// compile, and for which devices.
#pragma once

#include <string>
#include <vector>

#include "core/compiler/compile.h"

namespace CLI {
class App;
}  // namespace CLI

namespace penstock {

struct CompileFlags {
  std::vector<std::string> feeds, feed_shapes, fetches, targets, disabled_passes;
  bool bfloat16_transfers = false;
  int64_t memory_limit = 0;
  std::vector<std::string> devices = {"/job:localhost/replica:0/task:0/device:CPU:0"};
  std::string calibration_file;

  void AddTo(CLI::App& command);
  // All but --devices. With --calibration_file, which gives CPUs the rates of this machine's.
  void AddStepTo(CLI::App& command);
  // Errors of both name the flag.
  StatusOr<std::vector<DeviceInfo>> Devices() const;
  // For a client at the first of `devices`.
  StatusOr<CompileOptions> Options(const std::vector<DeviceInfo>& devices) const;
};

}  // namespace penstock

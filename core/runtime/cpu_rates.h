// SPDX-License-Identifier: Apache-2.0
//
// The rates of this machine's CPU. All CPU devices that the process makes get them. They are
// DefaultRates("CPU") until they are set to measured rates (distributed/calibration). Simulations
// do not set them, so that they do not depend on the machine. Thread-safe.
#pragma once

#include <string>

#include "core/op/device_name.h"

namespace penstock {

struct CpuRates {
  DeviceRates rates = DefaultRates("CPU");
  // Text for people that says how the rates were obtained; "" if they are the defaults.
  std::string origin = "";
};

CpuRates GetCpuRates();
void SetCpuRates(CpuRates rates);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// The rates of this machine's CPU, for all CPU devices that the process makes. They are
// DefaultRates("CPU") until SetCpuRates sets measured rates (distributed/calibration). Simulations
// keep the defaults, so that their results do not depend on the machine. Thread-safe.
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

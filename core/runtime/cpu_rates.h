// SPDX-License-Identifier: Apache-2.0
//
// The rates of this machine's CPU, which all CPU devices that the process makes from then on have:
// DefaultRates("CPU") until somebody has measured them (distributed/calibration). Simulations set
// none, so that they do not depend on the machine. Thread-safe.
#pragma once

#include <string>

#include "core/op/device_name.h"

namespace penstock {

struct CpuRates {
  DeviceRates rates = DefaultRates("CPU");
  std::string origin = "";  // how they were obtained, for people; "": they are the defaults
};

CpuRates GetCpuRates();
void SetCpuRates(CpuRates rates);

}  // namespace penstock

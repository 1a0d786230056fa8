// SPDX-License-Identifier: Apache-2.0
//
// The CPU as a Device. Private to this folder; MakeDevices makes it.
#pragma once

#include <memory>

#include "core/runtime/device.h"

namespace penstock {

std::unique_ptr<Device> MakeCpuDevice(const DeviceOptions& options);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// The GPUs that CUDA sees, as Devices. Private to this folder; only in builds with --config=cuda.
#pragma once

#include <memory>
#include <vector>

#include "core/runtime/device.h"

namespace penstock {

// Adds one device per GPU. None, with a line on stderr, where there is no driver or no GPU: the
// program then runs on the CPU. An error where a GPU is there and does not work.
Status AppendCudaDevices(const DeviceOptions& options,
                         std::vector<std::unique_ptr<Device>>* devices);

}  // namespace penstock

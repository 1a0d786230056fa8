// SPDX-License-Identifier: Apache-2.0
//
// Makes a Device for each GPU that CUDA finds. Private to this folder; only in builds with
// --config=cuda.
#pragma once

#include <memory>
#include <vector>

#include "core/runtime/device.h"

namespace penstock {

// Adds one device per GPU. If there is no driver or no GPU, adds no device and prints a line to
// stderr, and the program runs on the CPU. Returns an error if there is a GPU that does not work.
Status AppendCudaDevices(const DeviceOptions& options,
                         std::vector<std::unique_ptr<Device>>* devices);

}  // namespace penstock

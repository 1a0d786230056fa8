// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/cpu_device.h"
#include "core/runtime/device.h"
#if defined(PENSTOCK_CUDA)
#include "core/runtime/cuda_device.h"
#endif

namespace penstock {

StatusOr<std::vector<std::unique_ptr<Device>>> MakeDevices(const DeviceOptions& options) {
  DeviceOptions complete = options;
  if (!complete.task.replica.has_value()) complete.task.replica = 0;
  if (!complete.task.job.has_value() || !complete.task.task.has_value() ||
      complete.task.type.has_value() || complete.task.index.has_value()) {
    return InvalidArgument("'", options.task.ToString(), "' must name a job and a task");
  }
  if (complete.incarnation == 0) return InvalidArgument("the incarnation of a task is never 0");
  std::vector<std::unique_ptr<Device>> devices;
  devices.push_back(MakeCpuDevice(complete));
#if defined(PENSTOCK_CUDA)
  if (complete.gpus_max > 0) RETURN_IF_ERROR(AppendCudaDevices(complete, &devices));
#endif
  return devices;
}

}  // namespace penstock

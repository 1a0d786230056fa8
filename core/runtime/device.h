// SPDX-License-Identifier: Apache-2.0
//
// Device: memory, streams, and how a kernel is launched. CPU and CUDA are two of them; a third
// could come from a loaded library.
//
// Thread-safe. Owned by the task that made it; outlives every executor and tensor on it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/done.h"
#include "core/op/device_name.h"
#include "core/op/kernel.h"
#include "core/op/resource.h"
#include "core/tensor/allocator.h"

namespace penstock {

class Device {
 public:
  virtual ~Device() = default;
  const DeviceInfo& info() const { return info_; }
  const std::string& name() const { return name_; }             // full, as a string
  const std::string& type() const { return *info_.name.type; }  // "CPU"
  // The resources are in the device's memory: a subclass whose allocator goes with it clears them
  // first.
  ResourceStore& resources() { return resources_; }

  virtual Allocator& allocator() = 0;
  // The stream and library handles that KernelContext hands to kernels; null on CPU.
  virtual void* stream() { return nullptr; }
  virtual void* kernel_handles() { return nullptr; }
  // True if kernels only launch work: the executor goes on without waiting, and values leave
  // through the copies below, which are ordered after the launches.
  virtual bool asynchronous() const { return false; }
  // Called on a thread before it runs kernels of this device.
  virtual void UseOnThisThread() {}

  // Between this device's memory and the host's, ordered after what was launched before. On return
  // `*to` has its memory (none after an error); `done` is called, on any thread, when the bytes are
  // there. `from` need not outlive the call. What CopyFromHost gives may be used by kernels
  // launched after it has returned, without waiting for `done`.
  virtual void CopyToHost(const Tensor& from, Tensor* to, Done done) = 0;
  virtual void CopyFromHost(const Tensor& from, Tensor* to, Done done) = 0;
  // Waits for everything launched so far.
  virtual Status Synchronize() { return OkStatus(); }

 protected:
  explicit Device(DeviceInfo info) : info_(std::move(info)), name_(info_.name.ToString()) {}

 private:
  const DeviceInfo info_;
  const std::string name_;
  ResourceStore resources_;
};

// The devices of a task: "/job:J/replica:0/task:T/device:CPU:0", and a GPU for each that CUDA sees
// in a build with CUDA (at most `gpus_max`); if CUDA finds no driver, a line on stderr says so
// and the CPU is all there is. `task` names job, replica (if not 0) and task.
struct DeviceOptions {
  DeviceName task;
  uint64_t incarnation = 1;
  int gpus_max = 64;
  int lanes = 1;  // nodes that the CPU runs at once: threads of the pool that runs kernels
};
StatusOr<std::vector<std::unique_ptr<Device>>> MakeDevices(const DeviceOptions& options);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Device: the memory and streams that kernels run on. CPUs and CUDA GPUs are implemented.
//
// Thread-safe. Owned by the task that made it. Must outlive every executor and tensor on the
// device.
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
  const std::string& name() const { return name_; }             // full name, as a string
  const std::string& type() const { return *info_.name.type; }  // "CPU"
  // Returns the device's resources. Their tensors are in the device's memory, so a subclass that
  // owns its allocator must clear the resources in its destructor.
  ResourceStore& resources() { return resources_; }

  virtual Allocator& allocator() = 0;
  // The stream and the library handles that KernelContext gives to kernels; null on a CPU.
  virtual void* stream() { return nullptr; }
  virtual void* kernel_handles() { return nullptr; }
  // Returns true if kernels only launch work and return before the work has ended. The executor
  // then runs the next nodes without waiting. Only the copies below bring values to the host; they
  // run after all work launched before.
  virtual bool asynchronous() const { return false; }
  // Called on a thread before it runs kernels of this device.
  virtual void UseOnThisThread() {}

  // Copy between this device's memory and the host's, after all work launched before. On return
  // `*to` is a tensor with its memory allocated (invalid after an error); `done` is called, on any
  // thread, when the bytes have arrived. `from` need not outlive the call. Kernels launched after
  // CopyFromHost has returned may use its result without waiting for `done`.
  virtual void CopyToHost(const Tensor& from, Tensor* to, Done done) = 0;
  virtual void CopyFromHost(const Tensor& from, Tensor* to, Done done) = 0;
  // Waits for all work launched so far.
  virtual Status Synchronize() { return OkStatus(); }

 protected:
  explicit Device(DeviceInfo info) : info_(std::move(info)), name_(info_.name.ToString()) {}

 private:
  const DeviceInfo info_;
  const std::string name_;
  ResourceStore resources_;
};

// Options of MakeDevices, which returns the devices of a task:
// "/job:J/replica:0/task:T/device:CPU:0", and in a build with CUDA one per visible GPU (at most
// `gpus_max`). If CUDA finds no driver, there is only the CPU, and a line on stderr says so. `task`
// has the job and the number of the task, and its replica if that is not 0. InvalidArgument if job
// or number is missing, if `task` names a device, or if `incarnation` is 0.
struct DeviceOptions {
  DeviceName task;
  uint64_t incarnation = 1;
  int gpus_max = 64;
  int lanes = 1;  // how many nodes the CPU runs at once: the number of threads that run kernels
  // The bytes of tensors that the CPU may hold (DeviceInfo::memory_limit). 0: the limit of this
  // process's MemoryAccount or, if that has none, AvailableMemoryBytes().
  int64_t memory_limit = 0;
};
StatusOr<std::vector<std::unique_ptr<Device>>> MakeDevices(const DeviceOptions& options);

}  // namespace penstock

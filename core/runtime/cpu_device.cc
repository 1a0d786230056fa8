// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/cpu_device.h"

#include <utility>

#include "core/runtime/cpu_rates.h"
#include "core/tensor/memory_account.h"
#include "core/tensor/memory_limit.h"

namespace penstock {
namespace {

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(DeviceInfo info) : Device(std::move(info)) {}
  Allocator& allocator() override { return CpuAllocator(); }
  // Device memory is host memory, so there is nothing to copy.
  void CopyToHost(const Tensor& from, Tensor* to, Done done) override {
    *to = from;
    std::move(done)(OkStatus());
  }
  void CopyFromHost(const Tensor& from, Tensor* to, Done done) override {
    *to = from;
    std::move(done)(OkStatus());
  }
};

}  // namespace

std::unique_ptr<Device> MakeCpuDevice(const DeviceOptions& options) {
  DeviceInfo info = {.name = options.task, .incarnation = options.incarnation};
  info.name.type = "CPU";
  info.name.index = 0;
  CpuRates known = GetCpuRates();
  info.rates = known.rates;
  info.description = std::move(known.origin);
  info.lanes = options.lanes;
  info.memory_limit = options.memory_limit;
  if (info.memory_limit == 0) info.memory_limit = MemoryAccount::Task().limit();
  if (info.memory_limit == 0) info.memory_limit = AvailableMemoryBytes();
  return std::make_unique<CpuDevice>(std::move(info));
}

}  // namespace penstock

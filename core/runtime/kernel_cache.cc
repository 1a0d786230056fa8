// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/kernel_cache.h"

namespace penstock {

StatusOr<std::shared_ptr<Kernel>> KernelCache::Get(const Registry& registry,
                                                   string_view device_type,
                                                   const KernelInit& node) {
  const bool shared = node.op.stateful && !node.op.internal();
  MutexLock lock(mu_);
  const auto key = std::pair(node.device, node.name);
  if (shared) {
    const auto found = kernels_.find(key);
    if (found != kernels_.end() && found->second.op == &node.op &&
        found->second.attrs == node.attrs && found->second.input_types == node.input_types) {
      return found->second.kernel;
    }
  }
  ASSIGN_OR_RETURN(std::shared_ptr<Kernel> kernel, registry.MakeKernel(device_type, node));
  if (shared) {
    kernels_.insert_or_assign(key, Entry{&node.op, node.attrs, node.input_types, kernel});
  }
  return kernel;
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// KernelCache: the kernels of stateful ops that one session shares among all steps it has compiled,
// so that a random op goes on where the last step left it, whatever else that step computed.
//
// Thread-safe. Kernels are held by shared pointers: whoever runs them keeps them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/op/registry.h"

namespace penstock {

class KernelCache {
 public:
  // The kernel of this node of a stateful op, made where there is none yet; a new one for any other
  // op, for the compiler's own, and for a node that is not what it was before.
  StatusOr<std::shared_ptr<Kernel>> Get(const Registry& registry, string_view device_type,
                                        const KernelInit& node);

 private:
  struct Entry {
    const OpDef* op;
    Attrs attrs;
    std::vector<EdgeType> input_types;
    std::shared_ptr<Kernel> kernel;
  };
  Mutex mu_;
  std::map<std::pair<std::string, std::string>, Entry> kernels_
      ABSL_GUARDED_BY(mu_);  // by device and node
};

}  // namespace penstock

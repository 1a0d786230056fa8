// SPDX-License-Identifier: Apache-2.0
//
// KernelCache: the kernels of stateful ops. A session shares them among all its prepared steps, so
// that a random op continues its sequence even if the last step belonged to another prepared step.
//
// Thread-safe. Kernels are held by shared pointers, so that an executable keeps its kernels alive.
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
  // Returns the kernel of this node of a stateful op; makes it if there is none yet. Returns a new
  // kernel, which is not shared, for stateless ops, for nodes that the compiler has added, and for
  // a node that differs from the cached one.
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

// SPDX-License-Identifier: Apache-2.0
//
// KernelCache: the kernels of stateful ops. All prepared steps of a session share them, so that a
// random op has one sequence of numbers in all of these steps.
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
  // Returns the cached kernel of the node; makes it if there is none yet. But returns a new kernel,
  // which it does not cache, for a node of a stateless op, for a node that the compiler has added,
  // and for a node that differs from the cached one of the same name.
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

// SPDX-License-Identifier: Apache-2.0
//
// OneDevice: compiles a step for one CPU, and runs it on an executor with one thread, without a
// session, so that the order of nodes does not depend on timing.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/env.h"
#include "core/base/thread_pool.h"
#include "core/compiler/compile.h"
#include "core/runtime/executor.h"

namespace penstock {

class OneDevice {
 public:
  struct Step {
    std::vector<std::pair<std::string, Tensor>> feeds;
    std::vector<std::string> fetches, targets;
  };
  struct Ran {
    std::vector<Tensor> fetched;
    MemoryReport predicted;
    int64_t peak_bytes = 0;  // peak bytes of the tensors of the second run, from the memory account
  };

  OneDevice();
  // Runs the step twice. `limit`: see CompileOptions::memory_limit. Variables live as long as this
  // object.
  StatusOr<Ran> Run(const Graph& graph, const Step& step, int64_t limit);

 private:
  ThreadPool threads_{"one", 1};
  const std::unique_ptr<DeadlineTimer> timer_;
  std::vector<std::unique_ptr<Device>> devices_;
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// CudaCompletions: runs callbacks when a stream has finished the work launched so far. A thread of
// its own waits for CUDA events and runs the callbacks, because callbacks of CUDA itself must not
// call CUDA. It is always a real thread, even in a simulation: it blocks in the driver, where a
// simulation could not switch to other closures. Private to this folder; only in builds with
// --config=cuda.
//
// Thread-safe. The destructor waits for all callbacks.
#pragma once

#include <cuda_runtime_api.h>

#include <deque>
#include <memory>
#include <vector>

#include "core/base/cond_var.h"
#include "core/base/done.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "core/tensor/tensor.h"

namespace penstock {

class CudaCompletions {
 public:
  explicit CudaCompletions(int ordinal);
  ~CudaCompletions();

  // Calls `done` when all work that is on `stream` now has ended, and keeps `used` until then.
  void After(cudaStream_t stream, Tensor used, Done done);
  // Makes work that is launched on `second` from now on wait for all work that is on `first` now.
  Status Order(cudaStream_t first, cudaStream_t second);

 private:
  struct Waiting {
    cudaEvent_t event;
    Tensor used;
    Done done;
  };
  StatusOr<cudaEvent_t> Record(cudaStream_t stream) ABSL_LOCKS_EXCLUDED(mu_);
  void GiveBack(cudaEvent_t event) ABSL_LOCKS_EXCLUDED(mu_);
  void Run();

  const int ordinal_;
  Mutex mu_;
  CondVar added_;
  std::deque<Waiting> waiting_ ABSL_GUARDED_BY(mu_);
  std::vector<cudaEvent_t> spare_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::unique_ptr<Thread> thread_;
};

}  // namespace penstock

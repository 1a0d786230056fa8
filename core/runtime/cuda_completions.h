// SPDX-License-Identifier: Apache-2.0
//
// CudaCompletions: calls back when a stream has come so far. A thread of its own waits for the
// events, because CUDA's own callbacks must not call CUDA. Private to this folder; only in builds
// with --config=cuda.
//
// Thread-safe. Destruction waits for everything asked for.
#pragma once

#include <cuda_runtime_api.h>

#include <deque>
#include <thread>
#include <vector>

#include "core/base/cond_var.h"
#include "core/base/done.h"
#include "core/base/mutex.h"
#include "core/tensor/tensor.h"

namespace penstock {

class CudaCompletions {
 public:
  explicit CudaCompletions(int ordinal);
  ~CudaCompletions();

  // Calls `done` when everything that is on `stream` now has ended, and holds `used` until then.
  void After(cudaStream_t stream, Tensor used, Done done);
  // Makes work that is launched on `second` from now on wait for the work that is on `first` now.
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
  std::thread thread_;
};

}  // namespace penstock

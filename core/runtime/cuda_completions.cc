// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/cuda_completions.h"

#include <chrono>
#include <utility>

namespace penstock {
namespace {

// The thread polls this long for an event and then sleeps.
constexpr auto kSpin = std::chrono::microseconds(50);

cudaError_t Await(cudaEvent_t event) {
  const auto until = std::chrono::steady_clock::now() + kSpin;
  do {
    const cudaError_t error = cudaEventQuery(event);
    if (error != cudaErrorNotReady) return error;
  } while (std::chrono::steady_clock::now() < until);
  return cudaEventSynchronize(event);
}

Status EventError(cudaError_t error) {
  if (error == cudaSuccess) return OkStatus();
  return Internal("waiting for the GPU: CUDA: ", cudaGetErrorString(error));
}

}  // namespace

CudaCompletions::CudaCompletions(int ordinal)
    : ordinal_(ordinal),
      thread_(Scheduler::Real().StartThread(StrCat("cuda/", ordinal), [this] { Run(); })) {}

CudaCompletions::~CudaCompletions() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    added_.NotifyOne();
  }
  thread_ = nullptr;  // waits until the thread has ended
  for (cudaEvent_t event : spare_) cudaEventDestroy(event);
}

StatusOr<cudaEvent_t> CudaCompletions::Record(cudaStream_t stream) {
  cudaEvent_t event = nullptr;
  {
    MutexLock lock(mu_);
    if (!spare_.empty()) {
      event = spare_.back();
      spare_.pop_back();
    }
  }
  cudaError_t error = cudaSuccess;
  if (event == nullptr) {
    cudaSetDevice(ordinal_);
    error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventBlockingSync);
  }
  if (error == cudaSuccess) error = cudaEventRecord(event, stream);
  if (error == cudaSuccess) return event;
  if (event != nullptr) GiveBack(event);
  return EventError(error);
}

void CudaCompletions::GiveBack(cudaEvent_t event) {
  MutexLock lock(mu_);
  spare_.push_back(event);
}

void CudaCompletions::After(cudaStream_t stream, Tensor used, Done done) {
  const StatusOr<cudaEvent_t> event = Record(stream);
  if (!event.ok()) {
    // Without an event, wait for all work of the stream: then `used` may be freed.
    const cudaError_t error = cudaStreamSynchronize(stream);
    return std::move(done)(error == cudaSuccess ? OkStatus() : event.status());
  }
  MutexLock lock(mu_);
  waiting_.push_back({*event, std::move(used), std::move(done)});
  added_.NotifyOne();
}

Status CudaCompletions::Order(cudaStream_t first, cudaStream_t second) {
  ASSIGN_OR_RETURN(const cudaEvent_t event, Record(first));
  const cudaError_t error = cudaStreamWaitEvent(second, event, 0);
  GiveBack(event);  // the stream keeps waiting for the recorded work even if the event is reused
  return EventError(error);
}

void CudaCompletions::Run() {
  cudaSetDevice(ordinal_);
  MutexLock lock(mu_);
  for (;;) {
    while (!stopping_ && waiting_.empty()) added_.Wait(mu_);
    if (waiting_.empty()) return;
    Waiting first = std::move(waiting_.front());
    waiting_.pop_front();
    lock.Unlock();
    const cudaError_t error = Await(first.event);
    first.used = Tensor();
    GiveBack(first.event);
    std::move(first.done)(EventError(error));
    lock.Lock();
  }
}

}  // namespace penstock

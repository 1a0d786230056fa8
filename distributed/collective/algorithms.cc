// SPDX-License-Identifier: Apache-2.0
#include "distributed/collective/algorithms.h"

#include <utility>

namespace penstock::collective {
namespace {

// Merges of fewer bytes run on the thread that delivers messages: waking another thread takes up to
// 50 us, in which this thread can merge 64 KiB several times.
constexpr int64_t kHeavyBytes = 128 << 10;

}  // namespace

std::vector<int64_t> EvenOffsets(int64_t elements, int parts) {
  std::vector<int64_t> offsets = {0};
  for (int i = 0; i < parts; ++i) {
    offsets.push_back(offsets.back() + elements / parts + (i < elements % parts ? 1 : 0));
  }
  return offsets;
}

Status CheckReceived(const Tensor& received, DType dtype, int64_t elements, int peer) {
  if (received.dtype() == dtype && received.num_elements() == elements) return OkStatus();
  return InvalidArgument("the ranks of a collective disagree: expected ", Name(dtype), "[",
                         elements, "] from peer ", peer, ", got ", Name(received.dtype()),
                         received.shape().ToString());
}

void RunHeavy(Scheduler& threads, int64_t bytes, Scheduler::Closure work) {
  if (bytes < kHeavyBytes) return std::move(work)();
  threads.Schedule(std::move(work));
}

}  // namespace penstock::collective

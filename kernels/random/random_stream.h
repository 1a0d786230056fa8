// SPDX-License-Identifier: Apache-2.0
//
// RandomStream: the source of random numbers of one node's kernel. Each execution reserves the next
// section of the node's stream, so repeated runs give new numbers. If the node has seeds, it
// produces the same sequence again in another session.
//
// A RandomStream outlives the steps. Thread-safe: its state is one atomic counter. Steps that run
// at the same time get distinct sections, in the order of their calls.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "core/base/env.h"
#include "core/op/kernel.h"
#include "kernels/random/philox.h"

namespace penstock {

class RandomStream {
 public:
  // Reads the attributes seed and seed2. If both are 0, Env provides seeds at the first use.
  Status Init(const KernelInit& node);
  // Reserves `blocks` blocks; returns the stream at the first of them.
  Philox Reserve(uint64_t blocks, Env& env);
  // For ops that need an unknown number of blocks per output: reserves kBlocksPerOutput blocks per
  // output, more than they need. TensorFlow reserves the same number, so the streams agree.
  Philox ReserveForOutputs(int64_t outputs, Env& env) {
    return Reserve(static_cast<uint64_t>(outputs) * kBlocksPerOutput, env);
  }
  static constexpr uint64_t kBlocksPerOutput = 256;

 private:
  uint64_t seed_ = 0, seed2_ = 0;
  std::once_flag seeded_;
  std::atomic<uint64_t> next_block_{0};
};

}  // namespace penstock

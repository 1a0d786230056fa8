// SPDX-License-Identifier: Apache-2.0
//
// RandomStream: where the kernel of one node takes its random numbers from. Each execution reserves
// a part of the node's stream for itself, so that repeated runs give new numbers while a graph with
// seeds gives the same sequence again.
//
// The one kernel state that lives across steps: thread-safe, one atomic counter. Steps that run at
// the same time get distinct parts, in the order in which they come.
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
  // Reads the attributes seed and seed2; both 0 means seeds from Env, drawn at the first use.
  Status Init(const KernelInit& node);
  // The start of a part of `blocks` blocks.
  Philox Reserve(uint64_t blocks, Env& env);
  // For ops that draw a number of blocks per output which is not known before: more than enough of
  // them. TensorFlow reserves as many for all its outputs, so that streams agree with it.
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

// SPDX-License-Identifier: Apache-2.0
//
// StepArgs: the arguments of one step for an executor. ExecutorOptions: the devices, threads and
// caches that an executor uses.
#pragma once

#include <cstdint>

#include "core/base/env.h"
#include "core/op/kernel.h"
#include "core/runtime/deadline_timer.h"
#include "core/runtime/device.h"
#include "core/runtime/rendezvous.h"
#include "core/runtime/step_stats.h"

namespace penstock {

class KernelCache;    // core/runtime/kernel_cache.h
class MemoryAccount;  // core/tensor/memory_account.h
class Poller;         // core/runtime/poller.h

// Borrowed until the step's `done` is called.
struct StepArgs {
  int64_t step_id = 0;
  Rendezvous* rendezvous = nullptr;
  Cancellation* cancellation = nullptr;
  ResourceStore* resources = nullptr;  // null: the resources of the device
  ResourceStore* step_resources = nullptr;
  int64_t deadline_ns = 0;        // on the scale of Env::NowNanos(); 0: none
  const Tensor* feeds = nullptr;  // indexed by _Feed's attribute "index"
  int num_feeds = 0;
  Tensor* fetches = nullptr;  // indexed by _Fetch's attribute "index"
  int num_fetches = 0;
  StepStatsCollector* stats = nullptr;  // null: no statistics are recorded
  MemoryAccount* memory = nullptr;      // the account for the step's tensors; null: the task's
  // If true, RunAsync may use the caller's thread to run a partition that takes only microseconds.
  bool may_start_here = false;
  Poller* poller = nullptr;  // Run's thread polls it while the step waits; may be null
};

// All pointers are borrowed: the objects must outlive the executor.
struct ExecutorOptions {
  Device* device = nullptr;
  Scheduler* threads = nullptr;
  Env* env = nullptr;
  DeadlineTimer* timer = nullptr;
  KernelCache* kernels = nullptr;  // the session's kernels; null: the executor has its own
};

}  // namespace penstock

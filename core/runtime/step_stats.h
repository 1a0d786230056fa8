// SPDX-License-Identifier: Apache-2.0
//
// StepStatsCollector: collects statistics of one step: when each node became ready, began and
// ended, on which thread, and its outputs. A step without a collector pays one branch per node.
//
// Thread-safe while the step runs; read it when the step has ended.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace penstock {

// The `node` of the row for a transfer from another task, which is added besides the row of its
// _Recv. Its label is "[BYTESB] EDGE from DEVICE to DEVICE"; its output has the type and bytes that
// were sent, and is left out if the value is dead. It lasts from the beginning of the wait to the
// arrival.
inline constexpr char kTransferStats[] = "RecvTensor";

struct NodeStats {
  std::string node;
  std::string label;         // "NAME = Op(IN1, IN2)", which timeline viewers parse
  int64_t scheduled_ns = 0;  // became ready; all times: wall clock, nanoseconds
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  uint32_t thread = 0;  // small numbers, one per thread of the process
  // For a reference: describes the value of its variable.
  struct Out {
    int index = 0;  // which output
    DType dtype = DType::kInvalid;
    Shape shape;
    int64_t bytes = 0;
    std::string allocator;  // of its buffer; "" for foreign memory
    uint64_t address = 0;   // of its bytes: equal for outputs that share a buffer
  };
  std::vector<Out> outputs;  // outputs with a value
  // The memory that the kernel allocated from one allocator, including temporary memory. For
  // asynchronous kernels, which may end on other threads: only their new outputs.
  struct Memory {
    std::string allocator;
    int64_t total_bytes = 0;  // sum of all allocations
    int64_t peak_bytes = 0;   // the maximum in use at one time
    int64_t live_bytes = 0;   // left when the kernel ended
  };
  std::vector<Memory> memory;
  // The bytes of outputs that existed before the step: those of constants and variables.
  int64_t persistent_bytes = 0;
};

struct DeviceStats {
  std::string device;
  std::vector<NodeStats> nodes;  // in the order in which they ended
};

class StepStatsCollector {
 public:
  void Add(const std::string& device, NodeStats stats);
  // Returns the statistics in order of device name, and empties the collector.
  std::vector<DeviceStats> Take();

 private:
  Mutex mu_;
  std::vector<DeviceStats> devices_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock

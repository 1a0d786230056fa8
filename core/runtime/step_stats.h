// SPDX-License-Identifier: Apache-2.0
//
// StepStatsCollector: collects statistics of one step: when each node became ready, began and
// ended, on which thread, and its outputs. A step without a collector pays one branch per node.
//
// Thread-safe while the step runs; read it when the step has ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/op/registry.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace penstock {

// A transfer from another task has an additional row, besides that of the _Recv which receives the
// tensor. This is the value of NodeStats::node in the additional row. The row has no op. Its output
// has the type and bytes that were sent; there is no output if the value is dead. The row starts
// when the _Recv begins to wait, and ends when the tensor arrives.
inline constexpr char kTransferStats[] = "RecvTensor";

struct NodeStats {
  struct Input {
    static constexpr int kControl = -1;
    std::string node;
    int output = 0;  // kControl: a control input
    bool operator==(const Input&) const = default;
  };
  struct Transfer {
    std::string edge;  // core/op/edge_name.h
    std::string from;  // the producer's device; "" except in a row kTransferStats
    std::string to;    // the consumer's device
    bool operator==(const Transfer&) const = default;
  };

  std::string node;
  std::string op;
  std::vector<Input> inputs;         // control inputs last
  std::optional<Transfer> transfer;  // only for a _Send, a _Recv, or a row kTransferStats
  int64_t scheduled_ns = 0;          // when the node became ready; all times are wall-clock ns
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  uint32_t thread = 0;  // the thread's number: a small number for each thread of the process
  // An output that has a value. For a reference, describes the value of the variable.
  struct Out {
    int index = 0;  // which output
    DType dtype = DType::kInvalid;
    Shape shape;
    int64_t bytes = 0;
    std::string allocator;  // the allocator of its buffer; "" for foreign memory
    uint64_t address = 0;   // the address of the bytes
  };
  std::vector<Out> outputs;  // outputs with a value
  // The memory that the kernel allocated from one allocator, including temporary memory. For an
  // asynchronous kernel, which may allocate on other threads, only the memory of new outputs.
  struct Memory {
    std::string allocator;
    int64_t total_bytes = 0;  // sum of all allocations
    int64_t peak_bytes = 0;   // the maximum in use at one time
    int64_t live_bytes = 0;   // still in use when the kernel ended
  };
  std::vector<Memory> memory;
  // The bytes of outputs that existed before the step: those of constants and variables.
  int64_t persistent_bytes = 0;

  // Returns the name of the row in a timeline: its op, or "RecvTensor".
  const std::string& title() const { return op.empty() ? node : op; }
};

// Returns whether the row describes a transfer, or a node of an op that waits for other nodes
// instead of computing, such as a receive or an op of a queue. Reads the op's traits in `registry`;
// returns false for an op that is not in it.
bool WaitsForOthers(const NodeStats& stats, const Registry& registry = Registry::Global());

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

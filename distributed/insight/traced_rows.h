// SPDX-License-Identifier: Apache-2.0
//
// TracedRows: indexes the rows of one traced step: which nodes each node waited for, and which
// two rows are the ends of a transfer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "distributed/insight/cluster_trace.h"

namespace penstock {

struct TracedRow {
  const NodeStats* stats = nullptr;
  size_t device = 0;   // index in the step's devices
  bool waits = false;  // whether the op waits for other steps or tasks (WaitsForOthers)
};

// The transfer of a tensor from one device to another.
struct TracedTransfer {
  static constexpr size_t kNone = static_cast<size_t>(-1);
  size_t send = kNone;  // kNone: it was not recorded
  size_t recv = 0;
  std::string tensor;    // "w:0"
  std::string from, to;  // devices
  int64_t start_ns = 0;  // when it was sent; if not recorded: when the consumer began to wait
  int64_t end_ns = 0;    // when it arrived
  int64_t bytes = 0;     // bytes sent over the network
  int64_t nanos() const { return end_ns - start_ns; }
};

class TracedRows {
 public:
  // `step` must outlive this object.
  explicit TracedRows(const ClusterTrace::Step& step);

  const ClusterTrace::Step& step() const { return step_; }
  const std::vector<TracedRow>& rows() const { return rows_; }
  const std::vector<TracedTransfer>& transfers() const { return transfers_; }
  const std::string& DeviceOf(const TracedRow& row) const {
    return step_.devices[row.device].device;
  }
  // Returns the transfer that ends in the row of a _Recv; null if there is none.
  const TracedTransfer* TransferInto(size_t row) const;
  // Returns the row of the input that ended last before `row` was ready, so that `row` waited for
  // it. TracedTransfer::kNone if none was recorded.
  size_t LastInput(size_t row) const;

 private:
  void AddRows();
  void AddTransfers();

  const ClusterTrace::Step& step_;
  std::vector<TracedRow> rows_;
  std::vector<TracedTransfer> transfers_;
  // The index of the transfer that ends in a row, by row.
  absl::flat_hash_map<size_t, size_t> transfer_into_;
  std::vector<absl::flat_hash_map<std::string, std::vector<size_t>>> by_name_;  // by device
};

}  // namespace penstock

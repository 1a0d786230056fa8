// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/traced_rows.h"

#include <algorithm>
#include <utility>

#include "core/op/edge_name.h"
#include "core/op/registry.h"

namespace penstock {
namespace {

constexpr size_t kNoRow = TracedTransfer::kNone;
// The tolerance for clocks that are read one after the other: a node may seem to be ready
// shortly before its input has ended.
constexpr int64_t kSlackNanos = 1'000;

// An edge of the step's graph and the consumer's device. An edge that has consumers on several
// devices is several transfers.
using EdgeKey = std::pair<std::string, std::string>;

EdgeKey KeyOf(const NodeStats::Transfer& transfer) { return {transfer.edge, transfer.to}; }

bool IsSend(const NodeStats& row) {
  const OpDef* const op = Registry::Global().FindOp(row.op);
  return op != nullptr && op->end == EndOp::kSend;
}

int64_t BytesOf(const NodeStats& row) { return row.outputs.empty() ? 0 : row.outputs[0].bytes; }

}  // namespace

TracedRows::TracedRows(const ClusterTrace::Step& step) : step_(step) {
  AddRows();
  AddTransfers();
}

void TracedRows::AddRows() {
  by_name_.resize(step_.devices.size());
  for (size_t device = 0; device < step_.devices.size(); ++device) {
    for (const NodeStats& node : step_.devices[device].nodes) {
      if (node.node == kTransferStats) continue;
      by_name_[device][node.node].push_back(rows_.size());
      rows_.push_back({.stats = &node, .device = device, .waits = WaitsForOthers(node)});
    }
  }
  for (auto& names : by_name_) {
    for (auto& [name, rows] : names) {
      std::stable_sort(rows.begin(), rows.end(), [&](size_t a, size_t b) {
        return rows_[a].stats->end_ns < rows_[b].stats->end_ns;
      });
    }
  }
}

void TracedRows::AddTransfers() {
  // In loops one edge is used many times: the n-th _Send matches the n-th _Recv.
  absl::flat_hash_map<EdgeKey, std::vector<size_t>> sends, recvs;
  for (size_t i = 0; i < rows_.size(); ++i) {
    const NodeStats& row = *rows_[i].stats;
    if (!row.transfer.has_value()) continue;
    (IsSend(row) ? sends : recvs)[KeyOf(*row.transfer)].push_back(i);
  }
  // For each transfer, besides the row of the _Recv, a row kTransferStats has the number of bytes
  // and the sending device.
  absl::flat_hash_map<EdgeKey, std::vector<const NodeStats*>> arrivals;
  for (const DeviceStats& device : step_.devices) {
    for (const NodeStats& node : device.nodes) {
      if (node.node != kTransferStats || !node.transfer.has_value()) continue;
      arrivals[KeyOf(*node.transfer)].push_back(&node);
    }
  }
  const auto by_end = [&](size_t a, size_t b) {
    return rows_[a].stats->end_ns < rows_[b].stats->end_ns;
  };
  for (auto& [edge, rows] : recvs) {
    std::vector<size_t>& sent = sends[edge];
    std::vector<const NodeStats*>& arrived = arrivals[edge];
    std::stable_sort(rows.begin(), rows.end(), by_end);
    std::stable_sort(sent.begin(), sent.end(), by_end);
    std::stable_sort(arrived.begin(), arrived.end(),
                     [](const auto* a, const auto* b) { return a->end_ns < b->end_ns; });
    for (size_t n = 0; n < rows.size(); ++n) {
      const NodeStats& recv = *rows_[rows[n]].stats;
      TracedTransfer transfer{.recv = rows[n],
                              .tensor = TensorOf(edge.first),
                              .to = DeviceOf(rows_[rows[n]]),
                              .start_ns = recv.start_ns,
                              .end_ns = recv.end_ns,
                              .bytes = BytesOf(recv)};
      if (n < arrived.size()) {
        transfer.from = arrived[n]->transfer->from;
        transfer.bytes = BytesOf(*arrived[n]);
      }
      if (n < sent.size()) {
        const NodeStats& send = *rows_[sent[n]].stats;
        transfer.send = sent[n];
        transfer.from = DeviceOf(rows_[sent[n]]);
        transfer.start_ns = std::min(send.end_ns, recv.end_ns);
      }
      transfer_into_[rows[n]] = transfers_.size();
      transfers_.push_back(std::move(transfer));
    }
  }
  std::stable_sort(transfers_.begin(), transfers_.end(), [](const auto& a, const auto& b) {
    return std::pair(a.start_ns, a.recv) < std::pair(b.start_ns, b.recv);
  });
  for (size_t i = 0; i < transfers_.size(); ++i) transfer_into_[transfers_[i].recv] = i;
}

const TracedTransfer* TracedRows::TransferInto(size_t row) const {
  const auto found = transfer_into_.find(row);
  return found == transfer_into_.end() ? nullptr : &transfers_[found->second];
}

size_t TracedRows::LastInput(size_t row) const {
  const TracedRow& waiting = rows_[row];
  const int64_t ready_ns = waiting.stats->scheduled_ns + kSlackNanos;
  size_t last = kNoRow;
  for (const NodeStats::Input& input : waiting.stats->inputs) {
    const auto found = by_name_[waiting.device].find(input.node);
    if (found == by_name_[waiting.device].end()) continue;
    // Finds the last iteration of the input that had ended when the row was ready.
    const auto after = std::upper_bound(
        found->second.begin(), found->second.end(), ready_ns,
        [&](int64_t at_ns, size_t other) { return at_ns < rows_[other].stats->end_ns; });
    if (after == found->second.begin()) continue;
    const size_t input_row = *(after - 1);
    if (input_row == row) continue;
    if (last == kNoRow || rows_[input_row].stats->end_ns > rows_[last].stats->end_ns) {
      last = input_row;
    }
  }
  return last;
}

}  // namespace penstock

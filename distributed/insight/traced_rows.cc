// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/traced_rows.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace penstock {
namespace {

constexpr size_t kNone = TracedTransfer::kNone;
// The tolerance for clocks that are read one after the other: a node may seem to be ready
// shortly before its input has ended.
constexpr int64_t kSlackNanos = 1'000;

// Returns the tensor's name for a key of the partitioner: "w:0" for "edge_12_w:0".
std::string TensorOf(string_view edge) {
  const size_t number_end = edge.find('_', edge.find('_') + 1);
  return std::string(number_end == string_view::npos ? edge : edge.substr(number_end + 1));
}

// Labels have the form "NAME = Op(IN1, IN2:1, ^CONTROL)". For the ends of a transfer the
// last argument is "EDGE @CONSUMER" (core/runtime/node_stats.cc).
void ParseLabel(TracedRow* row) {
  string_view label = row->stats->label;
  const size_t equals = label.find(" = ");
  const size_t open = label.find('(', equals == string_view::npos ? 0 : equals);
  if (equals == string_view::npos || open == string_view::npos) {
    row->op = row->stats->node;
    return;
  }
  row->op = std::string(label.substr(equals + 3, open - equals - 3));
  row->waits = WaitsForOthers(row->op);
  string_view arguments = absl::StripSuffix(label.substr(open + 1), ")");
  for (string_view argument : absl::StrSplit(arguments, ", ", absl::SkipEmpty())) {
    if (absl::StrContains(argument, " @")) {
      row->edge = std::string(argument);
      continue;
    }
    absl::ConsumePrefix(&argument, "^");
    row->inputs.emplace_back(argument.substr(0, argument.find(':')));
  }
}

// The row next to a _Recv's row says how many bytes were transferred, and from where: "[8B]
// EDGE from A to B".
struct Arrival {
  std::string from;
  int64_t bytes;
  int64_t end_ns;
};
bool ParseArrival(const NodeStats& row, std::string* edge, Arrival* arrival) {
  if (row.node != kTransferStats) return false;
  const size_t bracket = row.label.find("] "), from = row.label.find(" from "),
               to = row.label.find(" to ", from);
  if (bracket == std::string::npos || from == std::string::npos || to == std::string::npos) {
    return false;
  }
  *edge = StrCat(row.label.substr(bracket + 2, from - bracket - 2), " @", row.label.substr(to + 4));
  *arrival = {row.label.substr(from + 6, to - from - 6),
              row.outputs.empty() ? 0 : row.outputs[0].bytes, row.end_ns};
  return true;
}

}  // namespace

bool WaitsForOthers(const std::string& op) {
  if (absl::StrContains(op, "Recv")) return true;
  for (const string_view family : {"Queue", "Barrier", "Accumulator", "Reader", "Stage"}) {
    if (absl::StartsWith(op, family)) return true;
  }
  return false;
}

TracedRows::TracedRows(const ClusterTrace::Step& step) : step_(step) {
  AddRows();
  AddTransfers();
}

void TracedRows::AddRows() {
  by_name_.resize(step_.devices.size());
  for (size_t device = 0; device < step_.devices.size(); ++device) {
    for (const NodeStats& node : step_.devices[device].nodes) {
      if (node.node == kTransferStats) continue;
      TracedRow row{.stats = &node, .device = device};
      ParseLabel(&row);
      by_name_[device][node.node].push_back(rows_.size());
      rows_.push_back(std::move(row));
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
  absl::flat_hash_map<std::string, std::vector<size_t>> sends, recvs;
  absl::flat_hash_map<std::string, std::vector<Arrival>> arrivals;
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].edge.empty()) continue;
    (absl::EndsWith(rows_[i].op, "Send") ? sends : recvs)[rows_[i].edge].push_back(i);
  }
  for (const DeviceStats& device : step_.devices) {
    for (const NodeStats& node : device.nodes) {
      std::string edge;
      Arrival arrival;
      if (ParseArrival(node, &edge, &arrival)) arrivals[edge].push_back(std::move(arrival));
    }
  }
  const auto by_end = [&](size_t a, size_t b) {
    return rows_[a].stats->end_ns < rows_[b].stats->end_ns;
  };
  for (auto& [edge, rows] : recvs) {
    std::vector<size_t>& sent = sends[edge];
    std::vector<Arrival>& arrived = arrivals[edge];
    std::stable_sort(rows.begin(), rows.end(), by_end);
    std::stable_sort(sent.begin(), sent.end(), by_end);
    std::stable_sort(arrived.begin(), arrived.end(),
                     [](const Arrival& a, const Arrival& b) { return a.end_ns < b.end_ns; });
    for (size_t n = 0; n < rows.size(); ++n) {
      const NodeStats& recv = *rows_[rows[n]].stats;
      TracedTransfer transfer{.recv = rows[n],
                              .tensor = TensorOf(edge.substr(0, edge.find(" @"))),
                              .to = DeviceOf(rows_[rows[n]]),
                              .start_ns = recv.start_ns,
                              .end_ns = recv.end_ns,
                              .bytes = recv.outputs.empty() ? 0 : recv.outputs[0].bytes};
      if (n < arrived.size()) {
        transfer.from = arrived[n].from;
        transfer.bytes = arrived[n].bytes;
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
  size_t last = kNone;
  for (const std::string& input : waiting.inputs) {
    const auto found = by_name_[waiting.device].find(input);
    if (found == by_name_[waiting.device].end()) continue;
    // Finds the last iteration of the input that had ended by then.
    const auto after = std::upper_bound(
        found->second.begin(), found->second.end(), ready_ns,
        [&](int64_t at_ns, size_t other) { return at_ns < rows_[other].stats->end_ns; });
    if (after == found->second.begin()) continue;
    const size_t input_row = *(after - 1);
    if (input_row == row) continue;
    if (last == kNone || rows_[input_row].stats->end_ns > rows_[last].stats->end_ns) {
      last = input_row;
    }
  }
  return last;
}

}  // namespace penstock

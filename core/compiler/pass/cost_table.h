// SPDX-License-Identifier: Apache-2.0
//
// CostTable: tells the placer how long nodes take on devices, how large their outputs are, and how
// long the transfer of an output takes. Measurements are keyed by the names of nodes and devices,
// so that measurements of one step serve the compilation of other steps. Estimates are for the
// nodes of one graph.
//
// A node's time on a device is the first of these that is known: the time measured on this device;
// the time measured on another device of the same type, multiplied by the ratio of the two devices'
// speeds; an estimate from the node's work and the device's rates, corrected by the errors of
// earlier estimates for the op and the device (learned_rates.h). The time is then multiplied by the
// device's slowness in recent steps (device_slowness.h). Const functions are thread-safe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "core/compiler/pass/device_slowness.h"
#include "core/compiler/pass/learned_rates.h"
#include "core/graph/graph.h"
#include "core/op/device_name.h"

namespace penstock {

class CostTable {
 public:
  // Estimates the work of each node of `graph` from its op, types and shapes. Keeps measurements.
  // From then on, arguments `node` of the functions below are nodes of this graph. `devices` are
  // the devices on which times were measured: with their rates, Estimate compares measurements with
  // estimates, and learns factors that correct the estimates.
  void Estimate(const Graph& graph, const ShapeMap& shapes,
                const std::vector<DeviceInfo>& devices = {});

  // Record the time of one execution of a node, and the bytes of one of its outputs. The known time
  // of the node falls quickly and rises slowly, because noise only makes times longer. A time above
  // four times the known time counts as four times the known time.
  void RecordNode(string_view node, const DeviceName& device, double nanos);
  void RecordOutput(string_view node, int output, double bytes);
  // Records all nodes that one step ran on a device, once for each execution, and updates the
  // device's slowness.
  struct Execution {
    string_view node;
    double nanos = 0;
  };
  void RecordStep(const DeviceName& device, absl::Span<const Execution> executions);
  // Returns the factor by which the device is slower now than the nodes' known times; 1: not
  // slower.
  double Slowness(const DeviceName& device) const { return slowness_.Of(device); }

  // Records that a transfer of `bytes` bytes from one task to another took `nanos`, from the end of
  // the producer to the arrival. Learns the link's latency from small transfers (up to 4 KiB) and
  // its rate from large ones (64 KiB or more). Ignores other sizes, and times that are not above 0.
  // The fastest transfers count most, because the others had to wait for each other. If `from` or
  // `to` is a device, its task counts.
  void RecordTransfer(const DeviceName& from, const DeviceName& to, double bytes, double nanos);

  // The measured link from one task to another.
  struct Link {
    DeviceName from, to;     // tasks
    double latency_ns = -1;  // negative: not measured
    double bytes_per_ns = -1;
    int64_t transfers = 0;  // number of measured transfers
  };
  const std::vector<Link>& links() const { return links_; }
  void AddLink(const Link& link) { links_.push_back(link); }
  // Returns the measured latency and rate of the link between the tasks of two devices. For a value
  // that was not measured, takes the worse one of the two devices' DeviceInfo::link_to_tasks.
  // REQUIRES: the devices belong to different tasks.
  LinkRates LinkBetween(const DeviceInfo& from, const DeviceInfo& to) const;

  // All measurements of a node. Add copies them to another table.
  struct Record {
    std::string node;
    std::vector<std::pair<DeviceName, double>> times;  // nanoseconds
    std::vector<double> output_bytes;                  // negative: not measured
  };
  std::vector<Record> Records() const;  // in order of name
  void Add(const Record& record);

  // Returns the max_id() that the graph had in the last Estimate. Nodes with this or a larger id
  // have no estimate.
  int num_estimated() const { return static_cast<int>(work_.size()); }
  // Returns whether a time was recorded for the node on some device.
  bool IsMeasured(const Node& node) const;
  // Returns the node's time on the device. If there is neither a measurement nor an estimate,
  // returns the time of a kernel that does nothing.
  double NodeNanos(const Node& node, const DeviceInfo& device) const;
  // Returns the estimated number of floating-point operations; 0 if there is no estimate.
  double Flops(const Node& node) const;
  // Returns the size of an output; 0 if it was neither measured nor estimated.
  double OutputBytes(const Node& node, int output) const;

 private:
  struct Time {
    DeviceName device;
    double nanos = 0;
  };
  struct MeasuredNode {
    std::vector<Time> times;
    std::vector<double> output_bytes;  // negative: not measured
  };
  struct NodeWork {
    double flops = 0;
    double bytes = 0;         // bytes that the node reads and writes
    size_t first_output = 0;  // the index of output 0 in output_bytes_
  };
  const MeasuredNode* FindMeasured(const Node& node) const;
  // Returns the time that was recorded for the node on the device; null if there is none.
  const Time* FindTime(string_view node, const DeviceName& device) const;
  double EstimatedNanos(const Node& node, const DeviceRates& rates) const;
  void Learn(const Graph& graph, const std::vector<DeviceInfo>& devices);

  absl::flat_hash_map<std::string, MeasuredNode> measured_;  // by name
  std::vector<Link> links_;                                  // in order of the first transfer
  std::vector<NodeWork> work_;                               // by node id
  std::vector<double> output_bytes_;                         // the estimated sizes of all outputs
  LearnedRates learned_;
  DeviceSlowness slowness_;
};

}  // namespace penstock

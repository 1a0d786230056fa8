// SPDX-License-Identifier: Apache-2.0
//
// CostTable: how long nodes take on devices, how large their outputs are and how long these travel:
// what the placer asks.
// A value. Measurements are keyed by the names of nodes and devices, so that what one step was
// measured to take serves the compilation of the next; estimates are of one graph.
//
// A node's time on a device is, in this order: the one measured there; the one measured on another
// device of the same type, by how the two devices compare; an estimate from the node's work and the
// device's rates, by what estimates of its op and device were off (learned_rates.h). Each is
// multiplied by how slow the device was in recent steps (device_slowness.h). Thread-safe while it
// is const.
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
  // Estimates the work of each node of `graph` from its op, types and shapes. Measurements stay.
  // From then on the table answers for nodes of that graph. `devices` are those that times were
  // measured on: their rates tell what was estimated.
  void Estimate(const Graph& graph, const ShapeMap& shapes,
                const std::vector<DeviceInfo>& devices = {});

  // One execution of a node, and the size of what one of its outputs held. The table follows times
  // down quickly and up slowly, because noise only adds to them; a time that is far off counts as
  // four times what is known.
  void RecordNode(string_view node, const DeviceName& device, double nanos);
  void RecordOutput(string_view node, int output, double bytes);
  // All nodes that one step ran on a device, once for each execution: records each of them, and how
  // slow the device was.
  struct Execution {
    string_view node;
    double nanos = 0;
  };
  void RecordStep(const DeviceName& device, absl::Span<const Execution> executions);
  // By how much longer nodes take on the device than their quickest times tell; 1: no longer.
  double Slowness(const DeviceName& device) const { return slowness_.Of(device); }

  // One transfer from one task to another, from when the bytes were there to their arrival. Small
  // transfers (up to 4 KiB) tell the latency of the link, large ones (from 64 KiB on) its rate; the
  // others, and times that are not above 0, are left out. The quickest count most: the others have
  // waited for each other. `from` and `to` may be devices: their tasks count.
  void RecordTransfer(const DeviceName& from, const DeviceName& to, double bytes, double nanos);

  // The measured link from one task to another.
  struct Link {
    DeviceName from, to;     // tasks
    double latency_ns = -1;  // negative: not measured
    double bytes_per_ns = -1;
    int64_t transfers = 0;  // that were measured
  };
  const std::vector<Link>& links() const { return links_; }
  void AddLink(const Link& link) { links_.push_back(link); }
  // Returns the measured link between two tasks; the devices' own rates stand in for what was not
  // measured. `from` and `to` are devices of different tasks.
  LinkRates LinkBetween(const DeviceInfo& from, const DeviceInfo& to) const;

  // Everything that was recorded of a node: what another table can be filled with.
  struct Record {
    std::string node;
    std::vector<std::pair<DeviceName, double>> times;  // nanoseconds
    std::vector<double> output_bytes;                  // negative: not measured
  };
  std::vector<Record> Records() const;  // in order of name
  void Add(const Record& record);

  // The number of node ids that the last Estimate knew: nodes of larger ids have no estimate.
  int num_estimated() const { return static_cast<int>(work_.size()); }
  // True if a time was recorded for the node on some device.
  bool IsMeasured(const Node& node) const;
  // Without a measurement or an estimate: the time of a kernel that does nothing.
  double NodeNanos(const Node& node, const DeviceInfo& device) const;
  // The estimated number of floating-point operations.
  double Flops(const Node& node) const;
  // 0 if the output was neither measured nor estimated.
  double OutputBytes(const Node& node, int output) const;

 private:
  struct Time {
    DeviceName device;
    double nanos = 0;
  };
  struct Measured {
    std::vector<Time> times;
    std::vector<double> output_bytes;  // negative: not measured
  };
  struct Work {
    double flops = 0;
    double bytes = 0;         // read and written
    size_t first_output = 0;  // in output_bytes_
  };
  const Measured* FindMeasured(const Node& node) const;
  // Null: none was recorded.
  const Time* FindTime(string_view node, const DeviceName& device) const;
  double EstimatedNanos(const Node& node, const DeviceRates& rates) const;
  void Learn(const Graph& graph, const std::vector<DeviceInfo>& devices);

  absl::flat_hash_map<std::string, Measured> measured_;  // by name
  std::vector<Link> links_;                              // in order of the first transfer
  std::vector<Work> work_;                               // by node id
  std::vector<double> output_bytes_;                     // estimated
  LearnedRates learned_;
  DeviceSlowness slowness_;
};

}  // namespace penstock

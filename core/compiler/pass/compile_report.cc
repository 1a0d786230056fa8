// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/pass/compile_report.h"

#include "absl/strings/str_format.h"
#include "core/base/status.h"

namespace penstock {
namespace {

const char* Text(PlacementReport::Reason reason) {
  switch (reason) {
    case PlacementReport::Reason::kOnlyDevice:
      return "the only device that its constraints and kernels allow";
    case PlacementReport::Reason::kHoldsState:
      return "holds state: the first device that its constraints and kernels allow";
    case PlacementReport::Reason::kEndsSoonest:
      return "ends soonest";
    case PlacementReport::Reason::kShortensStep:
      return "the whole step ends sooner";
  }
  return "";
}

std::string Bytes(double bytes) {
  if (bytes < 10'000) return absl::StrFormat("%.0f B", bytes);
  if (bytes < 10'000'000) return absl::StrFormat("%.1f kB", bytes / 1e3);
  return absl::StrFormat("%.1f MB", bytes / 1e6);
}

}  // namespace

std::string ToString(const CompileReport& report) {
  std::string text;
  for (const auto& [pass, nanos] : report.passes) {
    absl::StrAppendFormat(&text, "pass %s: %.3f ms\n", pass, static_cast<double>(nanos) / 1e6);
  }
  const PlacementReport& placement = report.placement;
  for (const PlacementReport::Group& group : placement.groups) {
    const std::string others =
        group.num_nodes > 1 ? StrCat(" and ", group.num_nodes - 1, " more") : "";
    absl::StrAppendFormat(&text, "%s%s @ %s: %s\n", group.node, others,
                          placement.devices[group.device], Text(group.reason));
    for (const auto& [device, end_ns] : group.candidates) {
      if (end_ns == 0) continue;
      absl::StrAppendFormat(&text, "    %s  ends after %.3f us\n", placement.devices[device],
                            end_ns / 1e3);
    }
  }
  if (placement.step_ns != 0) {
    absl::StrAppendFormat(&text, "predicted step: %.3f us, at least %.3f us wherever nodes run\n",
                          placement.step_ns / 1e3, placement.least_ns / 1e3);
  }
  return text + ToString(report.memory);
}

std::string ToString(const MemoryReport& report) {
  std::string text;
  for (const MemoryReport::Device& device : report.devices) {
    absl::StrAppendFormat(&text, "%s: peak %s of the step's tensors, beside %s of variables",
                          device.device, Bytes(device.peak_bytes), Bytes(device.state_bytes));
    if (device.fed_bytes > 0) absl::StrAppendFormat(&text, " and %s fed", Bytes(device.fed_bytes));
    if (device.worst_bytes > device.peak_bytes) {
      absl::StrAppendFormat(&text, "; at worst, with several threads, %s",
                            Bytes(device.worst_bytes));
    }
    if (device.naive_bytes != device.peak_bytes) {
      absl::StrAppendFormat(&text, "; without the limit %s", Bytes(device.naive_bytes));
    }
    if (!device.peak_node.empty()) {
      absl::StrAppendFormat(&text, "\n  while %s runs there are:\n", device.peak_node);
    }
    for (const MemoryReport::Tensor& tensor : device.largest) {
      absl::StrAppendFormat(&text, "  %12s  %s%s\n", Bytes(tensor.bytes), tensor.name,
                            tensor.received ? " (received)" : "");
    }
    if (device.largest.empty()) text += "\n";
  }
  if (report.limit_bytes > 0 && report.ordered) {
    absl::StrAppendFormat(
        &text, "for the limit of %s: order kept, %d nodes run again, %d tensors swapped\n",
        Bytes(report.limit_bytes), report.num_recomputed, report.num_swapped);
  }
  if (!report.loop.empty()) {
    absl::StrAppendFormat(&text, "the loop '%s' counts as one iteration\n", report.loop);
  }
  return text;
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/cost_tables.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "distributed/insight/words.h"

namespace penstock {
namespace {

using absl::StrAppendFormat;
using absl::StrCat;

constexpr int64_t kExecutionsMin = 10;

std::vector<const wire::NodeCost*> Sorted(const wire::StepCosts& step) {
  std::vector<const wire::NodeCost*> nodes;
  for (const wire::NodeCost& node : step.node()) nodes.push_back(&node);
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const auto* a, const auto* b) { return a->nanos() > b->nanos(); });
  return nodes;
}

double NodeNanos(const wire::StepCosts& step) {
  double sum = 0;
  for (const wire::NodeCost& node : step.node()) sum += node.nanos();
  return sum;
}

double Percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

std::string Names(const wire::StepCosts& step) {
  std::vector<std::string> names(step.fetch().begin(), step.fetch().end());
  names.insert(names.end(), step.target().begin(), step.target().end());
  return absl::StrJoin(names, ", ");
}

void AddDevices(const wire::StepCosts& step, std::string* text) {
  struct Load {
    int nodes = 0, measured = 0;
    double nanos = 0;
  };
  std::map<std::string, Load> loads;
  for (const wire::NodeCost& node : step.node()) {
    Load& load = loads[node.device()];
    ++load.nodes;
    load.measured += node.measured() ? 1 : 0;
    load.nanos += node.nanos();
  }
  for (const auto& [device, load] : loads) {
    StrAppendFormat(text, "  %-44s %6d nodes, %d of them measured, %.1f us\n", device, load.nodes,
                    load.measured, load.nanos / 1e3);
  }
  StrAppendFormat(text, "  %d transfers between devices, %s\n", step.transfers(),
                  BytesText(static_cast<int64_t>(step.transfer_bytes())));
}

void AddMemory(const wire::StepCosts& step, std::string* text) {
  const auto bytes = [](double value) { return BytesText(static_cast<int64_t>(value)); };
  for (const wire::DeviceMemory& memory : step.memory()) {
    StrAppendFormat(text, "  %-44s %s of tensors at the peak, beside %s of variables",
                    memory.device(), bytes(memory.peak_bytes()), bytes(memory.state_bytes()));
    if (memory.fed_bytes() > 0) StrAppendFormat(text, " and %s fed", bytes(memory.fed_bytes()));
    *text += "\n";
    if (memory.largest_size() == 0) continue;
    StrAppendFormat(text, "    while %s runs, the largest are\n", memory.peak_node());
    for (const wire::DeviceMemory::Tensor& tensor : memory.largest()) {
      StrAppendFormat(text, "    %10s  %s\n", bytes(tensor.bytes()), tensor.name());
    }
  }
}

std::string Quoted(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  return StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

}  // namespace

std::string RatesText(const wire::SessionCosts& session) {
  std::string text;
  for (const wire::DeviceCost& device : session.device()) {
    StrAppendFormat(&text, "  %s: %.3g GFLOP/s, %.3g GB/s, %.3g us per kernel, %d at once (%s)",
                    device.device(), device.flops_per_ns(), device.bytes_per_ns(),
                    device.launch_ns() / 1e3, device.lanes(),
                    device.origin().empty() ? "assumed" : device.origin());
    if (device.slowness() > 1) {
      StrAppendFormat(&text, "; its nodes lately took %.2g times as long", device.slowness());
    }
    text += '\n';
  }
  for (const wire::LinkCost& link : session.link()) {
    StrAppendFormat(&text, "  %s to %s: ", link.from(), link.to());
    text += link.latency_ns() < 0 ? std::string("latency assumed, ")
                                  : absl::StrFormat("%.3g us, ", link.latency_ns() / 1e3);
    text += link.bytes_per_ns() < 0 ? std::string("rate assumed")
                                    : absl::StrFormat("%.3g GB/s", link.bytes_per_ns());
    StrAppendFormat(&text, " (measured by %d transfers)\n", link.transfers());
  }
  return text;
}

std::string DifferenceText(const wire::StepCosts& step) {
  if (step.executions() < kExecutionsMin || step.median_ns() <= 0) return "";
  const double off = 100 * (step.predicted_ns() / step.median_ns() - 1);
  return absl::StrFormat("%.0f %% %s than measured", std::abs(off), off < 0 ? "less" : "more");
}

std::string CostText(const wire::StepCosts& step, size_t rows) {
  std::string text = StrCat("step of ", Names(step), "\n");
  if (step.executions() > 0) {
    StrAppendFormat(&text, "  measured:  %.1f us, the median of the last of %d executions\n",
                    step.median_ns() / 1e3, step.executions());
  }
  if (step.has_error()) {
    StrAppendFormat(&text, "  not predicted: %s\n", step.error().message());
    return text;
  }
  const std::string difference = DifferenceText(step);
  StrAppendFormat(&text, "  predicted: %.1f us%s%s\n", step.predicted_ns() / 1e3,
                  difference.empty() ? "" : ", ", difference);
  AddDevices(step, &text);
  AddMemory(step, &text);
  const auto nodes = Sorted(step);
  const size_t shown = std::min(rows, nodes.size());
  if (shown == 0) return text;
  size_t widths[] = {4, 2};
  for (size_t i = 0; i < shown; ++i) {
    widths[0] = std::max(widths[0], nodes[i]->node().size());
    widths[1] = std::max(widths[1], nodes[i]->op().size());
  }
  StrAppendFormat(&text, "  %-*s  %-*s  %12s %7s %10s %12s      %s\n", widths[0], "node", widths[1],
                  "op", "us", "share", "bytes", "flops", "device");
  const double whole = NodeNanos(step);
  for (size_t i = 0; i < shown; ++i) {
    const wire::NodeCost& node = *nodes[i];
    StrAppendFormat(&text, "  %-*s  %-*s  %12.1f %6.1f%% %10s %12.3g  %s  %s\n", widths[0],
                    node.node(), widths[1], node.op(), node.nanos() / 1e3,
                    Percent(node.nanos(), whole), BytesText(static_cast<int64_t>(node.bytes())),
                    node.flops(), node.measured() ? "  " : "~ ", node.device());
  }
  if (shown < nodes.size()) StrAppendFormat(&text, "  and %d more\n", nodes.size() - shown);
  return text + "  ~ estimated, not measured\n";
}

std::string CostCsv(const wire::StepCosts& step) {
  std::string text = "node,op,device,us,share,bytes,flops,measured\n";
  const double whole = NodeNanos(step);
  for (const wire::NodeCost* node : Sorted(step)) {
    StrAppendFormat(&text, "%s,%s,%s,%.3f,%.4f,%.0f,%.0f,%d\n", Quoted(node->node()), node->op(),
                    node->device(), node->nanos() / 1e3, Percent(node->nanos(), whole) / 100,
                    node->bytes(), node->flops(), node->measured());
  }
  return text;
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/compiler/memory/execution_order.h"
#include "core/compiler/memory/memory_plan.h"
#include "core/compiler/passes/estimates.h"
#include "core/compiler/passes/passes.h"
#include "core/graph/loop_frames.h"

namespace penstock {
namespace {

// Returns the buffers that are in memory at the device's peak, largest first.
std::vector<const MemoryProfile::Buffer*> BuffersAtPeak(const MemoryProfile& profile, int device) {
  std::vector<const MemoryProfile::Buffer*> buffers;
  const int at = profile.devices[device].peak_at;
  for (const MemoryProfile::Buffer& buffer : profile.buffers) {
    if (buffer.device == device && buffer.counted && buffer.begin <= at && at <= buffer.end) {
      buffers.push_back(&buffer);
    }
  }
  std::stable_sort(buffers.begin(), buffers.end(),
                   [](const auto* a, const auto* b) { return a->bytes > b->bytes; });
  return buffers;
}

std::string NameOf(const Endpoint& value) { return StrCat(value.node->name(), ":", value.index); }

// Returns the tensors that may be in memory at worst, largest first.
std::vector<MemoryReport::Tensor> LargestOf(const WorstPeak& worst) {
  std::vector<MemoryReport::Tensor> tensors;
  for (const WorstPeak::Tensor& tensor : worst.tensors) {
    if (tensor.bytes > 0) {
      tensors.push_back({NameOf(tensor.value), tensor.bytes, tensor.received});
    }
  }
  std::ranges::stable_sort(tensors, std::greater<>(), &MemoryReport::Tensor::bytes);
  if (tensors.size() > MemoryReport::kTensorsMax) tensors.resize(MemoryReport::kTensorsMax);
  return tensors;
}

MemoryReport::Device Describe(const MemoryPlan& plan, int device) {
  const MemoryProfile::Device& profile = plan.profile().devices[device];
  MemoryReport::Device report = {.device = plan.model().devices()[device],
                                 .peak_bytes = profile.peak_bytes,
                                 .peak_own_bytes = profile.peak_own_bytes,
                                 .state_bytes = profile.state_bytes,
                                 .fed_bytes = profile.fed_bytes};
  if (profile.peak_bytes > 0) report.peak_node = plan.order()[profile.peak_at]->name();
  for (const MemoryProfile::Buffer* buffer : BuffersAtPeak(plan.profile(), device)) {
    if (report.largest.size() == MemoryReport::kTensorsMax || buffer->bytes == 0) break;
    report.largest.push_back({NameOf(buffer->value), buffer->bytes, buffer->received});
  }
  return report;
}

std::string Lines(const std::vector<MemoryReport::Tensor>& tensors) {
  std::string lines;
  for (const MemoryReport::Tensor& tensor : tensors) {
    absl::StrAppendFormat(&lines, "\n  %12.0f bytes  %s%s", tensor.bytes, tensor.name,
                          tensor.received ? " (received)" : "");
  }
  return lines;
}

Status DoesNotFitError(const MemoryReport& report) {
  std::string list;
  for (const MemoryReport::Device& device : report.devices) {
    if (device.peak_bytes <= report.limit_bytes) continue;
    absl::StrAppendFormat(&list,
                          "\n%s: %.0f bytes while '%s' runs, %.0f too many (%.0f before the step "
                          "was changed):",
                          device.device, device.peak_bytes, device.peak_node,
                          device.peak_bytes - report.limit_bytes, device.naive_bytes);
    list += Lines(device.largest);
  }
  return ResourceExhausted(
      absl::StrFormat(
          "memory_limit: the step does not fit into %.0f bytes on each device, although "
          "its order was chosen for that, %d nodes would run again and %d tensors would "
          "be swapped. Raise the limit or make the batch smaller.",
          report.limit_bytes, report.num_recomputed, report.num_swapped),
      list);
}

// Returns the error for a step whose planned order fits, although control edges cannot keep it.
Status MayNotFitError(const MemoryReport& report, const std::vector<WorstPeak>& worst) {
  std::string list;
  for (size_t d = 0; d < worst.size(); ++d) {
    if (worst[d].bytes <= report.limit_bytes) continue;
    absl::StrAppendFormat(&list,
                          "\n%s: up to %.0f bytes when '%s' runs, %.0f too many (%.0f in the "
                          "planned order):",
                          report.devices[d].device, worst[d].bytes, worst[d].at->name(),
                          worst[d].bytes - report.limit_bytes, report.devices[d].peak_bytes);
    list += Lines(LargestOf(worst[d]));
  }
  return ResourceExhausted(
      absl::StrFormat("memory_limit: the step may take more than %.0f bytes on a device, because "
                      "other tasks, branches or blocking nodes leave its order open, or because "
                      "the bound is coarse for a step with very many large tensors. Raise the "
                      "limit or make the batch smaller.",
                      report.limit_bytes),
      list);
}

// Changes the step until it fits, or until no change lowers its memory.
Status LowerToLimit(MemoryPlan* plan, MemoryReport* report) {
  RETURN_IF_ERROR(plan->SplitSums());
  plan->LowerByOrder();
  report->ordered = true;
  RETURN_IF_ERROR(plan->LowerBy(MemoryPlan::Method::kRecompute));
  RETURN_IF_ERROR(plan->LowerBy(MemoryPlan::Method::kSwap));
  report->num_recomputed = plan->num_recomputed();
  report->num_swapped = plan->num_swapped();
  if (plan->Fits()) plan->KeepOrder();
  return OkStatus();
}

}  // namespace

Status FitMemory(PassContext& context) {
  const auto limit = static_cast<double>(context.options.memory_limit);
  if (limit < 0) {
    return InvalidArgument("memory_limit: ", context.options.memory_limit,
                           " is no number of bytes; 0 means no limit");
  }
  if (limit == 0 && !context.options.predict) return OkStatus();
  MemoryReport& report = context.report.memory;
  report.limit_bytes = limit;
  ASSIGN_OR_RETURN(const LoopFrames loops, FindLoopFrames(*context.graph));
  if (loops.any()) report.loop = loops.frames[1].name;
  if (limit > 0 && loops.any()) {
    return FailedPrecondition("memory_limit: the step has the loop '", report.loop,
                              "', and what its iterations keep is not known before they run. "
                              "Unroll it, or leave the limit out.");
  }
  RETURN_IF_ERROR(EstimateCosts(context));
  ASSIGN_OR_RETURN(std::vector<Node*> order,
                   ExecutorOrder(*context.graph, context.costs,
                                 context.options.client_device.Task().ToString(), context.urgency));
  MemoryPlan plan(context.graph, context.costs, std::move(order), limit);
  const MemoryProfile naive = plan.profile();
  if (limit > 0 && plan.IsNearLimit()) RETURN_IF_ERROR(LowerToLimit(&plan, &report));
  const std::vector<WorstPeak>& worst = plan.AtWorst();
  for (size_t d = 0; d < naive.devices.size(); ++d) {
    report.devices.push_back(Describe(plan, static_cast<int>(d)));
    report.devices.back().worst_bytes = worst[d].bytes;
    report.devices.back().naive_bytes = naive.devices[d].peak_bytes;
  }
  if (limit == 0) return OkStatus();
  if (!plan.Fits()) return DoesNotFitError(report);
  return plan.AlwaysFits() ? OkStatus() : MayNotFitError(report, worst);
}

}  // namespace penstock

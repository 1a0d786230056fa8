// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/trace_summary.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_format.h"
#include "distributed/insight/critical_path.h"
#include "distributed/insight/words.h"

namespace penstock {
namespace {

constexpr size_t kPathRowsMax = 8;

std::string Milliseconds(int64_t nanos) {
  return absl::StrFormat("%.3f ms", static_cast<double>(nanos) * 1e-6);
}

double Percent(int64_t part, int64_t whole) {
  return whole <= 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

std::string NameOf(const ClusterTrace::Step& step) {
  std::string name;
  if (!step.targets.empty()) StrAppend(&name, "target ", step.targets[0]);
  if (!step.fetches.empty()) {
    StrAppend(&name, name.empty() ? "" : ", ", "fetch ", step.fetches[0]);
  }
  const size_t others = step.targets.size() + step.fetches.size() - (step.targets.empty() ? 0 : 1) -
                        (step.fetches.empty() ? 0 : 1);
  if (others > 0) StrAppend(&name, " and ", others, " more");
  return name;
}

std::string ProtocolOf(const ClusterTrace& trace, const std::string& from, const std::string& to) {
  if (from == to) return "local";
  const auto found = trace.protocols.find({from, to});
  return found == trace.protocols.end() ? "" : found->second;
}

std::string MastersText(const ClusterTrace& trace) {
  std::string text;
  for (const ClusterTrace::Master& master : trace.masters) {
    const auto steps = std::count_if(trace.steps.begin(), trace.steps.end(),
                                     [&](const auto& step) { return step.master == master.task; });
    StrAppend(&text, "  ", ShortTask(master.task), ": ");
    if (!master.status.ok()) {
      StrAppend(&text, "does not tell: ", master.status.message(), "\n");
      continue;
    }
    if (master.sessions == 0) {
      StrAppend(&text, "is the master of no session\n");
      continue;
    }
    StrAppend(&text, steps, steps == 1 ? " step" : " steps");
    if (!master.cut.empty()) StrAppend(&text, "; ", master.cut);
    StrAppend(&text, "\n");
  }
  return text;
}

std::string ClocksText(const ClusterTrace& trace, const std::map<std::string, TaskClock>& clocks) {
  std::string text = StrCat("Clocks, against that of ", ShortTask(trace.asked), ":\n");
  for (const auto& [task, clock] : clocks) {
    if (task == trace.asked) continue;
    StrAppend(&text, "  ", ShortTask(task), ": ",
              clock.error_ns < 0 ? "never compared; its times are by its own clock"
                                 : absl::StrFormat("%+.3f ms, to within %s",
                                                   static_cast<double>(clock.offset_ns) * 1e-6,
                                                   Milliseconds(clock.error_ns)),
              "\n");
  }
  return clocks.size() < 2 ? "" : text;
}

std::string CostsText(const std::vector<TracedCost>& costs, int64_t steps_ns, size_t costs_max) {
  std::string text = absl::StrFormat("The most expensive things, with their share of %s:\n",
                                     Milliseconds(steps_ns));
  for (size_t i = 0; i < std::min(costs.size(), costs_max); ++i) {
    const TracedCost& cost = costs[i];
    absl::StrAppendFormat(
        &text, "%3d. %12s %6.1f %% %5dx  %s (%s%s) on %s\n", i + 1, Milliseconds(cost.nanos),
        Percent(cost.nanos, steps_ns), cost.count, cost.name, cost.op,
        cost.bytes > 0 ? StrCat(", ", BytesText(cost.bytes)) : "", ShortTask(cost.task));
  }
  return text;
}

struct Part {
  int64_t nanos = 0;
  int64_t count = 0;
};

std::string PathText(const ClusterTrace::Step& step) {
  constexpr std::pair<PathSegment::Kind, const char*> kKinds[] = {
      {PathSegment::kKernel, "kernels"},
      {PathSegment::kWait, "waiting for other steps"},
      {PathSegment::kQueueing, "queueing: ready, without a thread"},
      {PathSegment::kTransfer, "transfers"},
      {PathSegment::kGap, "gaps: calls, hand-overs"}};
  const TracedRows rows(step);
  std::map<PathSegment::Kind, Part> kinds;
  std::map<PathSegment::Kind, std::map<std::pair<std::string, std::string>, Part>> parts;
  for (const PathSegment& segment : CriticalPath(rows)) {
    for (Part* part : {&kinds[segment.kind], &parts[segment.kind][{segment.what, segment.task}]}) {
      part->nanos += segment.nanos();
      ++part->count;
    }
  }
  const int64_t whole_ns = step.end_ns - step.start_ns;
  std::string text = StrCat("The critical path of the median step (", NameOf(step), ", by ",
                            ShortTask(step.master), ", ", Milliseconds(whole_ns), "):\n");
  for (const auto& [kind, name] : kKinds) {
    if (kinds[kind].count == 0) continue;
    absl::StrAppendFormat(&text, "%6.1f %% %12s  %s\n", Percent(kinds[kind].nanos, whole_ns),
                          Milliseconds(kinds[kind].nanos), name);
    std::vector<std::pair<std::pair<std::string, std::string>, Part>> all(parts[kind].begin(),
                                                                          parts[kind].end());
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& a, const auto& b) { return a.second.nanos > b.second.nanos; });
    Part left;
    for (size_t i = 0; i < all.size(); ++i) {
      const auto& [what, part] = all[i];
      if (i >= kPathRowsMax) {
        left.nanos += part.nanos;
        left.count += part.count;
        continue;
      }
      absl::StrAppendFormat(&text, "    %6.1f %% %12s %4dx  %s on %s\n",
                            Percent(part.nanos, whole_ns), Milliseconds(part.nanos), part.count,
                            what.first, ShortTask(what.second));
    }
    if (left.count == 0) continue;
    absl::StrAppendFormat(&text, "    %6.1f %% %12s %4dx  others\n", Percent(left.nanos, whole_ns),
                          Milliseconds(left.nanos), left.count);
  }
  return text;
}

}  // namespace

std::vector<TracedCost> CostsOf(const ClusterTrace& trace) {
  std::map<std::tuple<std::string, std::string, std::string>, TracedCost> costs;
  const auto add = [&](TracedCost cost) {
    const auto [it, first] = costs.try_emplace({cost.name, cost.op, cost.task}, cost);
    if (first) return;
    it->second.nanos += cost.nanos;
    it->second.bytes += cost.bytes;
    ++it->second.count;
  };
  for (const ClusterTrace::Step& step : trace.steps) {
    const TracedRows rows(step);
    for (size_t i = 0; i < rows.rows().size(); ++i) {
      const TracedRow& row = rows.rows()[i];
      if (rows.TransferInto(i) != nullptr) continue;
      add({.name = row.stats->node,
           .op = row.stats->title(),
           .task = TaskOfDevice(rows.DeviceOf(row)),
           .nanos = row.stats->end_ns - row.stats->start_ns,
           .count = 1});
    }
    for (const TracedTransfer& transfer : rows.transfers()) {
      const std::string from = TaskOfDevice(transfer.from), to = TaskOfDevice(transfer.to);
      const std::string protocol = ProtocolOf(trace, from, to);
      add({.name = StrCat(transfer.tensor,
                          transfer.from.empty() ? "" : StrCat(" from ", ShortTask(from))),
           .op = StrCat("transfer", protocol.empty() ? "" : StrCat(" by ", protocol)),
           .task = to,
           .nanos = transfer.nanos(),
           .count = 1,
           .bytes = transfer.bytes});
    }
  }
  std::vector<TracedCost> sorted;
  for (auto& [key, cost] : costs) sorted.push_back(std::move(cost));
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const TracedCost& a, const TracedCost& b) { return a.nanos > b.nanos; });
  return sorted;
}

const ClusterTrace::Step* MedianStep(const ClusterTrace& trace) {
  struct StepsOfAKind {
    int64_t nanos = 0;
    std::vector<const ClusterTrace::Step*> steps;
  };
  std::map<std::pair<std::vector<std::string>, std::vector<std::string>>, StepsOfAKind> kinds;
  for (const ClusterTrace::Step& step : trace.steps) {
    StepsOfAKind& kind = kinds[{step.fetches, step.targets}];
    kind.nanos += step.end_ns - step.start_ns;
    kind.steps.push_back(&step);
  }
  StepsOfAKind* most = nullptr;
  for (auto& [names, kind] : kinds) {
    if (most == nullptr || kind.nanos > most->nanos) most = &kind;
  }
  if (most == nullptr) return nullptr;
  const auto middle = most->steps.begin() + static_cast<ptrdiff_t>(most->steps.size() / 2);
  std::nth_element(most->steps.begin(), middle, most->steps.end(),
                   [](const auto* a, const auto* b) {
                     return a->end_ns - a->start_ns < b->end_ns - b->start_ns;
                   });
  return *middle;
}

std::string TraceText(const ClusterTrace& trace, const std::map<std::string, TaskClock>& clocks,
                      size_t costs_max) {
  int64_t steps_ns = 0;
  for (const ClusterTrace::Step& step : trace.steps) steps_ns += step.end_ns - step.start_ns;
  std::string text =
      StrCat("Recorded ", trace.steps.size(), trace.steps.size() == 1 ? " step" : " steps", ":\n",
             MastersText(trace), ClocksText(trace, clocks));
  const ClusterTrace::Step* const median = MedianStep(trace);
  if (median == nullptr) return text;
  StrAppend(&text, "\n", CostsText(CostsOf(trace), steps_ns, costs_max), "\n", PathText(*median));
  return text;
}

}  // namespace penstock

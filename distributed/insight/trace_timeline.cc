// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/trace_timeline.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/op/device_name.h"
#include "core/runtime/timeline_label.h"
#include "core/runtime/trace_events.h"
#include "distributed/insight/traced_rows.h"
#include "distributed/insight/words.h"

namespace penstock {
namespace {

using nlohmann::json;

// A wait for a thread that is shorter than this gets no box of its own.
constexpr int64_t kQueueingNanosMin = 10'000;

// A box whose lane is not known yet.
struct PlannedBox {
  std::string lanes;
  TraceEvents::Box box;
  TraceEvents::Place place;
};

std::string ClockText(const TaskClock& clock) {
  if (clock.error_ns < 0) return "clock never compared";
  return absl::StrFormat("clock moved by %+.3f ms, to within %.3f ms",
                         -static_cast<double>(clock.offset_ns) * 1e-6,
                         static_cast<double>(clock.error_ns) * 1e-6);
}

// Returns "CPU:0" for "/job:ps/replica:0/task:0/device:CPU:0", and other texts unchanged.
std::string ShortDevice(const std::string& device) {
  const StatusOr<DeviceName> name = DeviceName::Parse(device);
  return name.ok() && name->type && name->index ? absl::StrCat(*name->type, ":", *name->index)
                                                : device;
}

class Drawing {
 public:
  Drawing(const ClusterTrace& trace, const std::map<std::string, TaskClock>& clocks)
      : trace_(trace), clocks_(clocks), origin_ns_(Origin(trace)), events_(origin_ns_) {}

  std::string Json() {
    for (size_t i = 0; i < trace_.steps.size(); ++i) Plan(i);
    Draw("steps", &steps_);
    for (auto& [task, boxes] : tasks_) {
      const auto clock = clocks_.find(task);
      const std::string more =
          task == trace_.asked || clock == clocks_.end() ? "" : ", " + ClockText(clock->second);
      Draw(ShortTask(task) + more, &boxes);
    }
    for (const auto& [from, to] : arrows_) {
      events_.AddArrow(from->place, from->box.start_ns, to->place, to->box.start_ns);
    }
    return events_.Json();
  }

 private:
  static int64_t Origin(const ClusterTrace& trace) {
    if (trace.steps.empty()) return 0;
    return std::min_element(trace.steps.begin(), trace.steps.end(),
                            [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; })
        ->start_ns;
  }

  double Micros(int64_t at_ns) const { return static_cast<double>(at_ns - origin_ns_) * 1e-3; }

  void Plan(size_t index) {
    const ClusterTrace::Step& step = trace_.steps[index];
    steps_.push_back(
        {ShortTask(step.master),
         {StrCat("step ", index + 1), step.start_ns, step.end_ns,
          json{{"session", step.session}, {"fetches", step.fetches}, {"targets", step.targets}}}});
    const TracedRows rows(step);
    std::vector<const PlannedBox*> planned;  // by row
    for (size_t i = 0; i < rows.rows().size(); ++i) planned.push_back(PlanRow(rows, i, index));
    for (const TracedTransfer& transfer : rows.transfers()) {
      const PlannedBox* const box = PlanTransfer(transfer, index);
      if (transfer.send != TracedTransfer::kNone) arrows_.emplace_back(planned[transfer.send], box);
    }
  }

  // Returns null if the row gets no box of its own, because the box of its transfer shows it.
  const PlannedBox* PlanRow(const TracedRows& rows, size_t index, size_t step) {
    if (rows.TransferInto(index) != nullptr) return nullptr;
    const TracedRow& row = rows.rows()[index];
    const NodeStats& node = *row.stats;
    const std::string device = ShortDevice(rows.DeviceOf(row));
    std::deque<PlannedBox>& boxes = tasks_[TaskOfDevice(rows.DeviceOf(row))];
    if (node.start_ns - node.scheduled_ns >= kQueueingNanosMin) {
      boxes.push_back({device + " queueing",
                       {"ready: " + node.node, node.scheduled_ns, node.start_ns,
                        json{{"op", node.title()}, {"step", step + 1}}}});
    }
    boxes.push_back(
        {row.waits ? device + " waits" : StrCat(device, " thread ", node.thread),
         {node.title(), node.start_ns, node.end_ns,
          json{{"node", TimelineLabel(node)},
               {"step", step + 1},
               {"ready_us", Micros(node.scheduled_ns)},
               {"queued_us", static_cast<double>(node.start_ns - node.scheduled_ns) * 1e-3}}}});
    return &boxes.back();
  }

  const PlannedBox* PlanTransfer(const TracedTransfer& transfer, size_t step) {
    const std::string from = TaskOfDevice(transfer.from), to = TaskOfDevice(transfer.to);
    const auto protocol = trace_.protocols.find({from, to});
    json args = {{"bytes", transfer.bytes},
                 {"from", transfer.from},
                 {"to", transfer.to},
                 {"step", step + 1}};
    if (from == to) {
      args["road"] = "local";
    } else if (protocol != trace_.protocols.end()) {
      args["road"] = protocol->second;
    }
    std::deque<PlannedBox>& boxes = tasks_[to];
    boxes.push_back(
        {"receives", {transfer.tensor, transfer.start_ns, transfer.end_ns, std::move(args)}});
    return &boxes.back();
  }

  void Draw(const std::string& name, std::deque<PlannedBox>* boxes) {
    const int process = events_.AddProcess(name);
    std::vector<PlannedBox*> in_order;
    for (PlannedBox& planned : *boxes) in_order.push_back(&planned);
    std::stable_sort(
        in_order.begin(), in_order.end(),
        [](const PlannedBox* a, const PlannedBox* b) { return a->box.start_ns < b->box.start_ns; });
    for (PlannedBox* planned : in_order) {
      planned->place = events_.Add(process, planned->lanes, planned->box);
    }
  }

  const ClusterTrace& trace_;
  const std::map<std::string, TaskClock>& clocks_;
  const int64_t origin_ns_;
  TraceEvents events_;
  // Deques, because arrows hold pointers to their elements.
  std::deque<PlannedBox> steps_;
  std::map<std::string, std::deque<PlannedBox>> tasks_;
  std::vector<std::pair<const PlannedBox*, const PlannedBox*>> arrows_;
};

}  // namespace

std::string TraceTimeline(const ClusterTrace& trace,
                          const std::map<std::string, TaskClock>& clocks) {
  return Drawing(trace, clocks).Json();
}

}  // namespace penstock

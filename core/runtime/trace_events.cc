// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/trace_events.h"

#include <algorithm>

#include "core/base/status.h"

namespace penstock {

using nlohmann::json;

int TraceEvents::AddProcess(const std::string& name) {
  const int process = static_cast<int>(processes_.size());
  processes_.emplace_back();
  Name("process_name", process, 0, name);
  return process;
}

TraceEvents::Place TraceEvents::Add(int process, const std::string& lanes, const Box& box) {
  std::vector<Lane>& all = processes_[process].lanes[lanes];
  auto lane = std::find_if(all.begin(), all.end(),
                           [&](const Lane& each) { return each.free_from_ns <= box.start_ns; });
  if (lane == all.end()) {
    const int number = ++processes_[process].num_lanes;
    Name("thread_name", process, number, all.empty() ? lanes : StrCat(lanes, " #", all.size() + 1));
    lane = all.insert(all.end(), {number, 0});
  }
  lane->free_from_ns = std::max(box.start_ns, box.end_ns);
  Write({{"name", box.name},
         {"ph", "X"},
         {"pid", process},
         {"tid", lane->number},
         {"ts", Micros(box.start_ns)},
         {"dur", static_cast<double>(std::max<int64_t>(0, box.end_ns - box.start_ns)) * 1e-3},
         {"args", box.args}});
  return {process, lane->number};
}

void TraceEvents::AddArrow(Place from, int64_t from_ns, Place to, int64_t to_ns) {
  const auto end = [&](const char* phase, Place place, int64_t at_ns) {
    return json{{"name", "transfer"}, {"cat", "transfer"},    {"ph", phase},
                {"id", num_arrows_},  {"pid", place.process}, {"tid", place.lane},
                {"ts", Micros(at_ns)}};
  };
  json arrow_end = end("f", to, to_ns);
  arrow_end["bp"] = "e";  // attach the arrow to the box that encloses its end
  Write(end("s", from, from_ns));
  Write(arrow_end);
  ++num_arrows_;
}

void TraceEvents::Name(const char* what, int process, int lane, const std::string& name) {
  Write({{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", lane}, {"args", {{"name", name}}}});
}

void TraceEvents::Write(const json& event) {
  StrAppend(&events_, events_.empty() ? "" : ",\n",
            event.dump(-1, ' ', false, json::error_handler_t::replace));
}

std::string TraceEvents::Json() const {
  return StrCat("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", events_, "\n]}\n");
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// TraceEvents: writes a timeline in Chrome's Trace Event Format, which https://ui.perfetto.dev and
// chrome://tracing show. A timeline has processes; a process has lanes (the format's "tid"), and a
// lane has boxes (events with "ph": "X"). Viewers show overlapping boxes of one lane correctly only
// if they are nested, so Add puts boxes that overlap into separate lanes. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace penstock {

class TraceEvents {
 public:
  struct Box {
    std::string name;
    int64_t start_ns = 0, end_ns = 0;
    nlohmann::json args = nlohmann::json::object();
  };
  struct Place {
    int process = 0, lane = 0;
  };

  // Times are relative to `origin_ns`.
  explicit TraceEvents(int64_t origin_ns) : origin_ns_(origin_ns) {}

  // Adds a process and returns its number: 0, 1, ...
  int AddProcess(const std::string& name);
  // Adds the box to a lane called `lanes` of the process; makes another lane of that name if boxes
  // in all present ones overlap it. REQUIRES: boxes with the same `lanes` are added in the order of
  // their start_ns.
  Place Add(int process, const std::string& lanes, const Box& box);
  // Adds an arrow between two boxes, from the start of `from` to the start of `to`.
  void AddArrow(Place from, int64_t from_ns, Place to, int64_t to_ns);

  // Returns the contents of the file.
  std::string Json() const;

 private:
  struct Lane {
    int number;
    int64_t free_from_ns;
  };
  struct Process {
    int num_lanes = 0;
    std::map<std::string, std::vector<Lane>> lanes;
  };
  void Name(const char* what, int process, int lane, const std::string& name);
  double Micros(int64_t at_ns) const { return static_cast<double>(at_ns - origin_ns_) * 1e-3; }
  void Write(const nlohmann::json& event);

  const int64_t origin_ns_;
  std::vector<Process> processes_;
  int64_t num_arrows_ = 0;
  std::string events_;
};

}  // namespace penstock

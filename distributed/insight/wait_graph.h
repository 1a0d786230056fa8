// SPDX-License-Identifier: Apache-2.0
//
// WaitGraph: which nodes of running steps wait for which others, in a whole cluster, and which of
// them wait in vain.
//
// A wait ends in one of its ways: the tensor comes from the other task; one of the nodes that would
// fill the queue runs. A way is open if it may end without anybody's help, for example because a
// thread computes there; else it is held up behind other waits. A wait is stuck if all its ways are
// held up behind waits that are stuck, or if it has none. Stuck waits so form cycles, or lead to a
// queue that nobody fills or a task that does not answer.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "proto/penstock/insight.pb.h"

namespace penstock {

class WaitGraph {
 public:
  // One way for a wait to end.
  struct Way {
    std::string task;
    uint64_t step_id = 0;
    const wire::UseReport* use = nullptr;  // null: a transfer
    bool open = false;
    std::vector<size_t> behind;  // indices of waits; any of them holds it up
  };
  enum class Missing { kNothing, kTaskSilent, kNotRunning };
  struct Wait {
    std::string task;
    const wire::PartReport* part = nullptr;
    const wire::WaitReport* wait = nullptr;
    std::vector<Way> ways;
    bool stuck = false;
    // For a transfer: what its source lacks.
    Missing missing = Missing::kNothing;

    bool for_resource() const { return wait->has_resource(); }
    // For a queue that nobody fills, say.
    bool for_nobody() const { return for_resource() && stuck && ways.empty(); }
  };
  using ResourceKey = std::tuple<std::string, std::string, std::string>;
  static ResourceKey KeyOf(const wire::ResourceName& name) {
    return {name.device(), name.container(), name.name()};
  }

  // `cluster` is borrowed.
  explicit WaitGraph(const wire::ClusterReport& cluster);

  const std::vector<Wait>& waits() const { return waits_; }
  // Each cycle of stuck waits once, as indices in the order in which one waits for the next. A
  // wait's way that leads on is the one that is held up behind the next.
  std::vector<std::vector<size_t>> Cycles() const;
  // null: there is none.
  const wire::ClusterTask* FindTask(const std::string& name) const;
  const wire::PartReport* FindPart(const std::string& task, uint64_t step_id) const;
  const wire::ResourceReport* FindResource(const wire::ResourceName& name) const;
  // The first stuck wait that holds up wait `i`, and the way that it holds up; {-1, null}: none.
  std::pair<int, const Way*> Next(size_t i) const;

 private:
  void AddTransfer(Wait* wait);
  void AddUses(Wait* wait);
  void MarkStuck();
  bool Dead(const Way& way) const;
  std::vector<size_t> WaitsOf(const std::string& task, uint64_t step_id) const;

  std::map<std::string, const wire::ClusterTask*> tasks_;
  std::map<std::pair<std::string, uint64_t>, const wire::PartReport*> parts_;
  std::map<std::pair<std::string, uint64_t>, std::vector<size_t>> waits_of_;
  std::map<ResourceKey, const wire::ResourceReport*> resources_;
  std::vector<Wait> waits_;
};

// "/job:ps/replica:0/task:1" of a device or a task.
std::string TaskOf(const std::string& device);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// WaitGraph: shows which nodes of running steps wait for which other nodes, in all tasks of a
// cluster, and which of these waits are stuck.
//
// A wait has one or more ways in which it may end: another task sends the tensor, or one of the
// nodes that fill the queue runs. A way is open if no other wait has to end first, for example
// because a thread is computing the tensor. Otherwise other waits hold it up. A wait is stuck if it
// has no way to end, or if stuck waits hold up all its ways. So stuck waits form cycles, or lead to
// a queue that no node fills or to a task that does not answer.
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
  // One way in which a wait may end.
  struct Way {
    std::string task;
    uint64_t step_id = 0;
    const wire::UseReport* use = nullptr;  // null: a transfer
    bool open = false;
    std::vector<size_t> behind;  // indices of the waits that have to end first
  };
  enum class Missing { kNothing, kTaskSilent, kNotRunning };
  struct Wait {
    std::string task;
    const wire::PartReport* part = nullptr;
    const wire::WaitReport* wait = nullptr;
    std::vector<Way> ways;
    bool stuck = false;
    // For a transfer: why its source has not sent.
    Missing missing = Missing::kNothing;

    bool for_resource() const { return wait->has_resource(); }
    // Returns whether the wait is for a resource that no node will change, such as a queue that no
    // node fills.
    bool is_unservable() const { return for_resource() && stuck && ways.empty(); }
  };
  using ResourceKey = std::tuple<std::string, std::string, std::string>;
  static ResourceKey KeyOf(const wire::ResourceName& name) {
    return {name.device(), name.container(), name.name()};
  }

  // `cluster` is borrowed.
  explicit WaitGraph(const wire::ClusterReport& cluster);

  const std::vector<Wait>& waits() const { return waits_; }
  // Returns each cycle of stuck waits once, as indices of waits: each wait is held up by the next
  // one, and the last wait by the first.
  std::vector<std::vector<size_t>> Cycles() const;
  // Return null if there is no such task, part or resource.
  const wire::ClusterTask* FindTask(const std::string& name) const;
  const wire::PartReport* FindPart(const std::string& task, uint64_t step_id) const;
  const wire::ResourceReport* FindResource(const wire::ResourceName& name) const;
  // Returns the first stuck wait that holds up wait `i`, and the way of `i` that it holds up;
  // {-1, null} if there is none.
  std::pair<int, const Way*> Next(size_t i) const;

 private:
  void AddTransfer(Wait* wait);
  void AddUses(Wait* wait);
  void MarkStuck();
  bool IsBlocked(const Way& way) const;
  std::vector<size_t> WaitsOf(const std::string& task, uint64_t step_id) const;

  std::map<std::string, const wire::ClusterTask*> tasks_;
  std::map<std::pair<std::string, uint64_t>, const wire::PartReport*> parts_;
  std::map<std::pair<std::string, uint64_t>, std::vector<size_t>> waits_of_;
  std::map<ResourceKey, const wire::ResourceReport*> resources_;
  std::vector<Wait> waits_;
};

}  // namespace penstock

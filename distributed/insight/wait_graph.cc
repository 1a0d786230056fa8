// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/wait_graph.h"

#include <algorithm>

#include "distributed/insight/words.h"

namespace penstock {
namespace {

// Returns whether a node of kind `use` may end a wait of kind `wait`.
bool Ends(wire::UseReport::Kind use, wire::UseReport::Kind wait) {
  switch (wait) {
    case wire::UseReport::TAKE:
      return use == wire::UseReport::PUT;
    case wire::UseReport::PUT:
      return use == wire::UseReport::TAKE;
    default:
      return use == wait;
  }
}

}  // namespace

WaitGraph::WaitGraph(const wire::ClusterReport& cluster) {
  for (const wire::ClusterTask& task : cluster.task()) {
    tasks_[task.name()] = &task;
    for (const wire::ResourceReport& resource : task.report().resource()) {
      resources_[KeyOf(resource.name())] = &resource;
    }
    for (const wire::PartReport& part : task.report().part()) {
      parts_[{task.name(), part.step_id()}] = &part;
      for (const wire::WaitReport& wait : part.wait()) {
        waits_of_[{task.name(), part.step_id()}].push_back(waits_.size());
        waits_.push_back({.task = task.name(), .part = &part, .wait = &wait});
      }
    }
  }
  for (Wait& wait : waits_) {
    if (!wait.wait->from_device().empty()) {
      AddTransfer(&wait);
    } else if (wait.for_resource() && wait.wait->kind() != wire::UseReport::OTHER) {
      AddUses(&wait);
    } else {
      wait.ways.push_back({.task = wait.task, .step_id = wait.part->step_id(), .open = true});
    }
  }
  MarkStuck();
}

const wire::ClusterTask* WaitGraph::FindTask(const std::string& name) const {
  const auto found = tasks_.find(name);
  return found == tasks_.end() ? nullptr : found->second;
}

const wire::PartReport* WaitGraph::FindPart(const std::string& task, uint64_t step_id) const {
  const auto found = parts_.find({task, step_id});
  return found == parts_.end() ? nullptr : found->second;
}

const wire::ResourceReport* WaitGraph::FindResource(const wire::ResourceName& name) const {
  const auto found = resources_.find(KeyOf(name));
  return found == resources_.end() ? nullptr : found->second;
}

std::vector<size_t> WaitGraph::WaitsOf(const std::string& task, uint64_t step_id) const {
  const auto found = waits_of_.find({task, step_id});
  return found == waits_of_.end() ? std::vector<size_t>() : found->second;
}

// Adds the waits that may hold up a transfer. Reports do not say which nodes of other tasks compute
// the tensor. But transfers within one step never form a cycle, so the transfer finally depends on
// a wait of the same step that is not for a tensor. Adds all such waits.
void WaitGraph::AddTransfer(Wait* wait) {
  const uint64_t step_id = wait->part->step_id();
  Way way{.task = TaskOfDevice(wait->wait->from_device()), .step_id = step_id};
  const wire::ClusterTask* const source = FindTask(way.task);
  const wire::PartReport* const part = FindPart(way.task, step_id);
  if (source == nullptr || !source->has_report()) {
    wait->missing = Missing::kTaskSilent;
  } else if (part == nullptr) {
    wait->missing = Missing::kNotRunning;
  } else {
    for (const auto& [task, known] : tasks_) {
      for (const size_t i : WaitsOf(task, step_id)) {
        if (waits_[i].wait->from_device().empty()) way.behind.push_back(i);
      }
    }
    way.open = part->computing() || way.behind.empty();
  }
  wait->ways.push_back(std::move(way));
}

void WaitGraph::AddUses(Wait* wait) {
  const ResourceKey key = KeyOf(wait->wait->resource());
  for (const auto& [place, part] : parts_) {
    const auto& [task, step_id] = place;
    for (const wire::UseReport& use : part->use()) {
      if (use.state() == wire::UseReport::WAITS && use.kind() == wait->wait->kind()) continue;
      if (!Ends(use.kind(), wait->wait->kind()) || KeyOf(use.resource()) != key) continue;
      Way way{.task = task, .step_id = step_id, .use = &use};
      if (use.state() == wire::UseReport::NOT_HELD_UP) {
        // The node has run, or may run at any time. If it holds a lock, any wait of its step may
        // delay the release of the lock.
        if (use.kind() == wire::UseReport::LOCK && part != wait->part) {
          way.behind = WaitsOf(task, step_id);
          way.open = part->computing() || way.behind.empty();
        } else if (part->computing()) {
          way.open = true;
        } else {
          continue;
        }
      } else {
        const std::string& behind =
            use.state() == wire::UseReport::WAITS ? use.node() : use.behind();
        for (const size_t i : WaitsOf(task, step_id)) {
          if (waits_[i].wait->node() == behind) way.behind.push_back(i);
        }
      }
      wait->ways.push_back(std::move(way));
    }
  }
}

bool WaitGraph::IsBlocked(const Way& way) const {
  if (way.open) return false;
  return way.behind.empty() || std::any_of(way.behind.begin(), way.behind.end(),
                                           [&](size_t i) { return waits_[i].stuck; });
}

// Marks all waits as stuck. Then repeatedly unmarks each wait that has an open way, or a way that
// only unmarked waits hold up, until nothing changes.
void WaitGraph::MarkStuck() {
  for (Wait& wait : waits_) wait.stuck = true;
  for (bool changed = true; changed;) {
    changed = false;
    for (Wait& wait : waits_) {
      if (!wait.stuck) continue;
      wait.stuck = std::all_of(wait.ways.begin(), wait.ways.end(),
                               [&](const Way& way) { return IsBlocked(way); });
      changed |= !wait.stuck;
    }
  }
}

std::pair<int, const WaitGraph::Way*> WaitGraph::Next(size_t i) const {
  for (const Way& way : waits_[i].ways) {
    for (const size_t behind : way.behind) {
      if (waits_[behind].stuck) return {static_cast<int>(behind), &way};
    }
  }
  return {-1, nullptr};
}

std::vector<std::vector<size_t>> WaitGraph::Cycles() const {
  std::vector<std::vector<size_t>> cycles;
  std::vector<int> seen_from(waits_.size(), -1);
  for (size_t start = 0; start < waits_.size(); ++start) {
    if (!waits_[start].stuck) continue;
    std::vector<size_t> path;
    int at = static_cast<int>(start);
    while (at >= 0 && seen_from[at] < 0) {
      seen_from[at] = static_cast<int>(start);
      path.push_back(static_cast<size_t>(at));
      at = Next(static_cast<size_t>(at)).first;
    }
    if (at < 0 || seen_from[at] != static_cast<int>(start)) continue;
    const auto first = std::find(path.begin(), path.end(), static_cast<size_t>(at));
    cycles.emplace_back(first, path.end());
  }
  return cycles;
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// AutoTransport: has several transports, called roads, and uses for each producer the fastest
// one that reaches it. It finds that road when a step first needs the producer, and logs it
// once.
//
// Thread-safe like every Transport. No lock is held while a road or the log is called, because a
// road may answer at once, on the same thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "distributed/transport/transport.h"

namespace penstock {

class AutoTransport final : public Transport {
 public:
  using Log = std::function<void(const std::string& line)>;

  // `roads`: fastest first; the last one reaches every task.
  AutoTransport(std::vector<std::unique_ptr<Transport>> roads, Log log);
  ~AutoTransport() override;

  string_view protocol() const override { return "auto"; }
  TransportCapabilities capabilities() const override;
  std::string RoadFrom(const std::string& producer) override;
  // Roads that cannot serve are logged and not used, except that an error of the last one is
  // returned.
  Status Serve(const TaskId& self, TaskSteps& steps) override;
  void Subscribe(const TaskId& producer, int64_t step_id) override;
  void Unsubscribe(const TaskId& producer, int64_t step_id) override;
  Poller* poller() override;
  void Stop() override;

 private:
  // The road to one producer.
  struct Way {
    TaskId producer;
    Transport* road = nullptr;  // set once it is known
    bool asking = false;
    std::set<int64_t> waiting;  // steps that wait for the road to be known
  };

  // Tries one road after the other, beginning at `index`; `reasons` says why the earlier
  // ones cannot be used.
  void FindRoad(const TaskId& producer, size_t index, const std::string& reasons);
  // Makes the waiting steps and all later ones use the road.
  void Take(const TaskId& producer, size_t index, const std::string& reasons);
  // Makes only the waiting steps use the road.
  void TakeOnce(const TaskId& producer, size_t index);

  const Log log_;
  std::vector<std::unique_ptr<Transport>> roads_;
  std::vector<Status> serves_;  // each road's result of Serve
  TaskSteps* steps_ = nullptr;  // set by Serve
  Mutex mu_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::map<std::string, Way> ways_ ABSL_GUARDED_BY(mu_);  // by task name
};

}  // namespace penstock

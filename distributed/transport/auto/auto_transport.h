// SPDX-License-Identifier: Apache-2.0
//
// AutoTransport: has several transports, the roads, and takes the fastest one that leads to each
// producer. Which one it is, it finds out when a step first needs the producer, and logs once.
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

  // `roads`: the fastest first; the last one leads everywhere.
  AutoTransport(std::vector<std::unique_ptr<Transport>> roads, Log log);
  ~AutoTransport() override;

  string_view protocol() const override { return "auto"; }
  TransportCapabilities capabilities() const override;
  // A road that does not serve is logged and not taken, but for the last.
  Status Serve(const TaskId& self, TaskSteps& steps) override;
  void Subscribe(const TaskId& producer, int64_t step_id) override;
  void Unsubscribe(const TaskId& producer, int64_t step_id) override;
  void Stop() override;

 private:
  // To one producer.
  struct Way {
    TaskId producer;
    Transport* road = nullptr;  // once it is known
    bool asking = false;
    std::set<int64_t> waiting;  // steps that subscribe when the road is known
  };

  // Asks road after road, from `index` on; `reasons` says why those before are not taken.
  void FindRoad(const TaskId& producer, size_t index, const std::string& reasons);
  // Has the waiting steps and all later ones take the road.
  void Take(const TaskId& producer, size_t index, const std::string& reasons);
  // Has the waiting steps take the road.
  void TakeOnce(const TaskId& producer, size_t index);

  const Log log_;
  std::vector<std::unique_ptr<Transport>> roads_;
  std::vector<Status> serves_;  // by road; from Serve on
  TaskSteps* steps_ = nullptr;  // from Serve on
  Mutex mu_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::map<std::string, Way> ways_ ABSL_GUARDED_BY(mu_);  // by task name
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// AutoTransport: combines several transports, and uses the fastest one that reaches a producer. It
// chooses the transport for a producer when a step first needs that producer, and logs the choice
// once. Thread-safe, as every Transport is (distributed/transport/transport.h).
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

  // `transports`: fastest first; the last one reaches every task.
  AutoTransport(std::vector<std::unique_ptr<Transport>> transports, Log log);
  ~AutoTransport() override;

  string_view protocol() const override { return "auto"; }
  TransportCapabilities capabilities() const override;
  std::string ProtocolFrom(const std::string& producer) override;
  // Logs which transports cannot serve, and does not use them. Returns an error only if the last
  // one, which reaches every task, cannot serve.
  Status Serve(const TaskId& self, TaskSteps& steps) override;
  void Subscribe(const TaskId& producer, int64_t step_id) override;
  void Unsubscribe(const TaskId& producer, int64_t step_id) override;
  Poller* poller() override;
  void Stop() override;

 private:
  // The choice for one producer.
  struct Choice {
    TaskId producer;
    Transport* transport = nullptr;  // set once the choice is made
    bool asking = false;
    std::set<int64_t> waiting;  // steps that wait for the choice
  };

  // Tries one transport after the other, beginning at `index`; `reasons` says why the earlier
  // transports cannot be used.
  void FindTransport(const TaskId& producer, size_t index, const std::string& reasons);
  // Chooses a transport for the waiting steps and all later ones.
  void Choose(const TaskId& producer, size_t index, const std::string& reasons);
  // Chooses a transport for the waiting steps only.
  void ChooseOnce(const TaskId& producer, size_t index);

  const Log log_;
  std::vector<std::unique_ptr<Transport>> transports_;
  std::vector<Status> serve_results_;  // result of Serve, by transport
  TaskSteps* steps_ = nullptr;         // set by Serve
  Mutex mu_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::map<std::string, Choice> choices_ ABSL_GUARDED_BY(mu_);  // by task name
};

}  // namespace penstock

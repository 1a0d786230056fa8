// SPDX-License-Identifier: Apache-2.0
//
// SimCall: one call on a simulated network. It ends once: by its answer, by its time limit, or by
// the loss of the connection, whichever comes first.
//
//   SimCall::Start(network, self, task, "Greet", 1'000, std::move(done))
//       ->Ask([](Done answer) { ...; std::move(answer)(status); });
//
// One thread uses it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/base/done.h"
#include "distributed/transport/sim/sim_network.h"

namespace penstock {

class SimCall : public std::enable_shared_from_this<SimCall> {
 public:
  // Answers the call in the process that is called.
  using Serve = std::function<void(Done answer)>;

  // `to`: the task that is called, for its address and for messages.
  static std::shared_ptr<SimCall> Start(SimNetwork& network, const SimEnd& from, const TaskId& to,
                                        std::string what, int64_t timeout_ms, Done done);
  ~SimCall();

  // Sends the request. `serve` runs when it has arrived, and once more if `repeatable` and the
  // network repeats it: the answer to the one that arrives last counts for nothing.
  void Ask(Serve serve, bool repeatable = false);
  void End(const Status& status);

 private:
  SimCall(SimNetwork& network, const SimEnd& from, const TaskId& to, std::string what, Done done)
      : network_(network), from_(from), to_(to), what_(std::move(what)), done_(std::move(done)) {}
  void Arrive(const Serve& serve);

  SimNetwork& network_;
  const SimEnd from_;
  const TaskId to_;
  const std::string what_;
  std::optional<Done> done_;
  DeadlineTimer::Token timeout_;
  uint64_t watch_ = 0;
  bool arrived_ = false;  // the request
};

}  // namespace penstock

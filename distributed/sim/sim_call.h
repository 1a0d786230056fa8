// SPDX-License-Identifier: Apache-2.0
//
// SimCall: one call on a simulated network. It ends once: with its answer, at its timeout, or
// with the loss of the connection, whichever comes first.
//
//   SimCall::Start(network, self, task, "Greet", 1'000, std::move(done))
//       ->Ask([](Done answer) { ...; std::move(answer)(status); });
//
// Used by one thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/base/done.h"
#include "distributed/sim/sim_network.h"

namespace penstock {

class SimCall : public std::enable_shared_from_this<SimCall> {
 public:
  // Handles the call in the called process, and calls `answer` with the result.
  using Serve = std::function<void(Done answer)>;

  // `to`: the called task, for its address and for messages.
  static std::shared_ptr<SimCall> Start(SimNetwork& network, const SimEnd& from, const TaskId& to,
                                        std::string what, int64_t timeout_ms, Done done);
  ~SimCall();

  // Sends the request. `serve` runs when it has arrived. If `repeatable`, the network may
  // repeat the request, so that `serve` runs twice; only the first answer to arrive counts.
  void Ask(Serve serve, bool repeatable = false);
  // Ends the call with `status`. Does nothing if it has ended.
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
  bool arrived_ = false;  // the request has arrived
};

}  // namespace penstock

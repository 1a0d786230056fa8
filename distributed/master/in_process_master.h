// SPDX-License-Identifier: Apache-2.0
//
// InProcessMaster: lets clients in a server's own process use its master without calls over the
// network. In data-parallel training, workers are usually clients of their own task, and a call
// over the network costs more than a small step.
//
//   InProcessMaster direct("127.0.0.1:2222", master, scheduler);
//   direct.Publish(); // clients in this process can now find the master
//   InProcessSessions::New("127.0.0.1:2222", options);      // as NewRemoteSession does
//
// Sessions behave like remote ones: they end when the master ends, not when the InProcessMaster is
// destroyed; later calls return Unavailable. Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "distributed/session/session.h"

namespace penstock {

class Master;
class Scheduler;

class InProcessMaster {
 public:
  // `master` and `scheduler` are borrowed until Close returns.
  InProcessMaster(std::string address, Master& master, Scheduler& scheduler);
  ~InProcessMaster();

  // Makes the master known to InProcessSessions under its address, which no other master of
  // this process has.
  void Publish();
  std::unique_ptr<SessionInterface> NewSession(const SessionOptions& options);

  // Refuses new calls from now on.
  void Refuse();
  // Waits until the calls that still run have returned. REQUIRES: Refuse was called, and
  // Master::Stop, which cancels these calls.
  void Close();

  struct State;

 private:
  const std::shared_ptr<State> state_;
  bool published_ = false;
};

}  // namespace penstock

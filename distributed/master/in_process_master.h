// SPDX-License-Identifier: Apache-2.0
//
// InProcessMaster: lets clients in a server's own process use its master without calls over the
// network. Workers that are clients of their own task are the rule in data-parallel training, and a
// call costs more than a small step.
//
//   InProcessMaster direct("127.0.0.1:2222", master, scheduler);
//   direct.Publish();                                       // its address is known from now on
//   InProcessSessions::New("127.0.0.1:2222", options);      // NewRemoteSession's
//
// Sessions behave as those over the network: they end with the master, not with its object, and
// after that answer Unavailable. Thread-safe.
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

  // Lets InProcessSessions make sessions at the address, which no other of this process has.
  void Publish();
  std::unique_ptr<SessionInterface> NewSession(const SessionOptions& options);

  // No new calls from now on.
  void Refuse();
  // Waits for those under way, which Master::Stop has ended. REQUIRES Refuse.
  void Close();

  struct State;

 private:
  const std::shared_ptr<State> state_;
  bool published_ = false;
};

}  // namespace penstock

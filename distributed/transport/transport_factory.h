// SPDX-License-Identifier: Apache-2.0
//
// TransportFactory: makes transports by the name of their protocol.
//
// A transport's source file adds itself to the global factory with a static initialiser:
//   const bool added = TransportFactory::Global().Add("grpc", MakeGrpcTransport);
// So Global() has the protocols that are linked into the program. Tests may make other factories.
// Thread-safe once main runs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/scheduler.h"
#include "core/base/status.h"
#include "distributed/transport/transport.h"

namespace penstock {

struct GrpcHost;

// Services of the task's process that are lent to its transport. Borrowed as long as the
// transport lives.
//
// An Env is not among them. The transports that read a clock (shm, verbs) poll real memory and
// adapters on threads of their own, so they use Env::Real(). Simulated tasks use the transport of
// distributed/sim, which no factory makes.
struct TransportHost {
  // The task's gRPC server, before it listens: a transport may register a service with it. Null
  // in a process without one.
  GrpcHost* grpc = nullptr;
  // The scheduler by which a transport waits for other closures of the task.
  Scheduler* scheduler = &Scheduler::Real();
  // Called with the log lines that say which transport tensors take; null: the lines go to stderr.
  std::function<void(const std::string& line)> log = nullptr;
};

class TransportFactory {
 public:
  using Maker = StatusOr<std::unique_ptr<Transport>> (*)(const TransportHost& host);

  static TransportFactory& Global();

  // Adds a protocol and returns true. REQUIRES: the protocol was not added before.
  bool Add(const std::string& protocol, Maker maker);
  // Makes a transport. InvalidArgument lists the known protocols; FailedPrecondition says what
  // `host` lacks.
  StatusOr<std::unique_ptr<Transport>> Make(const std::string& protocol,
                                            const TransportHost& host) const;
  std::vector<std::string> protocols() const;

 private:
  std::map<std::string, Maker> makers_;
};

}  // namespace penstock

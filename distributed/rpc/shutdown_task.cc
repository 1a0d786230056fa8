// SPDX-License-Identifier: Apache-2.0
//
// ShutdownTask, which tells another task to end.
#include <memory>

#include "core/base/join.h"
#include "distributed/calls/channel.h"
#include "distributed/rpc/grpc_worker_client.h"
#include "distributed/security/credentials.h"
#include "distributed/rpc/server.h"

namespace penstock {

Status ShutdownTask(const std::string& address, const std::string& reason, int64_t timeout_ms,
                    Env& env) {
  ASSIGN_OR_RETURN(const HostPort parsed, HostPort::Parse(address));
  ASSIGN_OR_RETURN(const auto credentials, ProcessCredentials());
  CompletionLoop loop(std::make_unique<grpc::CompletionQueue>(), 1);
  Channels channels{KeepaliveOptions(), credentials};
  const auto client = NewGrpcWorkerClient({.name = "the task", .address = parsed.ToString()},
                                          channels, env, Scheduler::Real(), loop);
  Wait wait(Scheduler::Real(), "a task to be told to end");
  client->Shutdown(reason, {.timeout_ms = timeout_ms}, wait.done());
  const Status status = wait.Get();
  loop.Stop();
  return status;
}

}  // namespace penstock

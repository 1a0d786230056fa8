// SPDX-License-Identifier: Apache-2.0
//
// ReplicaService: the gRPC service that serves a task's Replica and Witness to other
// processes; and the client that calls it.
#pragma once

#include <memory>
#include <string>

#include "core/base/scheduler.h"
#include "distributed/replica/replica.h"
#include "distributed/replica/witness.h"
#include "distributed/calls/channel.h"
#include "distributed/calls/completion_loop.h"
#include "proto/penstock/replica.grpc.pb.h"

namespace penstock {

class ReplicaService {
 public:
  struct Options {
    Replica* replica = nullptr;  // borrowed; null: the task has no other replica
    Scheduler* threads = nullptr;
  };
  // Returns the service, to be registered with the server.
  grpc::Service& service() { return service_; }
  // Begins to take calls. REQUIRES: the server runs. The loop polls `queue`.
  void Listen(const Options& options, CompletionLoop& loop, grpc::ServerCompletionQueue& queue);

 private:
  using Service = wire::Replica::WithRawMethod_Push<wire::Replica::AsyncService>;

  Options options_;
  Witness witness_;
  Service service_;
};

// Makes a client that calls the task at "host:port". Borrows the channels and the loop.
std::unique_ptr<ReplicaClient> NewGrpcReplicaClient(const std::string& address, Channels& channels,
                                                    CompletionLoop& loop);

}  // namespace penstock

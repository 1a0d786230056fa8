// SPDX-License-Identifier: Apache-2.0
//
// HealthService: answers gRPC's health checks (grpc.health.v1), on the threads of the server's
// loop. gRPC's own health service would poll the server's connections with two more threads: they
// receive most calls, and then have to wake the loop's thread for each.
//
// Thread-safe.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>

#include <memory>
#include <set>
#include <string>

#include "core/base/mutex.h"
#include "distributed/calls/completion_loop.h"
#include "proto/grpc/health.grpc.pb.h"

namespace penstock {

class HealthService {
 public:
  using Service = grpc::health::v1::Health::AsyncService;

  // `services` are the names that clients may ask for, besides "" for the whole server.
  explicit HealthService(std::set<std::string> services);
  ~HealthService();  // REQUIRES: the loop has been stopped

  // Returns the service, to be registered with the server.
  grpc::Service& service() { return service_; }
  // Begins to take calls. REQUIRES: the server runs. The loop polls `queue`.
  void Listen(CompletionLoop& loop, grpc::ServerCompletionQueue& queue);
  // Sets the status of all services, and sends it to the clients that watch them. At first the
  // server does not serve.
  void SetServing(bool serving);
  // Ends all calls of Watch, also those that come later, so that they do not delay the end of the
  // server.
  void EndWatches();

 private:
  class Watch;
  using Response = grpc::health::v1::HealthCheckResponse;

  bool Knows(const std::string& service) const;
  Response::ServingStatus StatusOf(const std::string& service) const;
  // Adds a call of Watch. Returns false if calls of Watch end at once.
  bool Add(std::shared_ptr<Watch> watch);
  void Remove(const std::shared_ptr<Watch>& watch);
  std::set<std::shared_ptr<Watch>> watches() const;

  const std::set<std::string> services_;
  Service service_;
  mutable Mutex mu_;
  bool serving_ ABSL_GUARDED_BY(mu_) = false;
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
  std::set<std::shared_ptr<Watch>> watches_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock

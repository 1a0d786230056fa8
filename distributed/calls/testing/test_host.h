// SPDX-License-Identifier: Apache-2.0
//
// TestHost: for tests, a gRPC server on a loopback port, with the loop that polls its calls.
#pragma once

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/base/check.h"
#include "distributed/calls/grpc_host.h"

namespace penstock {

class TestHost {
 public:
  // Makes a host at `address`; port 0 means any free port. Services may be registered with
  // host().builder before Start.
  explicit TestHost(const std::string& address = "127.0.0.1:0") : channels_(Quick()) {
    builder_.emplace();
    SetServerArguments(Quick(), &*builder_);
    builder_->AddListeningPort(address, grpc::InsecureServerCredentials(), &port_);
    queue_ = builder_->AddCompletionQueue();
    host_ = {.channels = &channels_, .builder = &*builder_, .queue = queue_.get()};
  }
  ~TestHost() { Stop(); }

  GrpcHost& host() { return host_; }
  CompletionLoop& loop() { return *loop_; }
  std::string address() const { return StrCat("127.0.0.1:", port_); }

  void Start() {
    server_ = builder_->BuildAndStart();
    CHECK(server_ != nullptr && port_ != 0, "no port for the test");
    loop_.emplace(std::move(queue_), 1);
    host_.builder = nullptr;
    host_.loop = &*loop_;
  }
  // Stops the server and breaks all connections.
  void Stop() {
    if (!loop_.has_value() || std::exchange(stopped_, true)) return;
    server_->Shutdown(std::chrono::system_clock::now());
    loop_->Stop();
  }

 private:
  static KeepaliveOptions Quick() { return {.time_ms = 500, .timeout_ms = 500}; }

  Channels channels_;
  GrpcHost host_;
  int port_ = 0;
  std::optional<grpc::ServerBuilder> builder_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;  // null after Start
  std::unique_ptr<grpc::Server> server_;
  std::optional<CompletionLoop> loop_;
  bool stopped_ = false;
};

}  // namespace penstock

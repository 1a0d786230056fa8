// SPDX-License-Identifier: Apache-2.0
//
// MasterClient: for tests of a server, a client of TensorFlow's session protocol that sends exactly
// the requests that the test makes. It has one session at a time. Every call ends within kTimeout.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <chrono>
#include <memory>
#include <string>

#include "absl/strings/strip.h"
#include "core/graph/graph_proto.h"
#include "distributed/calls/testing/call_bytes.h"
#include "proto/tensorflow/master_service.grpc.pb.h"

namespace penstock {

class MasterClient {
 public:
  using Stub = tensorflow::MasterService::Stub;
  static constexpr std::chrono::seconds kTimeout{10};

  // Connects to `target`, "grpc://host:port".
  explicit MasterClient(const std::string& target)
      : channel_(grpc::CreateChannel(std::string(absl::StripPrefix(target, "grpc://")),
                                     grpc::InsecureChannelCredentials())),
        stub_(tensorflow::MasterService::NewStub(channel_)) {}

  Stub& stub() { return *stub_; }
  // Return the handle and version of the session that Create made.
  const std::string& handle() const { return handle_; }
  int64_t version() const { return version_; }

  template <class Request, class Response>
  grpc::Status Send(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                    const Request& request, Response* response) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kTimeout);
    return (stub_.get()->*method)(&context, request, response);
  }

  grpc::Status Create(const Graph& graph, const tensorflow::ConfigProto& config = {}) {
    tensorflow::CreateSessionRequest request;
    ExportGraph(graph, request.mutable_graph_def());
    *request.mutable_config() = config;
    tensorflow::CreateSessionResponse response;
    const grpc::Status status = Send(&Stub::CreateSession, request, &response);
    handle_ = response.session_handle();
    version_ = response.graph_version();
    return status;
  }

  // Returns a request for a step of the session; the server will put errors into the answer's body.
  // Fetches nothing if `fetch` is "".
  tensorflow::RunStepRequest Step(const std::string& fetch) const {
    tensorflow::RunStepRequest request;
    request.set_session_handle(handle_);
    request.set_store_errors_in_response_body(true);
    if (!fetch.empty()) request.add_fetch(fetch);
    return request;
  }

  // Calls a method, such as "RunStep", with `bytes` as the request.
  grpc::Status SendBytes(const std::string& method, const std::string& bytes) {
    return CallBytes(channel_, "/tensorflow.MasterService/" + method, bytes);
  }

 private:
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<Stub> stub_;
  std::string handle_;
  int64_t version_ = 0;
};

}  // namespace penstock

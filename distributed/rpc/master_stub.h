// SPDX-License-Identifier: Apache-2.0
//
// MasterStub: a client's side of the connection with a master. It connects, limits the time of
// calls, and names the master in errors. Every call blocks its thread, and the same thread polls
// for the answer, which is fastest for one call at a time.
// MasterAddressOf, ConnectToMaster: find and connect to a master before there is a stub.
//
// Thread-safe, except CreateSession: no other call may run before it has succeeded.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "distributed/calls/status_proto.h"
#include "distributed/rpc/tensor_message.h"
#include "distributed/session/session.h"
#include "proto/tensorflow/master_service.grpc.pb.h"

namespace penstock {

// The timeout of a session's last call to a server: one that finds out why the server did not
// answer, or tells it that a partial run has ended.
inline constexpr int64_t kLastAttemptMs = 1'000;

// Returns the "host:port" of a target. InvalidArgument if it is not of the form grpc://host:port.
StatusOr<std::string> MasterAddressOf(const std::string& target);

struct MasterChannel {
  std::shared_ptr<grpc::Channel> channel;
  bool connected = false;
};
// Waits until the server at `address` answers, for at most `timeout_ms`. Returns the channel even
// if there is no answer. Unauthenticated if the server's credentials do not fit those of this
// process.
StatusOr<MasterChannel> ConnectToMaster(const std::string& target, const std::string& address,
                                        int64_t timeout_ms);

class MasterStub {
 public:
  using Stub = tensorflow::MasterService::Stub;
  template <class Request, class Response>
  using Method = grpc::Status (Stub::*)(grpc::ClientContext*, const Request&, Response*);

  // `target`: "grpc://" and the address. `operation_timeout_ms`: of the session; 0: none.
  MasterStub(std::string target, std::string address, int64_t operation_timeout_ms);

  // Connects with the master, and creates a session there. DeadlineExceeded if no server answers.
  Status CreateSession(const tensorflow::CreateSessionRequest& request,
                       tensorflow::CreateSessionResponse* response);

  // Makes a call, and blocks until it ends.
  template <class Request, class Response>
  Status Call(Method<Request, Response> method, const Request& request, Response* response) {
    grpc::ClientContext context;
    return FromGrpc(Answer(method, request, response, &context, 0), name_);
  }
  // Does the same as Call, with a context and a timeout, and returns gRPC's status. A `timeout_ms`
  // of 0 means the session's operation timeout.
  template <class Request, class Response>
  grpc::Status Answer(Method<Request, Response> method, const Request& request, Response* response,
                      grpc::ClientContext* context, int64_t timeout_ms) {
    LimitCall(timeout_ms, context);
    return (stub_.get()->*method)(context, request, response);
  }
  // Sends the message in `writer` to a method that runs a step, and returns the answer. The call
  // ends with the step, or a little after its deadline. `names`: the step's names, for errors of
  // the connection. `payloads`, if not null, receives the payloads of an error in the answer.
  StatusOr<grpc::ByteBuffer> CallStep(const char* method,
                                      absl::FunctionRef<std::vector<std::string>()> names,
                                      const RunOptions& options, TensorMessageWriter* writer,
                                      std::string* payloads = nullptr);

  // Returns the timeout of a step with these options; 0: none.
  int64_t TimeoutMs(const RunOptions& options) const {
    return options.timeout_ms > 0 ? options.timeout_ms : operation_timeout_ms_;
  }
  // Returns an Internal error that says that the master's answer is malformed. Returns
  // ResourceExhausted unchanged: it means that this process has no memory for a tensor.
  Status BrokenAnswer(const Status& status) const;
  // Returns the name at the start of error texts: the target, and after CreateSession the task as
  // well.
  const std::string& name() const { return name_; }

 private:
  void LimitCall(int64_t timeout_ms, grpc::ClientContext* context) const;

  const std::string target_;
  const std::string address_;
  const int64_t operation_timeout_ms_;
  std::string name_;
  std::unique_ptr<Stub> stub_;
  std::unique_ptr<grpc::GenericStub> steps_;
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/replica_service.h"

#include <grpcpp/support/byte_buffer.h>

#include <functional>
#include <utility>

#include "distributed/calls/unary_call.h"

namespace penstock {
namespace {

Status NoReplica() {
  return FailedPrecondition(
      "this task was started without replicas: give all tasks the same --ps_replica_hosts");
}

class GrpcReplicaClient final : public ReplicaClient {
 public:
  GrpcReplicaClient(std::string address, Channels& channels, CompletionLoop& loop)
      : address_(std::move(address)), channels_(channels), loop_(loop) {}

  void Greet(const wire::GreetRequest& request, int64_t timeout_ms,
             Answer<wire::GreetResponse> answer) override {
    Call(&Stub::PrepareAsyncGreet, request, timeout_ms, std::move(answer));
  }
  void Follow(const wire::FollowRequest& request, int64_t timeout_ms,
              Answer<wire::FollowResponse> answer) override {
    Call(&Stub::PrepareAsyncFollow, request, timeout_ms, std::move(answer));
  }
  void Push(const wire::PushRequest& request, int64_t timeout_ms,
            Answer<wire::PushResponse> answer) override {
    Call(&Stub::PrepareAsyncPush, request, timeout_ms, std::move(answer));
  }
  void Claim(const wire::ClaimRequest& request, int64_t timeout_ms,
             Answer<wire::ClaimResponse> answer) override {
    Call(&Stub::PrepareAsyncClaim, request, timeout_ms, std::move(answer));
  }

 private:
  using Stub = wire::Replica::Stub;
  template <class Request, class Response>
  using Prepare = std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> (Stub::*)(
      grpc::ClientContext*, const Request&, grpc::CompletionQueue*);

  template <class Request, class Response>
  void Call(Prepare<Request, Response> prepare, const Request& request, int64_t timeout_ms,
            Answer<Response> answer) {
    const auto stub = std::make_shared<Stub>(channels_.To(address_));
    ClientCall<Response>::Start(
        loop_, address_, timeout_ms,
        [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
          return (stub.get()->*prepare)(context, request, queue);
        },
        [stub, answer = std::move(answer)](const Status& status, Response& response) mutable {
          if (!status.ok()) return std::move(answer)(status);
          std::move(answer)(std::move(response));
        });
  }

  const std::string address_;
  Channels& channels_;
  CompletionLoop& loop_;
};

}  // namespace

void ReplicaService::Listen(const Options& options, CompletionLoop& loop,
                            grpc::ServerCompletionQueue& queue) {
  options_ = options;
  const CallListener<Service> listen(service_, loop, queue);
  listen(&Service::RequestGreet, [this](auto call) {
    if (options_.replica == nullptr) return call->Finish(NoReplica());
    call->response() = options_.replica->Greet(call->request());
    call->Finish(OkStatus());
  });
  listen(&Service::RequestFollow, [this](auto call) {
    if (options_.replica == nullptr) return call->Finish(NoReplica());
    call->Finish(options_.replica->Follow(call->request()).status());
  });
  listen(&Service::RequestClaim, [this](auto call) {
    auto response = witness_.Claim(call->request());
    if (response.ok()) call->response() = *std::move(response);
    call->Finish(response.status());
  });
  // Parsing and applying a push takes too long for the polling thread.
  listen(&Service::RequestPush, [this](auto call) {
    options_.threads->Schedule([this, call] {
      wire::PushRequest request;
      Status status = Parse(&call->request(), &request);
      if (status.ok() && options_.replica == nullptr) status = NoReplica();
      wire::PushResponse response;
      if (status.ok()) {
        auto taken = options_.replica->Push(request);
        if (taken.ok()) response = *std::move(taken);
        status = taken.status();
      }
      call->response() = BytesOf(response);
      call->Finish(status);
    });
  });
}

std::unique_ptr<ReplicaClient> NewGrpcReplicaClient(const std::string& address, Channels& channels,
                                                    CompletionLoop& loop) {
  return std::make_unique<GrpcReplicaClient>(address, channels, loop);
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/refused_calls.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server_builder.h>

#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "distributed/calls/completion_loop.h"
#include "distributed/calls/status_proto.h"

namespace penstock {
namespace {

// One call. Its messages are not read.
class RefusedCall final : public Operation, public std::enable_shared_from_this<RefusedCall> {
 public:
  // Accepts one call; when it arrives, accepts the next one, until the server shuts down.
  static void Listen(grpc::AsyncGenericService& service, CompletionLoop& loop,
                     grpc::ServerCompletionQueue& queue) {
    const auto call = std::make_shared<RefusedCall>(service, loop, queue);
    service.RequestCall(&call->context_, &call->stream_, &queue, &queue,
                        call->received_.TagFor(call));
  }

  RefusedCall(grpc::AsyncGenericService& service, CompletionLoop& loop,
              grpc::ServerCompletionQueue& queue)
      : service_(service), loop_(loop), queue_(queue), stream_(&context_) {}

  void Cancel() override { context_.TryCancel(); }

 private:
  void Received(bool ok) {
    if (!ok) return;  // the server is shutting down
    Listen(service_, loop_, queue_);
    begun_ = loop_.Begin(this);
    const Status refusal =
        begun_ ? RefusalOf(context_.method()) : Unavailable("the server is shutting down");
    stream_.Finish(ToGrpc(refusal), finished_.TagFor(shared_from_this()));
  }
  void Finished(bool) {
    if (begun_) loop_.End(this);
  }

  grpc::AsyncGenericService& service_;
  CompletionLoop& loop_;
  grpc::ServerCompletionQueue& queue_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_;
  EventOf<RefusedCall> received_{&RefusedCall::Received};
  EventOf<RefusedCall> finished_{&RefusedCall::Finished};
  bool begun_ = false;
};

}  // namespace

Status RefusalOf(const std::string& method) {
  if (!absl::StartsWith(method, "/tensorflow.")) {
    return Unimplemented("this server, a task of Penstock, has no method '", method, "'");
  }
  return Unimplemented(
      "this server is a task of Penstock, which runs graphs: connect to it with "
      "tf.compat.v1.Session(\"grpc://host:port\"). It does not serve TensorFlow 2's eager "
      "execution (tf.config.experimental_connect_to_cluster, ParameterServerStrategy), and its "
      "cluster cannot contain servers of TensorFlow. The method called was ",
      method);
}

RefusedCalls::RefusedCalls() : service_(std::make_unique<grpc::AsyncGenericService>()) {}
RefusedCalls::~RefusedCalls() = default;

void RefusedCalls::Register(grpc::ServerBuilder* builder) {
  builder->RegisterAsyncGenericService(service_.get());
}

void RefusedCalls::Listen(CompletionLoop& loop, grpc::ServerCompletionQueue& queue) {
  RefusedCall::Listen(*service_, loop, queue);
}

}  // namespace penstock

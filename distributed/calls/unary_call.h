// SPDX-License-Identifier: Apache-2.0
//
// UnaryCall: one incoming call, which its handler may answer at any later time; CallListener
// accepts them. ClientCall: one outgoing call, which ends with a callback. Neither blocks a thread.
#pragma once

#include <grpc/support/time.h>
#include <grpcpp/client_context.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/async_unary_call.h>
#include <grpcpp/support/byte_buffer.h>

#include <functional>
#include <memory>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "distributed/calls/completion_loop.h"
#include "distributed/calls/status_proto.h"

namespace penstock {

template <class Service, class Request, class Response>
class UnaryCall final : public Operation,
                        public std::enable_shared_from_this<UnaryCall<Service, Request, Response>> {
 public:
  using Method = void (Service::*)(grpc::ServerContext*, Request*,
                                   grpc::ServerAsyncResponseWriter<Response>*,
                                   grpc::CompletionQueue*, grpc::ServerCompletionQueue*, void*);
  // Runs on the loop's threads and must not block. The handler, or work that it starts,
  // calls Finish once.
  using Handler = std::function<void(std::shared_ptr<UnaryCall>)>;

  struct Endpoint {
    Service* service;
    Method method;
    CompletionLoop* loop;
    grpc::ServerCompletionQueue* queue;  // the loop's queue
    Handler handler;
  };

  // Accepts one call of the method; when it arrives, accepts the next one, until the server
  // shuts down.
  static void Listen(std::shared_ptr<const Endpoint> endpoint) {
    auto call = std::make_shared<UnaryCall>(std::move(endpoint));
    const Endpoint& e = *call->endpoint_;
    call->context_.AsyncNotifyWhenDone(call->done_.TagFor(call));
    (e.service->*e.method)(&call->context_, &call->request_, &call->writer_, e.queue, e.queue,
                           call->received_.TagFor(call));
  }

  explicit UnaryCall(std::shared_ptr<const Endpoint> endpoint)
      : endpoint_(std::move(endpoint)), writer_(&context_) {}

  Request& request() { return request_; }
  const Request& request() const { return request_; }
  Response& response() { return response_; }
  grpc::ServerContext& context() { return context_; }

  // Sets a function that is called, without locks, if the client gives up the call before Finish.
  // Calls the function at once if the client has given up already.
  void OnCancel(std::function<void()> cancelled) {
    {
      MutexLock lock(mu_);
      if (!given_up_) {
        cancelled_ = std::move(cancelled);
        return;
      }
    }
    cancelled();
  }

  // Returns whether the client has given up the call.
  bool given_up() {
    MutexLock lock(mu_);
    return given_up_;
  }

  // Answers the call: with response() if `status` is OK, else with the error. Must be called once.
  void Finish(const Status& status) {
    std::function<void()> dropped;
    {
      MutexLock lock(mu_);
      dropped = std::exchange(cancelled_, nullptr);
    }
    void* const tag = finished_.TagFor(this->shared_from_this());
    if (status.ok()) {
      writer_.Finish(response_, grpc::Status::OK, tag);
    } else {
      writer_.FinishWithError(ToGrpc(status), tag);
    }
  }

  void Cancel() override { context_.TryCancel(); }

 private:
  void Received(bool ok) {
    if (!ok) return done_.Forget();  // the server is shutting down
    Listen(endpoint_);
    if (!endpoint_->loop->Begin(this)) {
      refused_ = true;
      return Finish(Unavailable("the server is shutting down"));
    }
    endpoint_->handler(this->shared_from_this());
  }
  void Finished(bool) {
    if (!refused_) endpoint_->loop->End(this);
  }
  // Called when the call is over: this server has answered, or the client has given up.
  void CallEnded(bool) {
    if (!context_.IsCancelled()) return;
    std::function<void()> cancelled;
    {
      MutexLock lock(mu_);
      given_up_ = true;
      cancelled = std::exchange(cancelled_, nullptr);
    }
    if (cancelled) cancelled();
  }

  const std::shared_ptr<const Endpoint> endpoint_;
  grpc::ServerContext context_;
  Request request_;
  Response response_;
  grpc::ServerAsyncResponseWriter<Response> writer_;
  EventOf<UnaryCall> received_{&UnaryCall::Received};
  EventOf<UnaryCall> finished_{&UnaryCall::Finished};
  EventOf<UnaryCall> done_{&UnaryCall::CallEnded};
  bool refused_ = false;
  Mutex mu_;
  bool given_up_ ABSL_GUARDED_BY(mu_) = false;
  std::function<void()> cancelled_ ABSL_GUARDED_BY(mu_);
};

// Accepts calls of the methods of one service. The queue is the loop's queue.
//
//   const CallListener<AsyncService> listen(service_, loop, queue);
//   listen(&AsyncService::RequestPing, [this](auto call) { call->Finish(Ping(call->request())); });
template <class Service>
class CallListener {
 public:
  CallListener(Service& service, CompletionLoop& loop, grpc::ServerCompletionQueue& queue)
      : service_(service), loop_(loop), queue_(queue) {}

  // Accepts calls of one method until the server shuts down. The method's request and response are
  // those of the call that `handler` gets (UnaryCall::Handler). Generated services declare each
  // method in a base class of its own.
  template <class Base, class Request, class Response, class Handler>
  void operator()(void (Base::*method)(grpc::ServerContext*, Request*,
                                       grpc::ServerAsyncResponseWriter<Response>*,
                                       grpc::CompletionQueue*, grpc::ServerCompletionQueue*, void*),
                  Handler handler) const {
    using Call = UnaryCall<Service, Request, Response>;
    Call::Listen(std::make_shared<const typename Call::Endpoint>(
        typename Call::Endpoint{&service_, method, &loop_, &queue_, std::move(handler)}));
  }

 private:
  Service& service_;
  CompletionLoop& loop_;
  grpc::ServerCompletionQueue& queue_;
};

// Parses a message that was received as bytes, and clears `bytes`. gRPC itself would parse it on a
// polling thread; a handler may call this on any thread. InvalidArgument if it is malformed.
template <class Message>
Status Parse(grpc::ByteBuffer* bytes, Message* message) {
  const grpc::Status parsed = grpc::SerializationTraits<Message>::Deserialize(bytes, message);
  bytes->Clear();
  return parsed.ok() ? OkStatus() : InvalidArgument("malformed message");
}
// Returns the serialized message.
template <class Message>
grpc::ByteBuffer BytesOf(const Message& message) {
  grpc::ByteBuffer bytes;
  bool own = false;
  CHECK(grpc::SerializationTraits<Message>::Serialize(message, &bytes, &own).ok());
  return bytes;
}

// Sets the deadline of a call to `timeout_ms` from now, by the monotonic clock.
inline void SetTimeout(int64_t timeout_ms, grpc::ClientContext* context) {
  context->set_deadline(
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(timeout_ms, GPR_TIMESPAN)));
}

template <class Response>
class ClientCall final : public Event, public Operation {
 public:
  using Reader = std::unique_ptr<grpc::ClientAsyncResponseReader<Response>>;
  using Ended = absl::AnyInvocable<void(const Status&, Response&) &&>;

  // Starts a call. `prepare` makes the reader: stub->PrepareAsyncX(context, request, queue). Errors
  // name `task`. The call object lives until `ended` is called.
  static void Start(CompletionLoop& loop, const std::string& task, int64_t timeout_ms,
                    absl::FunctionRef<Reader(grpc::ClientContext*, grpc::CompletionQueue*)> prepare,
                    Ended ended) {
    auto* const call = new ClientCall(loop, task, std::move(ended));
    SetTimeout(timeout_ms, &call->context_);
    if (!loop.Begin(call)) {
      Response none;
      std::move(call->ended_)(Cancelled("this process is shutting down"), none);
      delete call;
      return;
    }
    call->reader_ = prepare(&call->context_, &loop.queue());
    call->reader_->StartCall();
    call->reader_->Finish(&call->response_, &call->status_, call->tag());
  }

  void Proceed(bool) override {
    std::move(ended_)(FromGrpc(status_, task_), response_);
    loop_.End(this);
    delete this;
  }
  void Cancel() override { context_.TryCancel(); }

 private:
  ClientCall(CompletionLoop& loop, const std::string& task, Ended ended)
      : loop_(loop), task_(task), ended_(std::move(ended)) {}

  CompletionLoop& loop_;
  const std::string task_;
  grpc::ClientContext context_;
  Response response_;
  grpc::Status status_;
  Reader reader_;
  Ended ended_;
};

}  // namespace penstock

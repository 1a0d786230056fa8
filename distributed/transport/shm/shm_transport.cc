// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/shm/shm_transport.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/env.h"
#include "distributed/calls/unary_call.h"
#include "distributed/transport/shm/shm_sink.h"
#include "distributed/transport/transport_factory.h"

namespace penstock {
namespace {

using MeetCall = UnaryCall<wire::SharedMemory::AsyncService, wire::MeetRequest, wire::MeetResponse>;

}  // namespace

ShmTransport::ShmTransport(GrpcHost& host)
    : host_(host),
      loop_(Env::Real(), "penstock-shm"),
      streams_(
          [this](const TaskId& producer) {
            return std::make_shared<ShmStream>(
                self_, producer, *steps_, [this](const ShmStream* lost) { streams_.Forget(lost); },
                Env::Real().NowNanos());
          },
          [this](const std::shared_ptr<ShmStream>& stream) { Open(stream); }) {
  host_.builder->RegisterService(&service_);
}

ShmTransport::~ShmTransport() { Stop(); }

Status ShmTransport::Serve(const TaskId& self, TaskSteps& steps) {
  self_ = self;
  steps_ = &steps;
  ASSIGN_OR_RETURN(identity_, HostIdentity::Own());
  // The name is random, so that no other process can guess it and bind it first.
  Env& env = Env::Real();
  socket_name_ = absl::StrFormat("penstock-%016x%016x", env.RandomU64(), env.RandomU64());
  ASSIGN_OR_RETURN(UniqueFd listener, ListenAbstract(socket_name_));
  RETURN_IF_ERROR(loop_.Start(std::move(listener), [this](UniqueFd accepted) {
    (void)loop_.Add(
        std::make_shared<ShmSink>(std::move(accepted), self_, *steps_, Env::Real().NowNanos()));
  }));
  MeetCall::Listen(std::make_shared<const MeetCall::Endpoint>(MeetCall::Endpoint{
      &service_, &Service::RequestMeet, host_.loop, host_.queue,
      [this](auto call) { call->Finish(AnswerMeet(call->request(), &call->response())); }}));
  return OkStatus();
}

Status ShmTransport::AnswerMeet(const wire::MeetRequest& request,
                                wire::MeetResponse* response) const {
  if (request.incarnation() != self_.incarnation) {
    return Aborted(self_.ToString(), " has restarted");
  }
  response->set_boot_id(identity_.boot_id);
  response->set_network_namespace(identity_.network_namespace);
  response->set_socket(socket_name_);
  return OkStatus();
}

void ShmTransport::Open(const std::shared_ptr<ShmStream>& stream) {
  using Call = ClientCall<wire::MeetResponse>;
  const TaskId& producer = stream->producer();
  wire::MeetRequest request;
  request.set_incarnation(producer.incarnation);
  const auto stub = wire::SharedMemory::NewStub(host_.channels->To(producer.address));
  Call::Start(
      *host_.loop, "", kHandshakeNanosMax / 1'000'000,
      [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
        return stub->PrepareAsyncMeet(context, request, queue);
      },
      [this, stream](const Status& status, wire::MeetResponse& response) {
        const Status joined = status.ok() ? Join(stream, response) : status;
        if (joined.ok()) return;
        stream->MarkLost(absl::IsUnimplemented(joined)
                             ? FailedPrecondition("it does not offer shared memory")
                             : joined);
      });
}

Status ShmTransport::Join(const std::shared_ptr<ShmStream>& stream,
                          const wire::MeetResponse& producer) {
  RETURN_IF_ERROR(identity_.Compare({producer.boot_id(), producer.network_namespace()}));
  RETURN_IF_ERROR(stream->Connect(producer.socket()));
  return loop_.Add(stream) ? OkStatus() : Cancelled("this task is shutting down");
}

void ShmTransport::Subscribe(const TaskId& producer, int64_t step_id) {
  const Status subscribed = streams_.Subscribe(producer, step_id);
  if (!subscribed.ok()) steps_->Fail(step_id, subscribed);
}

void ShmTransport::Stop() { loop_.Stop(); }

namespace {

StatusOr<std::unique_ptr<Transport>> Make(const TransportHost& host) {
  if (host.grpc == nullptr) return FailedPrecondition("protocol shm: this process has no server");
  return std::make_unique<ShmTransport>(*host.grpc);
}

const bool added [[maybe_unused]] = TransportFactory::Global().Add("shm", Make);

}  // namespace

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/verbs/verbs_transport.h"

#include <cstdio>
#include <utility>

#include "core/base/env.h"
#include "distributed/calls/unary_call.h"
#include "distributed/transport/transport_factory.h"
#include "distributed/transport/verbs/rings.h"
#include "distributed/transport/verbs/verbs_sink.h"

namespace penstock {
namespace {

using ConnectCall =
    UnaryCall<wire::Verbs::AsyncService, wire::VerbsConnectRequest, wire::VerbsConnectResponse>;

constexpr int64_t kConnectMillisMax = 10'000;

}  // namespace

VerbsTransport::VerbsTransport(GrpcHost& host, const VerbsSettings& settings, Log log)
    : host_(host),
      settings_(settings),
      log_(std::move(log)),
      loop_(Env::Real(), "penstock-verbs"),
      streams_([this](const TaskId& producer) { return MakeStream(producer); },
               [this](const std::shared_ptr<VerbsStream>& stream) { Open(stream); }) {
  host_.builder->RegisterService(&service_);
}

VerbsTransport::~VerbsTransport() { Stop(); }

Status VerbsTransport::Serve(const TaskId& self, TaskSteps& steps) {
  self_ = self;
  steps_ = &steps;
  serve_status_ = OpenDevice();
  // Registers the service in any case, so that consumers get an answer even if this task cannot use
  // RDMA.
  ConnectCall::Listen(std::make_shared<const ConnectCall::Endpoint>(ConnectCall::Endpoint{
      &service_, &Service::RequestConnect, host_.loop, host_.queue,
      [this](auto call) { call->Finish(AnswerConnect(call->request(), &call->response())); }}));
  return serve_status_;
}

Status VerbsTransport::OpenDevice() {
  ASSIGN_OR_RETURN(device_, VerbsDevice::Open(settings_));
  memory_ = RegisteredMemory::Of(device_);
  RETURN_IF_ERROR(memory_->RegisterFirstRegion());
  RETURN_IF_ERROR(loop_.Start());
  keep_alive_ = Scheduler::Real().StartThread("penstock-verbs-ping", [this] { KeepAlive(); });
  log_(StrCat("RDMA: ", device_->Describe()));
  return OkStatus();
}

Status VerbsTransport::AnswerConnect(const wire::VerbsConnectRequest& request,
                                     wire::VerbsConnectResponse* response) {
  if (request.incarnation() != self_.incarnation) {
    return Aborted(self_.ToString(), " has restarted");
  }
  if (!serve_status_.ok()) return FailedPrecondition("it has no RDMA: ", serve_status_.message());
  if (request.consumer().empty()) return InvalidArgument("a consumer without a name");
  ASSIGN_OR_RETURN(const VerbsEndpoint other, VerbsEndpoint::Parse(request.endpoint()));
  ASSIGN_OR_RETURN(
      std::unique_ptr<QueuePair> pair,
      QueuePair::Create(device_, settings_, kVerbsTensorRingBytes, kVerbsCommandRingBytes));
  RETURN_IF_ERROR(pair->Connect(other, Env::Real().NowNanos()));
  pair->own().ToProto(response->mutable_endpoint());
  const bool added = Add(
      std::make_shared<VerbsSink>(std::move(pair), request.consumer(), *steps_, device_, memory_));
  return added ? OkStatus() : Unavailable(self_.ToString(), " is shutting down");
}

StatusOr<std::shared_ptr<VerbsStream>> VerbsTransport::MakeStream(const TaskId& producer) {
  RETURN_IF_ERROR(serve_status_);
  ASSIGN_OR_RETURN(
      std::unique_ptr<QueuePair> pair,
      QueuePair::Create(device_, settings_, kVerbsCommandRingBytes, kVerbsTensorRingBytes));
  return std::make_shared<VerbsStream>(std::move(pair), producer, *steps_, memory_,
                                       [this](const VerbsStream* lost) { streams_.Forget(lost); });
}

void VerbsTransport::Open(const std::shared_ptr<VerbsStream>& stream) {
  using Call = ClientCall<wire::VerbsConnectResponse>;
  const TaskId& producer = stream->producer();
  wire::VerbsConnectRequest request;
  request.set_incarnation(producer.incarnation);
  request.set_consumer(self_.name);
  stream->endpoint().ToProto(request.mutable_endpoint());
  const auto stub = wire::Verbs::NewStub(host_.channels->To(producer.address));
  Call::Start(
      *host_.loop, "", kConnectMillisMax,
      [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
        return stub->PrepareAsyncConnect(context, request, queue);
      },
      [this, stream](const Status& status, wire::VerbsConnectResponse& response) {
        const Status joined = status.ok() ? Join(stream, response) : status;
        if (joined.ok()) return;
        stream->MarkLost(
            absl::IsUnimplemented(joined) ? FailedPrecondition("it does not offer RDMA") : joined);
      });
}

Status VerbsTransport::Join(const std::shared_ptr<VerbsStream>& stream,
                            const wire::VerbsConnectResponse& answer) {
  ASSIGN_OR_RETURN(const VerbsEndpoint other, VerbsEndpoint::Parse(answer.endpoint()));
  RETURN_IF_ERROR(stream->Connect(other, Env::Real().NowNanos()));
  return Add(stream) ? OkStatus() : Cancelled("this task is shutting down");
}

void VerbsTransport::Subscribe(const TaskId& producer, int64_t step_id) {
  const Status subscribed = streams_.Subscribe(producer, step_id);
  if (subscribed.ok()) return;
  steps_->Fail(step_id, FailedPrecondition("--protocol=verbs: no RDMA with ", producer.ToString(),
                                           ": ", subscribed.message()));
}

bool VerbsTransport::Add(std::shared_ptr<VerbsEnd> end) {
  if (!loop_.Add(end)) return false;
  MutexLock lock(ends_mu_);
  ends_.push_back(end);
  return true;
}

void VerbsTransport::KeepAlive() {
  MutexLock lock(ends_mu_);
  while (!stopping_) {
    const int64_t now_ns = Env::Real().NowNanos();
    std::erase_if(ends_, [](const std::weak_ptr<VerbsEnd>& end) { return end.expired(); });
    const std::vector<std::weak_ptr<VerbsEnd>> ends = ends_;
    lock.Unlock();
    for (const auto& end : ends) {
      if (const std::shared_ptr<VerbsEnd> alive = end.lock()) alive->KeepAlive(now_ns);
    }
    lock.Lock();
    stopping_changed_.WaitUntil(ends_mu_, now_ns + QueuePair::kPingNanos,
                                [this]()
                                    ABSL_EXCLUSIVE_LOCKS_REQUIRED(ends_mu_) { return stopping_; });
  }
}

void VerbsTransport::Stop() {
  {
    MutexLock lock(ends_mu_);
    stopping_ = true;
  }
  stopping_changed_.NotifyAll();
  keep_alive_.reset();
  loop_.Stop();
}

namespace {

void LogToStderr(const std::string& line) { std::fprintf(stderr, "penstock: %s\n", line.c_str()); }

StatusOr<std::unique_ptr<Transport>> Make(const TransportHost& host) {
  if (host.grpc == nullptr) {
    return FailedPrecondition("protocol verbs: this process has no server");
  }
  ASSIGN_OR_RETURN(const VerbsSettings settings, VerbsSettings::FromEnvironment());
  return std::make_unique<VerbsTransport>(*host.grpc, settings,
                                          host.log == nullptr ? LogToStderr : host.log);
}

const bool added [[maybe_unused]] = TransportFactory::Global().Add("verbs", Make);

}  // namespace

}  // namespace penstock

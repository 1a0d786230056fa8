// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/health_service.h"

#include <utility>

#include "core/base/check.h"
#include "core/base/status.h"
#include "distributed/calls/status_proto.h"
#include "distributed/calls/unary_call.h"

namespace penstock {
namespace {

// The longest name of a service that a client may ask for; gRPC's own health service has the same
// limit.
constexpr size_t kServiceNameMax = 200;

Status CheckName(const std::string& service) {
  if (service.size() <= kServiceNameMax) return OkStatus();
  return InvalidArgument("a service name of ", service.size(), " bytes; at most ", kServiceNameMax);
}

}  // namespace

// One call of Watch. It sends the status of a service at once, and again after each change.
class HealthService::Watch final : public Operation, public std::enable_shared_from_this<Watch> {
 public:
  // Accepts one call; when it arrives, accepts the next one, until the server shuts down.
  static void Listen(HealthService& health, CompletionLoop& loop,
                     grpc::ServerCompletionQueue& queue) {
    const auto call = std::make_shared<Watch>(health, loop, queue);
    call->context_.AsyncNotifyWhenDone(call->done_.TagFor(call));
    health.service_.RequestWatch(&call->context_, &call->request_, &call->writer_, &queue, &queue,
                                 call->received_.TagFor(call));
  }

  Watch(HealthService& health, CompletionLoop& loop, grpc::ServerCompletionQueue& queue)
      : health_(health), loop_(loop), queue_(queue), writer_(&context_) {}

  void Cancel() override { context_.TryCancel(); }

  // Sends the current status, unless it was sent before.
  void Update() {
    MutexLock lock(mu_);
    Write();
  }

  // Ends the call with `status`. The first status counts.
  void End(const Status& status) {
    MutexLock lock(mu_);
    if (ending_) return;
    ending_ = true;
    status_ = status;
    if (!writing_) Finish();
  }

 private:
  void Received(bool ok) {
    if (!ok) return done_.Forget();  // the server is shutting down
    Listen(health_, loop_, queue_);
    begun_ = loop_.Begin(this);
    if (!begun_ || !health_.Add(shared_from_this())) {
      return End(Unavailable("the server is shutting down"));
    }
    const Status named = CheckName(request_.service());
    if (!named.ok()) {
      request_.Clear();  // it would stay as long as the call
      return End(named);
    }
    Update();
  }

  void Write() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const Response::ServingStatus status = health_.StatusOf(request_.service());
    if (writing_ || ending_ || status == sent_) return;
    sent_ = status;
    writing_ = true;
    Response response;
    response.set_status(status);
    writer_.Write(response, written_.TagFor(shared_from_this()));
  }

  void Written(bool ok) {
    MutexLock lock(mu_);
    writing_ = false;
    if (ending_) return Finish();
    if (ok) Write();  // if it has failed, the call has ended, and CallEnded is called
  }

  void Finish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    writer_.Finish(ToGrpc(status_), finished_.TagFor(shared_from_this()));
  }

  // Called when the client has ended the call, or Finish has.
  void CallEnded(bool) { End(Cancelled("the client does not watch any more")); }

  void Finished(bool) {
    health_.Remove(shared_from_this());
    if (begun_) loop_.End(this);
  }

  HealthService& health_;
  CompletionLoop& loop_;
  grpc::ServerCompletionQueue& queue_;
  grpc::ServerContext context_;
  grpc::health::v1::HealthCheckRequest request_;
  grpc::ServerAsyncWriter<Response> writer_;
  EventOf<Watch> received_{&Watch::Received};
  EventOf<Watch> written_{&Watch::Written};
  EventOf<Watch> finished_{&Watch::Finished};
  EventOf<Watch> done_{&Watch::CallEnded};
  bool begun_ = false;

  Mutex mu_;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
  Status status_ ABSL_GUARDED_BY(mu_);
  Response::ServingStatus sent_ ABSL_GUARDED_BY(mu_) = Response::UNKNOWN;  // never sent
};

HealthService::HealthService(std::set<std::string> services) : services_(std::move(services)) {}

HealthService::~HealthService() { CHECK(watches().empty(), "a client still watches"); }

void HealthService::Listen(CompletionLoop& loop, grpc::ServerCompletionQueue& queue) {
  const CallListener<Service> listen(service_, loop, queue);
  listen(&Service::RequestCheck, [this](auto call) {
    const std::string& service = call->request().service();
    const Status named = CheckName(service);
    if (!named.ok()) return call->Finish(named);
    if (!Knows(service)) return call->Finish(NotFound("no service '", service, "'"));
    call->response().set_status(StatusOf(service));
    call->Finish(OkStatus());
  });
  Watch::Listen(*this, loop, queue);
}

void HealthService::SetServing(bool serving) {
  {
    MutexLock lock(mu_);
    serving_ = serving;
  }
  for (const auto& watch : watches()) watch->Update();
}

void HealthService::EndWatches() {
  {
    MutexLock lock(mu_);
    ending_ = true;
  }
  for (const auto& watch : watches()) watch->End(Unavailable("the server is shutting down"));
}

bool HealthService::Knows(const std::string& service) const {
  return service.empty() || services_.count(service) > 0;
}

HealthService::Response::ServingStatus HealthService::StatusOf(const std::string& service) const {
  if (!Knows(service)) return Response::SERVICE_UNKNOWN;
  MutexLock lock(mu_);
  return serving_ ? Response::SERVING : Response::NOT_SERVING;
}

bool HealthService::Add(std::shared_ptr<Watch> watch) {
  MutexLock lock(mu_);
  if (ending_) return false;
  watches_.insert(std::move(watch));
  return true;
}

void HealthService::Remove(const std::shared_ptr<Watch>& watch) {
  MutexLock lock(mu_);
  watches_.erase(watch);
}

std::set<std::shared_ptr<HealthService::Watch>> HealthService::watches() const {
  MutexLock lock(mu_);
  return watches_;
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/grpc/grpc_transport.h"

#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/async_stream.h>
#include <malloc.h>

#include <set>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "distributed/calls/status_proto.h"
#include "distributed/transport/grpc/exchange_frame.h"
#include "distributed/transport/transport_factory.h"

namespace penstock {
namespace {

// gRPC receives into memory from malloc, in blocks of up to some MB. By default malloc maps and
// unmaps each block, so that every page of a tensor causes a page fault, and a large tensor takes a
// third longer (tools/bench --only=transfer). These settings make malloc keep the memory: at most
// 128 MiB, and 64 MiB more for each further arena. They apply to the entire process, because malloc
// has no settings for a part of it.
void KeepReceiveMemory() {
  static const bool once [[maybe_unused]] = [] {
    return mallopt(M_MMAP_THRESHOLD, 32 << 20) != 0 && mallopt(M_TRIM_THRESHOLD, 128 << 20) != 0;
  }();
}

}  // namespace

class ExchangeStream final : public Operation, public std::enable_shared_from_this<ExchangeStream> {
 public:
  ExchangeStream(GrpcTransport& transport, const TaskId& producer)
      : transport_(transport),
        producer_(producer),
        channel_(transport.host_.channels->To(producer.address)),
        stub_(channel_),
        reader_(*transport.steps_) {}

  const TaskId& producer() const { return producer_; }

  void Open() {
    CompletionLoop& loop = *transport_.host_.loop;
    if (!loop.Begin(this)) return MarkLost(Cancelled("this process is shutting down"));
    stream_ = stub_.PrepareCall(&context_, "/penstock.wire.TensorExchange/Exchange", &loop.queue());
    stream_->StartCall(started_.TagFor(shared_from_this()));
  }

  // Subscribes to a step. Returns false if the stream is lost.
  bool Subscribe(int64_t step_id) {
    MutexLock lock(mu_);
    if (lost_) return false;
    steps_.insert(step_id);
    pending_.push_back(step_id);
    if (open_ && !writing_) Write();
    return true;
  }
  void Unsubscribe(int64_t step_id) {
    MutexLock lock(mu_);
    steps_.erase(step_id);
  }
  void Cancel() override { context_.TryCancel(); }

 private:
  void Started(bool ok) {
    if (!ok) return Finish();
    stream_->Read(&incoming_, read_.TagFor(shared_from_this()));
    MutexLock lock(mu_);
    open_ = true;
    Write();
  }

  void Write() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    wire::ExchangeRequest request;
    if (!introduced_) {
      introduced_ = true;
      request.mutable_consumer()->set_task(transport_.self_.name);
      request.mutable_consumer()->set_incarnation(transport_.self_.incarnation);
      request.mutable_consumer()->set_address(transport_.self_.address);
      request.set_incarnation(producer_.incarnation);
    } else if (pending_.empty()) {
      return;
    }
    for (const int64_t step_id : pending_) request.add_subscribe(static_cast<uint64_t>(step_id));
    pending_.clear();
    writing_ = true;
    const grpc::Slice bytes(request.SerializeAsString());
    stream_->Write(grpc::ByteBuffer(&bytes, 1), written_.TagFor(shared_from_this()));
  }

  void Written(bool ok) {
    MutexLock lock(mu_);
    writing_ = false;
    // If the write failed, the read fails as well. After the end of the stream, no write may begin.
    if (ok && !lost_) Write();
  }

  void Read(bool ok) {
    if (!ok) return Finish();
    std::vector<ReceivedTensor> received;
    std::vector<RefusedStep> refused;
    const auto wanted = [this](int64_t step_id) {
      MutexLock lock(mu_);
      return steps_.contains(step_id);
    };
    const Status status = reader_.Read(incoming_, wanted, &received, &refused);
    incoming_.Clear();
    if (!status.ok()) {
      malformed_ = status;
      context_.TryCancel();
      return Finish();
    }
    stream_->Read(&incoming_, read_.TagFor(shared_from_this()));
    for (ReceivedTensor& r : received) {
      transport_.steps_->Deliver(r.step_id, r.key, std::move(r.value), r.is_dead);
    }
    for (const RefusedStep& r : refused) transport_.steps_->Fail(r.step_id, r.why);
  }

  void Finish() { stream_->Finish(&status_, finished_.TagFor(shared_from_this())); }

  void Finished(bool) {
    const Status why = !malformed_.ok() ? malformed_ : FromGrpc(status_, "");
    // Uses Unavailable even if the status is OK: then the producer is shutting down.
    const StatusCode code =
        absl::IsAborted(why) || absl::IsDataLoss(why) ? why.code() : StatusCode::kUnavailable;
    MarkLost(Status(code, StrCat("lost the connection to ", producer_.ToString(),
                                 why.ok() ? "" : ": ", why.message())));
    transport_.host_.loop->End(this);
  }

  void MarkLost(const Status& why) {
    const auto self = shared_from_this();
    transport_.Forget(this);
    std::set<int64_t> steps;
    {
      MutexLock lock(mu_);
      lost_ = true;
      steps.swap(steps_);
    }
    for (const int64_t step_id : steps) transport_.steps_->Fail(step_id, why);
  }

  GrpcTransport& transport_;
  const TaskId producer_;
  const std::shared_ptr<grpc::Channel> channel_;
  grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>> stream_;
  EventOf<ExchangeStream> started_{&ExchangeStream::Started};
  EventOf<ExchangeStream> read_{&ExchangeStream::Read};
  EventOf<ExchangeStream> written_{&ExchangeStream::Written};
  EventOf<ExchangeStream> finished_{&ExchangeStream::Finished};
  grpc::ByteBuffer incoming_;
  FrameReader reader_;  // used by Read only
  Status malformed_;
  grpc::Status status_;

  Mutex mu_ ABSL_ACQUIRED_AFTER(transport_.mu_);
  std::set<int64_t> steps_ ABSL_GUARDED_BY(mu_);       // subscribed steps
  std::vector<int64_t> pending_ ABSL_GUARDED_BY(mu_);  // subscriptions not yet sent to the producer
  bool open_ ABSL_GUARDED_BY(mu_) = false;
  bool introduced_ ABSL_GUARDED_BY(mu_) = false;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool lost_ ABSL_GUARDED_BY(mu_) = false;
};

GrpcTransport::GrpcTransport(GrpcHost& host) : host_(host) {
  KeepReceiveMemory();
  host_.builder->RegisterService(&service_);
}

GrpcTransport::~GrpcTransport() = default;

Status GrpcTransport::Serve(const TaskId& self, TaskSteps& steps) {
  self_ = self;
  steps_ = &steps;
  ExchangeSink::Listen(
      std::make_shared<const ExchangeSink::Endpoint>(ExchangeSink::Endpoint{.service = &service_,
                                                                            .loop = host_.loop,
                                                                            .queue = host_.queue,
                                                                            .steps = steps_,
                                                                            .self = self_}));
  return OkStatus();
}

void GrpcTransport::Subscribe(const TaskId& producer, int64_t step_id) {
  std::shared_ptr<ExchangeStream> opened;
  {
    MutexLock lock(mu_);
    std::shared_ptr<ExchangeStream>& stream = streams_[producer.name];
    // A stream to another incarnation stays open only for the steps that use it already.
    const bool usable = stream != nullptr && stream->producer() == producer;
    if (usable && stream->Subscribe(step_id)) return;
    stream = opened = std::make_shared<ExchangeStream>(*this, producer);
    opened->Subscribe(step_id);
  }
  opened->Open();
}

void GrpcTransport::Unsubscribe(const TaskId& producer, int64_t step_id) {
  std::shared_ptr<ExchangeStream> stream;
  {
    MutexLock lock(mu_);
    const auto found = streams_.find(producer.name);
    if (found == streams_.end()) return;
    stream = found->second;
  }
  stream->Unsubscribe(step_id);
}

void GrpcTransport::Forget(const ExchangeStream* stream) {
  MutexLock lock(mu_);
  const auto found = streams_.find(stream->producer().name);
  if (found != streams_.end() && found->second.get() == stream) streams_.erase(found);
}

void GrpcTransport::Stop() {
  std::vector<std::shared_ptr<ExchangeStream>> streams;
  {
    MutexLock lock(mu_);
    for (const auto& [name, stream] : streams_) streams.push_back(stream);
  }
  for (const auto& stream : streams) stream->Cancel();
}

namespace {

StatusOr<std::unique_ptr<Transport>> Make(const TransportHost& host) {
  if (host.grpc == nullptr) return FailedPrecondition("protocol grpc: this process has no server");
  return std::make_unique<GrpcTransport>(*host.grpc);
}

const bool added [[maybe_unused]] = TransportFactory::Global().Add("grpc", Make);

}  // namespace

}  // namespace penstock

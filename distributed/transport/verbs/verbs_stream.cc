// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/verbs/verbs_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/check.h"
#include "core/base/env.h"

namespace penstock {
namespace {

constexpr int kMessagesPerCall = 64;

constexpr CannotConnectText kNoWay = {"--protocol=verbs: no RDMA",
                                      "or choose --protocol=auto or grpc in all tasks"};

}  // namespace

// A Landing that asks the consumer for the tensor's allocator. If that is the CPU allocator, it
// uses registered memory instead, which is CPU memory, too.
class VerbsStream::InRegistered final : public Landing {
 public:
  InRegistered(Allocator& memory, Landing& landing) : memory_(memory), landing_(landing) {}

  Allocator& AllocatorFor(int64_t step_id, const HashedKey& key, DType dtype,
                          const Shape& shape) override {
    Allocator& wanted = landing_.AllocatorFor(step_id, key, dtype, shape);
    in_place_ = &wanted == &CpuAllocator();
    return in_place_ ? memory_ : wanted;
  }
  bool in_place() const { return in_place_; }

 private:
  Allocator& memory_;
  Landing& landing_;
  bool in_place_ = false;
};

VerbsStream::VerbsStream(std::unique_ptr<QueuePair> pair, const TaskId& producer, TaskSteps& steps,
                         std::shared_ptr<RegisteredMemory> memory, Lost lost)
    : VerbsEnd(std::move(pair)),
      producer_(producer),
      steps_(steps),
      memory_(std::move(memory)),
      when_lost_(std::move(lost)) {
  MutexLock lock(mu_);
  reader_.emplace(pair_->in_ring(), steps_);
  commands_.emplace(pair_->out_ring());
}

VerbsStream::~VerbsStream() {
  MutexLock lock(mu_);
  pair_.reset();  // ends its reads before the memory that they write to is freed
}

VerbsEndpoint VerbsStream::endpoint() {
  MutexLock lock(mu_);
  return pair_ == nullptr ? VerbsEndpoint{} : pair_->own();
}

Status VerbsStream::Connect(const VerbsEndpoint& other, int64_t now_ns) {
  MutexLock lock(mu_);
  if (pair_ == nullptr) return subscriptions_.lost();
  connected_ns_ = now_ns;
  RETURN_IF_ERROR(pair_->Connect(other, now_ns));
  RETURN_IF_ERROR(pair_->Ping(now_ns));
  return FlushCommands();
}

void VerbsStream::WhenOpen(Transport::Reached opened) {
  std::optional<Status> status;
  {
    MutexLock lock(mu_);
    status = subscriptions_.WhenOpen(&opened);
  }
  if (status.has_value()) std::move(opened)(*status);
}

bool VerbsStream::Subscribe(int64_t step_id) {
  MutexLock lock(mu_);
  if (!subscriptions_.Add(step_id)) return false;
  const Status flushed = FlushCommands();
  if (!flushed.ok()) broken_ = flushed;
  return true;
}

void VerbsStream::Unsubscribe(int64_t step_id) {
  MutexLock lock(mu_);
  subscriptions_.Remove(step_id);
}

bool VerbsStream::Wants(int64_t step_id) {
  MutexLock lock(mu_);
  return subscriptions_.Wants(step_id);
}

void VerbsStream::SendCommand(const Command& command) {
  MutexLock lock(mu_);
  subscriptions_.AddCommand(command);
}

Status VerbsStream::FlushCommands() {
  if (pair_ == nullptr) return OkStatus();
  RETURN_IF_ERROR(WriteCommands(*commands_, &subscriptions_.unwritten()));
  return pair_->Flush();
}

bool VerbsStream::Advance() {
  Status broken;
  int ended = 0;
  bool worked = false, heard = false;
  {
    MutexLock lock(mu_);
    if (pair_ == nullptr) return false;
    worked = TakeWork(Env::Real().NowNanos());
    broken = broken_;
    ended = std::exchange(ended_reads_, 0);
    heard = pair_->has_heard();
  }
  if (heard && !std::exchange(open_, true)) MarkOpen();
  // Even if the connection has broken, messages that the producer sent before are valid.
  const StatusOr<bool> read = ReadMessages();
  if (read.ok() && *read) worked = true;
  if (read.ok() && broken.ok()) EndReads(ended);
  Status status = read.ok() && broken.ok() ? StartReads() : read.status();
  {
    MutexLock lock(mu_);
    if (status.ok()) status = broken_;
    if (status.ok() && worked) status = pair_->Confirm();
    if (status.ok() && worked) status = FlushCommands();
  }
  if (!status.ok()) MarkLost(status);
  return worked && status.ok();
}

void VerbsStream::MarkOpen() {
  Subscriptions::Calls opened;
  {
    MutexLock lock(mu_);
    opened = subscriptions_.MarkOpen();
  }
  Subscriptions::Call(std::move(opened), OkStatus());
}

StatusOr<bool> VerbsStream::ReadMessages() {
  const auto wants = [this](int64_t step_id) { return Wants(step_id); };
  TensorRecordReader::Received received;
  int count = 0;
  for (; count < kMessagesPerCall; ++count) {
    ASSIGN_OR_RETURN(const bool read, reader_->Read(wants, &received));
    if (!read) break;
    for (auto& t : received.tensors) {
      steps_.Deliver(t.step_id, t.key, std::move(t.value), t.is_dead);
    }
    for (const auto& r : received.refused) steps_.Fail(r.step_id, r.why);
    for (TensorOffer& offer : reader_->TakeOffers()) offers_.push_back(std::move(offer));
    received = {};
  }
  return count > 0;
}

Status VerbsStream::StartReads() {
  while (true) {
    if (readings_.empty() || readings_.back().begun == readings_.back().offer.fields.total_bytes) {
      ASSIGN_OR_RETURN(const bool begun, BeginReading());
      if (!begun) return OkStatus();
    }
    Reading& reading = readings_.back();
    const TensorFields& fields = reading.offer.fields;
    const uint64_t bytes =
        std::min<uint64_t>(QueuePair::kReadBytesMax, fields.total_bytes - reading.begun);
    MutexLock lock(mu_);
    if (!pair_->CanRead()) return OkStatus();
    RETURN_IF_ERROR(pair_->Read(reading.to + reading.begun, reading.local_key,
                                fields.address + reading.begun, fields.address_key, bytes));
    reading.begun += bytes;
  }
}

StatusOr<bool> VerbsStream::BeginReading() {
  while (!offers_.empty()) {
    const uint64_t bytes = offers_.front().fields.total_bytes;
    if (!readings_.empty() && reading_bytes_ + bytes > kReadingBytesMax) return false;
    TensorOffer offer = std::move(offers_.front());
    offers_.pop_front();
    const Command taken{Command::kDone, offer.fields.offer};
    if (!Wants(offer.fields.step_id)) {
      SendCommand(taken);
      continue;
    }
    StatusOr<Reading> reading = MakeReading(offer);
    if (!reading.ok()) {
      FailReceiving(offer, reading.status());
      SendCommand(taken);
      continue;
    }
    reading_bytes_ += bytes;
    readings_.push_back(*std::move(reading));
    return true;
  }
  return false;
}

StatusOr<VerbsStream::Reading> VerbsStream::MakeReading(TensorOffer offer) {
  const size_t bytes = offer.fields.total_bytes;
  InRegistered landing(*memory_, steps_);
  ASSIGN_OR_RETURN(IncomingTensor tensor,
                   IncomingTensor::Begin(offer.fields.step_id, offer.key, offer.header(), landing));
  Reading reading{std::move(offer), std::move(tensor), Tensor(), nullptr, 0};
  if (landing.in_place()) {
    reading.to = reading.tensor.Next(bytes);
  } else {
    const Shape shape({static_cast<int64_t>(bytes)});
    ASSIGN_OR_RETURN(reading.bounce, Tensor::Make(*memory_, DType::kUint8, shape));
    reading.to = static_cast<char*>(reading.bounce.mutable_raw_data());
  }
  const auto keys = memory_->Find(reading.to, bytes);
  CHECK(keys.has_value(), "registered memory without a key");
  reading.local_key = keys->local;
  return reading;
}

void VerbsStream::EndReads(int count) {
  for (; count > 0; --count) {
    CHECK(!readings_.empty());
    Reading& reading = readings_.front();
    const uint64_t bytes = reading.offer.fields.total_bytes;
    reading.ended += std::min<uint64_t>(QueuePair::kReadBytesMax, bytes - reading.ended);
    if (reading.ended < bytes) continue;
    reading_bytes_ -= bytes;
    Reading whole = std::move(reading);
    readings_.pop_front();
    Finish(std::move(whole));
  }
}

void VerbsStream::Finish(Reading reading) {
  const TensorFields& fields = reading.offer.fields;
  SendCommand({Command::kDone, fields.offer});
  if (!Wants(fields.step_id)) return;
  if (reading.bounce.valid()) {
    std::memcpy(reading.tensor.Next(fields.total_bytes), reading.to, fields.total_bytes);
  }
  const bool is_dead = reading.tensor.is_dead();
  StatusOr<Tensor> value = std::move(reading.tensor).Finish();
  if (!value.ok()) return FailReceiving(reading.offer, value.status());
  steps_.Deliver(fields.step_id, reading.offer.key, *std::move(value), is_dead);
}

void VerbsStream::FailReceiving(const TensorOffer& offer, const Status& why) {
  steps_.Fail(offer.fields.step_id,
              Annotate(why, StrCat("receiving '", offer.key.key().tensor, "'")));
}

bool VerbsStream::Tick(int64_t now_ns) {
  Status status;
  {
    MutexLock lock(mu_);
    if (pair_ == nullptr) return false;
    status = broken_;
    ticked_ns_ = now_ns;
    if (status.ok() && !polled_ && !pair_->HasEvents()) status = pair_->KeepAlive(now_ns);
  }
  if (!open_ && now_ns - connected_ns_ > kFirstMessageNanosMax) {
    status = Unavailable("no answer within ", kFirstMessageNanosMax / 1'000'000'000, " s");
  }
  if (!status.ok()) MarkLost(status);
  return status.ok();
}

void VerbsStream::MarkLost(const Status& why) {
  const auto self = shared_from_this();
  Status reason = why;
  if (connected_ns_ != 0 && !open_ && absl::IsUnavailable(why)) {
    // The producer has answered over gRPC, so the RDMA path must be the problem.
    reason = FailedPrecondition("RDMA packets do not reach it (", why.message(),
                                "): check --verbs_device and --verbs_gid_index in both tasks");
  }
  const Status status = DescribeLost(producer_, reason, kNoWay);
  when_lost_(this);
  std::unique_ptr<QueuePair> pair;
  std::optional<Subscriptions::Ended> ended;
  {
    MutexLock lock(mu_);
    ended = subscriptions_.MarkLost(status);
    if (!ended.has_value()) return;
    commands_.reset();
    pair = std::move(pair_);
  }
  if (pair != nullptr && absl::IsCancelled(why)) pair->SayGoodbye();
  reader_.reset();
  pair.reset();  // from here on the device does not write to the memory of reads
  readings_.clear();
  offers_.clear();
  ReportLost(*std::move(ended), steps_, status, reason);
}

void VerbsStream::Close() {
  Status why;
  {
    MutexLock lock(mu_);
    why = broken_;
  }
  MarkLost(why.ok() ? Cancelled("this task is shutting down") : why);
}

}  // namespace penstock

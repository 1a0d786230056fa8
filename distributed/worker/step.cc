// SPDX-License-Identifier: Apache-2.0
#include "distributed/worker/step.h"

#include <utility>

#include "absl/strings/str_join.h"
#include "core/op/edge_name.h"
#include "core/runtime/waiting_keys.h"
#include "distributed/collective/exchange.h"

namespace penstock {

Step::Step(int64_t id, TaskName task, std::string session, int64_t begun_ns,
           collective::Exchange* exchange)
    : id_(id),
      task_(std::move(task)),
      session_(std::move(session)),
      begun_ns_(begun_ns),
      exchange_(exchange),
      local_(NewLocalRendezvous()) {}

Step::~Step() { CHECK(!when_sent_.has_value(), "step ", id_, " ended before its tensors left"); }

Status Step::Send(const HashedKey& key, Tensor value, bool is_dead) {
  const std::optional<TaskName>& consumer = key.consumer();
  if (!consumer) return InvalidArgument("'", key.key().dst_device, "' is not a full device name");
  if (*consumer == task_) return local_->Send(key, std::move(value), is_dead);

  std::shared_ptr<TensorSink> sink;
  {
    MutexLock lock(mu_);
    if (!aborted_.ok()) return aborted_;
    Outbox& box = outboxes_[*consumer];
    box.sent.Add({.tensors = 1, .bytes = is_dead ? 0 : static_cast<int64_t>(value.bytes())});
    ++unsent_;
    sink = box.sink;
    if (sink == nullptr) {
      box.held.push_back({key, std::move(value), is_dead});
      return OkStatus();
    }
  }
  sink->Send(id_, key, std::move(value), is_dead, CountDown());
  return OkStatus();
}

void Step::Recv(const HashedKey& key, Received received) { local_->Recv(key, std::move(received)); }

void Step::Collect(CollectiveCall call, Collected collected) {
  if (exchange_ == nullptr) {
    return std::move(collected)(
        FailedPrecondition(task_.ToString(), " takes part in no collectives"));
  }
  exchange_->Collect(session_, id_, std::move(call), std::move(collected));
}

void Step::Deliver(const HashedKey& key, Tensor value, bool is_dead) {
  const Status sent = local_->Send(key, std::move(value), is_dead);
  // Send fails if the step has been aborted (Cancel then has no effect), or if the key came twice,
  // which is a fault of the producer.
  if (!sent.ok()) Cancel(sent);
}

void Step::Abort(const Status& why) {
  std::map<TaskName, Outbox> dropped;
  std::optional<Done> when_sent;
  {
    MutexLock lock(mu_);
    if (!aborted_.ok()) return;
    aborted_ = why;
    dropped.swap(outboxes_);
    if (when_sent_.has_value()) when_sent.emplace(*std::move(when_sent_));
    when_sent_.reset();
  }
  for (auto& [consumer, box] : dropped) {
    if (box.sink != nullptr) box.sink->Drop(id_);
  }
  local_->Abort(why);
  if (when_sent.has_value()) (*std::move(when_sent))(why);
}

void Step::Cancel(const Status& why) {
  const auto keep = shared_from_this();
  cancellation_.Cancel(why);
  Abort(cancellation_.status());
}

std::string Step::Describe() const {
  constexpr size_t kShownMax = 3;
  std::vector<std::string> waits;
  size_t waiting = 0;
  for (const RendezvousKey& key : WaitingKeys(*local_)) {
    const StatusOr<TaskName> source = TaskName::OfDevice(key.src_device);
    if (!source.ok() || *source == task_ || ++waiting > kShownMax) continue;
    waits.push_back(StrCat("'", TensorOf(key.tensor), "' from ", source->ToString()));
  }
  if (waiting > kShownMax) waits.push_back(StrCat(waiting - kShownMax, " more"));
  return StrCat("step ", id_, " of ", task_.ToString(), waits.empty() ? " ran" : " waited for ",
                absl::StrJoin(waits, ", "));
}

void Step::Subscribe(const TaskName& consumer, std::shared_ptr<TensorSink> sink) {
  std::vector<HeldTensor> held;
  {
    MutexLock lock(mu_);
    if (!aborted_.ok()) return;  // the consumer's part of the step is aborted, too
    Outbox& box = outboxes_[consumer];
    held = std::exchange(box.held, {});
    box.sink = sink;
  }
  for (HeldTensor& h : held) sink->Send(id_, h.key, std::move(h.value), h.is_dead, CountDown());
}

std::map<TaskName, SentCounts> Step::SentTo() const {
  std::map<TaskName, SentCounts> sent;
  MutexLock lock(mu_);
  for (const auto& [consumer, box] : outboxes_) sent[consumer] = box.sent;
  return sent;
}

std::map<TaskName, size_t> Step::WaitingForSubscription() const {
  std::map<TaskName, size_t> unasked;
  MutexLock lock(mu_);
  for (const auto& [consumer, box] : outboxes_) {
    if (!box.held.empty()) unasked[consumer] = box.held.size();
  }
  return unasked;
}

void Step::WhenSent(Done done) {
  Status status;
  {
    MutexLock lock(mu_);
    status = aborted_;
    if (status.ok() && unsent_ > 0) {
      when_sent_.emplace(std::move(done));
      return;
    }
  }
  std::move(done)(status);
}

TensorSink::HandedOver Step::CountDown() {
  return [self = shared_from_this()] { self->HandedOver(); };
}

void Step::HandedOver() {
  std::optional<Done> when_sent;
  {
    MutexLock lock(mu_);
    if (--unsent_ > 0 || !when_sent_.has_value()) return;
    when_sent.emplace(*std::move(when_sent_));
    when_sent_.reset();
  }
  (*std::move(when_sent))(OkStatus());
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/verbs/verbs_sink.h"

#include <utility>

#include "core/base/env.h"
#include "distributed/transport/records/commands.h"

namespace penstock {

VerbsSink::VerbsSink(std::unique_ptr<QueuePair> pair, std::string consumer, TaskSteps& steps,
                     std::shared_ptr<VerbsDevice> device, std::shared_ptr<RegisteredMemory> memory)
    : VerbsEnd(std::move(pair)),
      consumer_(std::move(consumer)),
      steps_(steps),
      device_(std::move(device)),
      memory_(std::move(memory)) {
  MutexLock lock(mu_);
  writer_.emplace(pair_->out_ring());
  commands_.emplace(pair_->in_ring());
}

void VerbsSink::SendEncoded(OutgoingTensor tensor, HandedOver handed_over) {
  const Status fits = TensorRecordWriter::CheckHeader(tensor);
  if (!fits.ok()) {
    Refuse(tensor.step_id(), fits);
    return std::move(handed_over)();
  }
  Ended ended;
  {
    MutexLock lock(mu_);
    if (!is_open()) {
      ended.items.push_back({std::move(tensor), std::move(handed_over)});
    } else {
      queue_.Push(std::move(tensor), std::move(handed_over));
      Pump(&ended);
    }
  }
  End(std::move(ended));
}

void VerbsSink::Refuse(int64_t step_id, const Status& why) {
  Ended ended;
  {
    MutexLock lock(mu_);
    if (!is_open()) return;
    queue_.PushRefusal(step_id, why);
    Pump(&ended);
  }
  End(std::move(ended));
}

void VerbsSink::Drop(int64_t step_id) {
  Ended ended;
  {
    MutexLock lock(mu_);
    queue_.Drop(step_id, &ended.items);
    // The consumer may be reading offered tensors: their memory stays until the consumer has
    // answered.
    for (auto& [number, offer] : offers_) {
      if (offer.step_id == step_id && offer.handed_over) {
        ended.calls.push_back(std::exchange(offer.handed_over, nullptr));
      }
    }
  }
  End(std::move(ended));
}

void VerbsSink::Pump(Ended* ended) {
  const Status sent = PumpOnce(ended);
  if (!sent.ok() && broken_.ok()) broken_ = sent;
}

Status VerbsSink::PumpOnce(Ended* ended) {
  if (!is_open()) return OkStatus();
  RETURN_IF_ERROR(queue_.SendSmall(*writer_, &ended->items));
  RETURN_IF_ERROR(pair_->Flush());
  if (!queue_.BeginLarge()) return OkStatus();
  const Status sent = SendLarge(ended);
  queue_.EndLarge();
  return sent;
}

Status VerbsSink::SendLarge(Ended* ended) {
  std::deque<Item>& large = queue_.large();
  while (is_open() && !large.empty()) {
    const uint64_t bytes = large.front().tensor.bytes();
    if (!offers_.empty() && offered_bytes_ + bytes > kOfferedBytesMax) break;
    Item item = std::move(large.front());
    large.pop_front();
    const Status exposed = item.progress.has_value() ? OkStatus() : Expose(&item);
    if (!is_open() || !exposed.ok()) {
      if (!exposed.ok()) queue_.PushRefusal(item.tensor.step_id(), exposed);
      ended->items.push_back(std::move(item));
      if (is_open()) RETURN_IF_ERROR(queue_.SendRefusals(*writer_));
      continue;
    }
    const StatusOr<bool> sent = WriteOffer(&item, ended);
    if (!sent.ok()) ended->items.push_back(std::move(item));
    RETURN_IF_ERROR(sent.status());
    if (!*sent) {
      large.push_front(std::move(item));
      break;
    }
  }
  return is_open() ? pair_->Flush() : OkStatus();
}

Status VerbsSink::Expose(Item* item) {
  mu_.Unlock();
  StatusOr<ExposedTensor> exposed = ExposedTensor::Make(item->tensor, *device_, *memory_);
  mu_.Lock();
  if (!exposed.ok()) {
    return Annotate(exposed.status(), StrCat("sending '", item->tensor.key().key().tensor, "'"));
  }
  item->progress = *std::move(exposed);
  return OkStatus();
}

StatusOr<bool> VerbsSink::WriteOffer(Item* item, Ended* ended) {
  const uint64_t number = last_offer_ + 1;
  ExposedTensor& exposed = *item->progress;
  ASSIGN_OR_RETURN(const bool sent, writer_->Write(item->tensor, Place::kElsewhere,
                                                   {.address = exposed.address(),
                                                    .offer = number,
                                                    .address_key = exposed.key()}));
  if (!sent) return false;
  last_offer_ = number;
  offered_bytes_ += item->tensor.bytes();
  Offer offer{item->tensor.step_id(), item->tensor.bytes(), std::move(exposed), nullptr};
  if (!offer.exposed.is_copy()) offer.handed_over = std::exchange(item->handed_over, nullptr);
  offers_.emplace(number, std::move(offer));
  ended->items.push_back(std::move(*item));
  return true;
}

Status VerbsSink::ReadCommands(std::vector<int64_t>* subscribed, Ended* ended) {
  const auto done = [&](uint64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const auto offer = offers_.find(number);
    if (offer == offers_.end()) return false;
    offered_bytes_ -= offer->second.bytes;
    if (offer->second.handed_over) {
      ended->calls.push_back(std::exchange(offer->second.handed_over, nullptr));
    }
    ended->offers.push_back(std::move(offer->second));
    offers_.erase(offer);
    return true;
  };
  return penstock::ReadCommands(*commands_, consumer_, subscribed, done).status();
}

bool VerbsSink::Advance() {
  Ended ended;
  std::vector<int64_t> subscribed;
  bool worked = false, broken = false;
  {
    MutexLock lock(mu_);
    if (pair_ == nullptr) return false;
    const int64_t now_ns = Env::Real().NowNanos();
    worked = TakeWork(now_ns);
    const auto advance = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) -> Status {
      RETURN_IF_ERROR(broken_);
      RETURN_IF_ERROR(ReadCommands(&subscribed, &ended));
      RETURN_IF_ERROR(pair_->Confirm());
      // The consumer waits for a first message, which shows that this direction works,
      // too.
      if (pair_->has_heard() && !std::exchange(greeted_, true)) return pair_->Ping(now_ns);
      return OkStatus();
    };
    if (worked) {
      const Status advanced = advance();
      if (!advanced.ok() && broken_.ok()) broken_ = advanced;
      Pump(&ended);
    }
    broken = !broken_.ok();
  }
  for (const int64_t step_id : subscribed) steps_.Subscribe(consumer_, step_id, shared_from_this());
  End(std::move(ended));
  if (broken) Close();
  return worked && !broken;
}

bool VerbsSink::Tick(int64_t now_ns) {
  MutexLock lock(mu_);
  if (pair_ == nullptr || !broken_.ok()) return false;
  ticked_ns_ = now_ns;
  if (polled_ || pair_->HasEvents()) return true;
  // Sends no pings before the first message of the consumer, which may not be able to receive yet.
  if (greeted_) {
    broken_ = pair_->KeepAlive(now_ns);
  } else if (pair_->IsSilent(now_ns)) {
    broken_ = Unavailable("the consumer ", consumer_, " has never sent a message");
  }
  return broken_.ok();
}

void VerbsSink::Close() {
  Ended ended;
  std::unique_ptr<QueuePair> pair;
  std::map<uint64_t, Offer> offers;
  Status broken;
  {
    MutexLock lock(mu_);
    pair = std::move(pair_);
    broken = broken_;
    offers.swap(offers_);
    queue_.DropAll(&ended.items);
    writer_.reset();
    commands_.reset();
  }
  if (pair != nullptr && broken.ok()) pair->SayGoodbye();
  pair.reset();  // no more reads: offered memory may be freed
  for (auto& [number, offer] : offers) {
    if (offer.handed_over) ended.calls.push_back(std::move(offer.handed_over));
    ended.offers.push_back(std::move(offer));
  }
  End(std::move(ended));
}

void VerbsSink::End(Ended ended) {
  Queue::End(std::move(ended.items));
  ended.offers.clear();
  for (HandedOver& handed_over : ended.calls) std::move(handed_over)();
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/verbs/verbs_sink.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/env.h"

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
  const Status fits = VerbsMessageWriter::CheckHeader(tensor);
  if (!fits.ok()) {
    Refuse(tensor.step_id(), fits);
    return std::move(handed_over)();
  }
  Ended ended;
  {
    MutexLock lock(mu_);
    if (!is_open()) {
      ended.calls.push_back(std::move(handed_over));
    } else {
      std::deque<Item>& queue = tensor.bytes() <= kVerbsInlineBytesMax ? small_ : large_;
      queue.push_back({std::move(tensor), std::move(handed_over), std::nullopt});
      Pump(&ended);
    }
  }
  Call(ended);
}

void VerbsSink::Refuse(int64_t step_id, const Status& why) {
  Ended ended;
  {
    MutexLock lock(mu_);
    if (!is_open()) return;
    refusals_.push_back({step_id, why});
    Pump(&ended);
  }
  Call(ended);
}

void VerbsSink::Drop(int64_t step_id) {
  Ended ended;
  {
    MutexLock lock(mu_);
    for (std::deque<Item>* queue : {&small_, &large_}) {
      const auto kept = std::stable_partition(
          queue->begin(), queue->end(),
          [step_id](const Item& item) { return item.tensor.step_id() != step_id; });
      for (auto item = kept; item != queue->end(); ++item) {
        ended.calls.push_back(std::move(item->handed_over));
      }
      std::move(kept, queue->end(), std::back_inserter(ended.items));
      queue->erase(kept, queue->end());
    }
    // The consumer may be reading what was offered: its memory stays until it has been told so.
    for (auto& [number, offer] : offers_) {
      if (offer.step_id == step_id && offer.handed_over) {
        ended.calls.push_back(std::exchange(offer.handed_over, nullptr));
      }
    }
  }
  Call(ended);
}

void VerbsSink::Pump(Ended* ended) {
  const Status sent = PumpOnce(ended);
  if (!sent.ok() && broken_.ok()) broken_ = sent;
}

Status VerbsSink::PumpOnce(Ended* ended) {
  if (!is_open()) return OkStatus();
  RETURN_IF_ERROR(SendRefusals());
  RETURN_IF_ERROR(SendSmall(ended));
  RETURN_IF_ERROR(pair_->Flush());
  if (sending_large_) return OkStatus();
  sending_large_ = true;
  const Status sent = SendLarge(ended);
  sending_large_ = false;
  return sent;
}

Status VerbsSink::SendRefusals() {
  while (!refusals_.empty()) {
    const Refusal& next = refusals_.front();
    ASSIGN_OR_RETURN(const bool sent, writer_->WriteRefusal(next.step_id, next.why));
    if (!sent) break;
    refusals_.pop_front();
  }
  return OkStatus();
}

Status VerbsSink::SendSmall(Ended* ended) {
  while (!small_.empty()) {
    ASSIGN_OR_RETURN(const bool sent, writer_->WriteTensor(small_.front().tensor));
    if (!sent) break;
    ended->calls.push_back(std::move(small_.front().handed_over));
    ended->items.push_back(std::move(small_.front()));
    small_.pop_front();
  }
  return OkStatus();
}

Status VerbsSink::SendLarge(Ended* ended) {
  while (is_open() && !large_.empty()) {
    const uint64_t bytes = large_.front().tensor.bytes();
    if (!offers_.empty() && offered_bytes_ + bytes > kOfferedBytesMax) break;
    Item item = std::move(large_.front());
    large_.pop_front();
    const Status exposed = item.exposed.has_value() ? OkStatus() : Expose(&item);
    if (!is_open() || !exposed.ok()) {
      if (!exposed.ok()) refusals_.push_back({item.tensor.step_id(), exposed});
      ended->calls.push_back(std::move(item.handed_over));
      ended->items.push_back(std::move(item));
      if (is_open()) RETURN_IF_ERROR(SendRefusals());
      continue;
    }
    ASSIGN_OR_RETURN(const bool sent, WriteOffer(&item, ended));
    if (!sent) {
      large_.push_front(std::move(item));
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
  item->exposed = *std::move(exposed);
  return OkStatus();
}

StatusOr<bool> VerbsSink::WriteOffer(Item* item, Ended* ended) {
  const uint64_t number = last_offer_ + 1;
  ExposedTensor& exposed = *item->exposed;
  ASSIGN_OR_RETURN(const bool sent,
                   writer_->WriteOffer(item->tensor, {.offer = number,
                                                      .address = exposed.address(),
                                                      .address_key = exposed.key()}));
  if (!sent) return false;
  last_offer_ = number;
  offered_bytes_ += item->tensor.bytes();
  Offer offer{item->tensor.step_id(), item->tensor.bytes(), std::move(exposed), nullptr};
  if (offer.exposed.is_copy()) {
    ended->calls.push_back(std::move(item->handed_over));
  } else {
    offer.handed_over = std::move(item->handed_over);
  }
  offers_.emplace(number, std::move(offer));
  ended->items.push_back(std::move(*item));
  return true;
}

Status VerbsSink::ReadCommands(std::vector<int64_t>* subscribed, Ended* ended) {
  ASSIGN_OR_RETURN(size_t readable, commands_->Readable());
  if (readable == 0) return OkStatus();
  for (; readable >= sizeof(VerbsCommand); readable -= sizeof(VerbsCommand)) {
    VerbsCommand command;
    commands_->Read(&command, sizeof(command));
    const auto offer = offers_.find(command.value);
    if (command.kind == VerbsCommand::kSubscribe) {
      subscribed->push_back(static_cast<int64_t>(command.value));
    } else if (command.kind == VerbsCommand::kTaken && offer != offers_.end()) {
      offered_bytes_ -= offer->second.bytes;
      if (offer->second.handed_over) {
        ended->calls.push_back(std::exchange(offer->second.handed_over, nullptr));
      }
      ended->offers.push_back(std::move(offer->second));
      offers_.erase(offer);
    } else {
      return DataLoss("the consumer ", consumer_, " sent a command of kind ", command.kind, " for ",
                      command.value);
    }
  }
  if (readable > 0) return DataLoss("the consumer ", consumer_, " sent half a command");
  commands_->Release();
  return OkStatus();
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
      // The consumer waits for a first word, which shows that the way leads back, too.
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
  Call(ended);
  if (broken) Close();
  return worked && !broken;
}

bool VerbsSink::Tick(int64_t now_ns) {
  MutexLock lock(mu_);
  if (pair_ == nullptr || !broken_.ok()) return false;
  ticked_ns_ = now_ns;
  if (polled_ || pair_->HasEvents()) return true;
  // Before the consumer has said something it may not be able to hear.
  if (greeted_) {
    broken_ = pair_->KeepAlive(now_ns);
  } else if (pair_->IsSilent(now_ns)) {
    broken_ = Unavailable("the consumer ", consumer_, " has never said anything");
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
    for (std::deque<Item>* queue : {&small_, &large_}) {
      for (Item& item : *queue) ended.calls.push_back(std::move(item.handed_over));
      std::move(queue->begin(), queue->end(), std::back_inserter(ended.items));
      queue->clear();
    }
    refusals_.clear();
    writer_.reset();
    commands_.reset();
  }
  if (pair != nullptr && broken.ok()) pair->SayGoodbye();
  pair.reset();  // nobody reads any more: the memory of what was offered may go
  for (auto& [number, offer] : offers) {
    if (offer.handed_over) ended.calls.push_back(std::move(offer.handed_over));
    ended.offers.push_back(std::move(offer));
  }
  Call(ended);
}

void VerbsSink::Call(Ended& ended) {
  ended.items.clear();
  ended.offers.clear();
  for (HandedOver& handed_over : ended.calls) std::move(handed_over)();
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/grpc/exchange_sink.h"

#include <algorithm>
#include <iterator>

#include "distributed/calls/status_proto.h"

namespace penstock {

ExchangeSink::ExchangeSink(std::shared_ptr<const Endpoint> endpoint)
    : endpoint_(std::move(endpoint)), stream_(&context_) {}

void ExchangeSink::Listen(std::shared_ptr<const Endpoint> endpoint) {
  auto sink = std::make_shared<ExchangeSink>(std::move(endpoint));
  const Endpoint& e = *sink->endpoint_;
  e.service->RequestExchange(&sink->context_, &sink->stream_, e.queue, e.queue,
                             sink->received_.TagFor(sink));
}

void ExchangeSink::Received(bool ok) {
  if (!ok) return;  // the server is shutting down
  Listen(endpoint_);
  if (!endpoint_->loop->Begin(this)) return Close(Unavailable("the server is shutting down"));
  stream_.Read(&incoming_, read_.TagFor(shared_from_this()));
}

void ExchangeSink::Read(bool ok) {
  if (!ok) return Close(OkStatus());  // the consumer has gone
  const Status understood = HandleRequest(incoming_);
  if (!understood.ok()) return Close(understood);
  stream_.Read(&incoming_, read_.TagFor(shared_from_this()));
}

Status ExchangeSink::HandleRequest(const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  if (!message.Dump(&slices).ok()) return DataLoss("unreadable subscription");
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  wire::ExchangeRequest request;
  if (!request.ParseFromString(bytes)) return InvalidArgument("malformed subscription");
  if (consumer_.empty()) {
    if (request.incarnation() != endpoint_->self.incarnation) {
      return Aborted(endpoint_->self.ToString(), " has restarted");
    }
    if (request.consumer().task().empty()) return InvalidArgument("a consumer without a name");
    consumer_ = request.consumer().task();
  }
  for (const uint64_t step_id : request.subscribe()) {
    endpoint_->steps->Subscribe(consumer_, static_cast<int64_t>(step_id), shared_from_this());
  }
  return OkStatus();
}

void ExchangeSink::SendEncoded(OutgoingTensor tensor, HandedOver handed_over) {
  Ended ended;
  {
    MutexLock lock(mu_);
    if (closing_) {
      ended.push_back(std::move(handed_over));
    } else {
      std::deque<Item>& queue = tensor.bytes() <= kSmallBytesMax ? small_ : large_;
      queue.push_back({std::move(tensor), std::move(handed_over)});
      if (!writing_) WriteFrame(&ended);
    }
  }
  Call(std::move(ended));
}

void ExchangeSink::Refuse(int64_t step_id, const Status& why) {
  Ended ended;
  {
    MutexLock lock(mu_);
    if (closing_) return;
    frame_.Refuse(step_id, why);
    refusals_ = true;
    if (!writing_) WriteFrame(&ended);
  }
  Call(std::move(ended));
}

void ExchangeSink::Drop(int64_t step_id) {
  Ended ended;
  {
    MutexLock lock(mu_);
    for (std::deque<Item>* queue : {&small_, &large_}) {
      const auto kept = std::stable_partition(
          queue->begin(), queue->end(),
          [step_id](const Item& item) { return item.tensor.step_id() != step_id; });
      for (auto item = kept; item != queue->end(); ++item) {
        ended.push_back(std::move(item->handed_over));
      }
      queue->erase(kept, queue->end());
    }
  }
  Call(std::move(ended));
}

// REQUIRES: !writing_ and !closing_.
void ExchangeSink::WriteFrame(Ended* ended) {
  if (small_.empty() && large_.empty() && !refusals_) return;
  for (std::deque<Item>* queue : {&small_, &large_}) {
    while (!queue->empty() && !frame_.full()) {
      Item& item = queue->front();
      if (!frame_.Add(item.tensor, &item.sent)) break;
      ended->push_back(std::move(item.handed_over));
      queue->pop_front();
    }
  }
  refusals_ = false;
  writing_ = true;
  stream_.Write(frame_.Take(), written_.TagFor(shared_from_this()));
}

void ExchangeSink::Written(bool ok) {
  if (!ok) Close(OkStatus());  // the connection is lost; the consumer notices by itself
  Ended ended;
  {
    MutexLock lock(mu_);
    writing_ = false;
    if (closing_) {
      FinishStream();
    } else {
      WriteFrame(&ended);
    }
  }
  Call(std::move(ended));
}

void ExchangeSink::Close(const Status& status) {
  Ended ended;
  {
    MutexLock lock(mu_);
    if (closing_) return;
    closing_ = true;
    close_status_ = status;
    for (std::deque<Item>* queue : {&small_, &large_}) {
      for (Item& item : *queue) ended.push_back(std::move(item.handed_over));
      queue->clear();
    }
    if (!writing_) FinishStream();
  }
  Call(std::move(ended));
}

void ExchangeSink::FinishStream() {
  stream_.Finish(ToGrpc(close_status_), finished_.TagFor(shared_from_this()));
}

void ExchangeSink::Finished(bool) { endpoint_->loop->End(this); }

void ExchangeSink::Call(Ended ended) {
  for (HandedOver& handed_over : ended) std::move(handed_over)();
}

}  // namespace penstock

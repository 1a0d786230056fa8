// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/run_graph_stream.h"

#include <utility>
#include <vector>

#include "distributed/calls/status_proto.h"

namespace penstock {

void RunGraphStream::Open() {
  if (!loop_.Begin(this)) return MarkLost(Cancelled("this process is shutting down"));
  stream_ = stub_->PrepareAsyncRunGraphs(&context_, &loop_.queue());
  stream_->StartCall(started_.TagFor(shared_from_this()));
}

bool RunGraphStream::Run(wire::RunGraphRequest request, Ended* ended) {
  MutexLock lock(mu_);
  if (lost_) return false;
  running_.emplace(static_cast<int64_t>(request.step_id()), std::move(*ended));
  *pending_.add_run() = std::move(request);
  Write();
  return true;
}

void RunGraphStream::Abandon(int64_t step_id) {
  Ended ended;
  {
    MutexLock lock(mu_);
    const auto found = running_.find(step_id);
    if (found == running_.end()) return;
    ended = std::move(found->second);
    running_.erase(found);
  }
  wire::RunGraphResponse none;
  std::move(ended)(Cancelled(task_, " is not waited for any more"), none);
}

void RunGraphStream::Started(bool ok) {
  if (!ok) return Finish();
  stream_->Read(&incoming_, read_.TagFor(shared_from_this()));
  MutexLock lock(mu_);
  open_ = true;
  Write();
}

void RunGraphStream::Write() {
  if (!open_ || writing_ || pending_.run_size() == 0) return;
  writing_ = true;
  stream_->Write(pending_, written_.TagFor(shared_from_this()));  // serializes before it returns
  pending_.Clear();
}

void RunGraphStream::Written(bool ok) {
  MutexLock lock(mu_);
  writing_ = false;
  // If the write has failed, the read fails as well. After the end of the stream, no write may
  // begin.
  if (ok && !lost_) Write();
}

void RunGraphStream::Read(bool ok) {
  if (!ok) return Finish();
  wire::RunGraphResponses answers;
  answers.Swap(&incoming_);
  std::vector<std::pair<Ended, wire::RunGraphResponse*>> answered;
  {
    // Takes the steps out of running_ before the next read starts. Otherwise that read might find
    // the end of the stream, on another thread, and fail steps that have been answered.
    MutexLock lock(mu_);
    for (wire::RunGraphResponse& answer : *answers.mutable_ended()) {
      const auto found = running_.find(static_cast<int64_t>(answer.step_id()));
      if (found == running_.end()) continue;  // its step was abandoned
      answered.emplace_back(std::move(found->second), &answer);
      running_.erase(found);
    }
  }
  stream_->Read(&incoming_, read_.TagFor(shared_from_this()));
  for (auto& [ended, answer] : answered) std::move(ended)(OkStatus(), *answer);
}

void RunGraphStream::Finished(bool) {
  // Treats the end of the stream as the loss of the task, even if the code is OK.
  const Status why = Annotate(FromGrpc(status_, ""), task_);
  MarkLost(why.ok() ? Unavailable(task_, " is shutting down") : why);
  loop_.End(this);
}

void RunGraphStream::MarkLost(const Status& why) {
  std::map<int64_t, Ended> running;
  {
    MutexLock lock(mu_);
    lost_ = true;
    running.swap(running_);
  }
  wire::RunGraphResponse none;
  for (auto& [step_id, ended] : running) std::move(ended)(why, none);
}

void RunGraphSink::Listen(std::shared_ptr<const Endpoint> endpoint) {
  auto sink = std::make_shared<RunGraphSink>(std::move(endpoint));
  const Endpoint& e = *sink->endpoint_;
  e.service->RequestRunGraphs(&sink->context_, &sink->stream_, e.queue, e.queue,
                              sink->received_.TagFor(sink));
}

void RunGraphSink::Received(bool ok) {
  if (!ok) return;  // the server is shutting down
  Listen(endpoint_);
  if (!endpoint_->loop->Begin(this)) return Close(Unavailable("the server is shutting down"));
  stream_.Read(&incoming_, read_.TagFor(shared_from_this()));
}

void RunGraphSink::Read(bool ok) {
  if (!ok) return Close(OkStatus());  // the master has gone
  wire::RunGraphRequests requests;
  requests.Swap(&incoming_);
  stream_.Read(&incoming_, read_.TagFor(shared_from_this()));
  for (const wire::RunGraphRequest& request : requests.run()) Start(request);
}

void RunGraphSink::Start(const wire::RunGraphRequest& request) {
  {
    MutexLock lock(mu_);
    if (closing_) return;
    running_.insert(static_cast<int64_t>(request.step_id()));
  }
  endpoint_->run(request, [self = shared_from_this(),
                           step_id = request.step_id()](wire::RunGraphResponse response) {
    response.set_step_id(step_id);
    self->Ended(std::move(response));
  });
}

void RunGraphSink::Ended(wire::RunGraphResponse response) {
  MutexLock lock(mu_);
  running_.erase(static_cast<int64_t>(response.step_id()));
  if (closing_) return;
  *pending_.add_ended() = std::move(response);
  if (!writing_) Write();
}

// REQUIRES: !writing_ and !closing_.
void RunGraphSink::Write() {
  if (pending_.ended_size() == 0) return;
  writing_ = true;
  stream_.Write(pending_, written_.TagFor(shared_from_this()));  // serializes before it returns
  pending_.Clear();
}

void RunGraphSink::Written(bool ok) {
  if (!ok) Close(OkStatus());  // the connection is lost; the master notices by itself
  MutexLock lock(mu_);
  writing_ = false;
  if (closing_) {
    FinishStream();
  } else {
    Write();
  }
}

void RunGraphSink::Close(const Status& status) {
  std::set<int64_t> running;
  {
    MutexLock lock(mu_);
    if (closing_) return;
    closing_ = true;
    close_status_ = status;
    running.swap(running_);
    if (!writing_) FinishStream();
  }
  for (const int64_t step_id : running) endpoint_->abort(step_id);
}

void RunGraphSink::FinishStream() {
  stream_.Finish(ToGrpc(close_status_), finished_.TagFor(shared_from_this()));
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "kernels/data/reader.h"

#include <utility>

#include "core/base/guarded.h"

namespace penstock {
namespace {

Status StatusOf(const Cancellation* cancellation) {
  return cancellation == nullptr ? OkStatus() : cancellation->status();
}

// Returns the name of the unit of work that a queue's element holds. InvalidArgument unless the
// element is one string.
StatusOr<std::string> WorkIn(const Element& element) {
  if (element.size() == 1 && element[0].dtype() == DType::kString &&
      element[0].num_elements() == 1) {
    return element[0].scalar<std::string>();
  }
  return InvalidArgument("the reader's queue must give one string at a time, gave ", element.size(),
                         " components, the first one ", Name(element[0].dtype()),
                         element[0].shape().ToString());
}

}  // namespace

class Reader::TurnOperation final : public Operation {
 public:
  TurnOperation(Reader& reader, const Caller& caller, Done done)
      : Operation(caller, std::move(done)), reader_(reader) {}
  StatusOr<Progress> Try() override {
    reader_.mu_.AssertHeld();
    if (reader_.busy_) return Progress::kNone;
    reader_.busy_ = true;
    return Progress::kDone;
  }

 private:
  Reader& reader_;
};

void Reader::Use(const Caller& caller, absl::AnyInvocable<void(Done) &&> body, Done done) {
  Done at_turn([self = shared(), body = std::move(body),
                done = std::move(done)](const Status& status) mutable {
    if (!status.ok()) return std::move(done)(status);
    Done ended([self, done = std::move(done)](Status status) mutable {
      self->EndTurn();
      std::move(done)(std::move(status));
    });
    self->files_.Schedule([body = std::move(body), ended = std::move(ended)]() mutable {
      std::move(body)(std::move(ended));
    });
  });
  Start(0, std::make_shared<TurnOperation>(*this, caller, std::move(at_turn)));
}

void Reader::EndTurn() {
  Ended ended;
  {
    MutexLock lock(mu_);
    busy_ = false;
    Advance(&ended);
  }
  Finish(ended);
}

struct Reader::Reading {
  std::shared_ptr<Queue> queue;
  int64_t count;
  std::vector<Record>* records;
  Caller caller;
  Done done;
};

void Reader::Read(std::shared_ptr<Queue> queue, int64_t count, std::vector<Record>* records,
                  const Caller& caller, Done done) {
  auto body = [self = shared(), queue = std::move(queue), count, records,
               caller](Done ended) mutable {
    self->ReadMore(std::unique_ptr<Reading>(
        new Reading{std::move(queue), count, records, caller, std::move(ended)}));
  };
  Use(caller, std::move(body), std::move(done));
}

void Reader::ReadMore(std::unique_ptr<Reading> reading) {
  Status status = StatusOf(reading->caller.cancellation);
  if (status.ok() && source_ != nullptr) {
    status = Guarded([&] { return ReadWork(*reading); });
    RecordMove(reading->caller.origin);
  }
  if (status.ok() && reading->records->empty()) return AwaitWork(std::move(reading));
  std::move(reading->done)(std::move(status));
}

// Reads records of the current unit of work, until there are `count` or the unit ends.
Status Reader::ReadWork(Reading& reading) {
  while (source_ != nullptr && static_cast<int64_t>(reading.records->size()) < reading.count) {
    Record record;
    ASSIGN_OR_RETURN(const RecordSource::SearchResult found, source_->Next(&record));
    if (found != RecordSource::SearchResult::kNothing) {
      reading.records->push_back(std::move(record));
      ++records_produced_;
    }
    if (found != RecordSource::SearchResult::kRecord) FinishWork();
  }
  return OkStatus();
}

void Reader::AwaitWork(std::unique_ptr<Reading> reading) {
  Queue& queue = *reading->queue;
  const Caller caller = reading->caller;
  auto work = std::make_shared<std::string>();
  const auto receive = [work](const std::vector<Element>& elements) -> Status {
    ASSIGN_OR_RETURN(*work, WorkIn(elements[0]));
    return OkStatus();
  };
  Done received([self = shared(), work, reading = std::move(reading)](Status status) mutable {
    if (!status.ok()) return std::move(reading->done)(std::move(status));
    self->files_.Schedule([self, work, reading = std::move(reading)]() mutable {
      const Status begun = Guarded([&] { return self->BeginWork(*work, reading->caller.origin); });
      if (!begun.ok()) return std::move(reading->done)(begun);
      self->ReadMore(std::move(reading));
    });
  });
  queue.Dequeue(1, false, receive, caller, std::move(received));
}

Status Reader::BeginWork(const std::string& work, const UpdateOrigin& origin) {
  ASSIGN_OR_RETURN(source_, open_(env_, work));
  work_ = work;
  ++work_started_;
  RecordMove(origin);
  return OkStatus();
}

void Reader::FinishWork() {
  source_ = nullptr;
  work_finished_ = work_started_.load();
}

Reader::State Reader::CurrentState() const {
  State state{.work_started = work_started_,
              .work_finished = work_finished_,
              .records_produced = records_produced_};
  if (source_ != nullptr) {
    state.current_work = work_;
    state.position = source_->position();
  }
  return state;
}

void Reader::RecordMove(const UpdateOrigin& origin) {
  Changed(origin, "position", [this] {
    return std::vector<Tensor>{Tensor::Scalar(EncodeReaderState(CurrentState()))};
  });
}

void Reader::Save(State* state, const Caller& caller, Done done) {
  Use(
      caller,
      [self = shared(), state](Done ended) {
        *state = self->CurrentState();
        std::move(ended)(OkStatus());
      },
      std::move(done));
}

void Reader::Restore(State state, const Caller& caller, Done done) {
  Use(
      caller,
      [self = shared(), state = std::move(state), origin = caller.origin](Done ended) {
        std::move(ended)(Guarded([&] { return self->RestoreNow(state, origin); }));
      },
      std::move(done));
}

Status Reader::RestoreNow(const State& state, const UpdateOrigin& origin) {
  std::unique_ptr<RecordSource> source;
  if (state.work_started > state.work_finished) {
    ASSIGN_OR_RETURN(source, open_(env_, state.current_work));
    RETURN_IF_ERROR(source->SkipTo(state.position));
  }
  source_ = std::move(source);
  work_ = state.current_work;
  work_started_ = state.work_started;
  work_finished_ = state.work_finished;
  records_produced_ = state.records_produced;
  RecordMove(origin);
  return OkStatus();
}

std::string Reader::DebugString() const {
  return StrCat(TypeName(), " '", name(), "', ", records_produced(), " records produced, ",
                work_finished(), " units of work finished");
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Reader: reads the records of units of work (mostly files), one unit after the other. It takes the
// names of the units from a queue.
//
// Operations take turns, in order. An operation that waits, for its turn or for the queue, holds no
// thread; files are read on the scheduler's file threads. If a unit cannot be opened, the operation
// returns the error and the next one continues with the next unit. Thread-safe.
//
// Action in a StateLog: "position" {EncodeReaderState}: the new position.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "core/base/env.h"
#include "core/base/scheduler.h"
#include "kernels/data/queue.h"
#include "kernels/data/record_source.h"

namespace penstock {

class Reader final : public Blocking {
 public:
  using Record = RecordSource::Record;
  struct State {
    int64_t work_started = 0, work_finished = 0, records_produced = 0;
    std::string current_work;         // valid if work_started > work_finished
    RecordSource::Position position;  // the position in current_work
  };

  Reader(const char* type, std::string name, OpenSource open, Env& env, Scheduler& threads)
      : Blocking(type, std::move(name), 1),
        open_(std::move(open)),
        env_(env),
        files_(threads.files()) {}

  std::string DebugString() const override;
  const char* OpaqueReason() const override { return "it reads files outside of its store"; }

  // Appends 1 to `count` records to `*records`; fewer than `count` only at the end of a unit of
  // work. Returns the queue's error if no work is left. Borrows `records` until `done`.
  void Read(std::shared_ptr<Queue> queue, int64_t count, std::vector<Record>* records,
            const Caller& caller, Done done);
  // Copies the reader's state to `*state`, which is borrowed until `done`.
  void Save(State* state, const Caller& caller, Done done);
  // Replaces the reader's state by `state`, and opens its current work.
  void Restore(State state, const Caller& caller, Done done);

  int64_t records_produced() const { return records_produced_.load(); }
  int64_t work_finished() const { return work_finished_.load(); }

 private:
  class TurnOperation;
  struct Reading;

  // Waits for a turn, then calls `body` on a file thread. The turn ends when the body calls its
  // Done.
  void Use(const Caller& caller, absl::AnyInvocable<void(Done) &&> body, Done done);
  void EndTurn();
  std::shared_ptr<Reader> shared() { return std::static_pointer_cast<Reader>(shared_from_this()); }

  // REQUIRES for these functions: the operation has the turn.
  void ReadMore(std::unique_ptr<Reading> reading);
  Status ReadWork(Reading& reading);
  void AwaitWork(std::unique_ptr<Reading> reading);
  Status BeginWork(const std::string& work, const UpdateOrigin& origin);
  void FinishWork();
  Status RestoreNow(const State& state, const UpdateOrigin& origin);
  State CurrentState() const;
  void RecordMove(const UpdateOrigin& origin);

  const OpenSource open_;
  Env& env_;
  Scheduler& files_;
  bool busy_ ABSL_GUARDED_BY(mu_) = false;

  std::string work_;
  std::unique_ptr<RecordSource> source_;  // reads work_; null: no work in progress
  std::atomic<int64_t> work_started_{0}, work_finished_{0}, records_produced_{0};
};

// Convert a state to bytes (proto/penstock/reader.proto) and back. InvalidArgument if the bytes are
// malformed or contradict themselves.
std::string EncodeReaderState(const Reader::State& state);
StatusOr<Reader::State> DecodeReaderState(const std::string& bytes);

}  // namespace penstock

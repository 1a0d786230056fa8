// SPDX-License-Identifier: Apache-2.0
//
// Subscriptions: the state of a consumer's stream apart from its connection: the subscribed
// steps, the commands that have not been written, and the callbacks that wait for the stream to
// open. DescribeLost and ReportLost: the errors with which the steps and callbacks of a lost stream
// end.
//
// Not thread-safe: the stream's lock guards it. The methods that end a subscription or a wait
// return callbacks; the stream calls them after releasing its lock.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "distributed/transport/records/commands.h"
#include "distributed/transport/transport.h"

namespace penstock {

class Subscriptions {
 public:
  using Calls = std::vector<Transport::Reached>;
  struct Ended {
    std::set<int64_t> steps;  // steps that have to fail
    Calls opened;             // callbacks that waited for the stream to open
  };

  // Adds a subscription. Returns false if the stream is lost.
  bool Add(int64_t step_id) {
    if (!lost_.ok()) return false;
    wanted_.insert(step_id);
    AddCommand({Command::kSubscribe, static_cast<uint64_t>(step_id)});
    return true;
  }
  void Remove(int64_t step_id) { wanted_.erase(step_id); }
  bool Wants(int64_t step_id) const { return wanted_.contains(step_id); }
  // Adds a command to those that have not been written yet.
  void AddCommand(const Command& command) { unwritten_.push_back(command); }
  // Returns the commands that are not written yet.
  std::deque<Command>& unwritten() { return unwritten_; }

  // Keeps `*opened` until the stream is open or lost, and returns nullopt. If the stream is open or
  // lost already, returns a status, which the caller has to pass to `*opened`.
  std::optional<Status> WhenOpen(Transport::Reached* opened) {
    if (!lost_.ok() || is_open_) return lost_;
    opened_.push_back(std::move(*opened));
    return std::nullopt;
  }
  // Returns the callbacks that wait for the stream to open.
  Calls MarkOpen() {
    is_open_ = true;
    return std::exchange(opened_, {});
  }
  // Returns the steps and callbacks to end; nothing if the stream was lost before.
  std::optional<Ended> MarkLost(const Status& why) {
    if (!lost_.ok()) return std::nullopt;
    lost_ = why;
    unwritten_.clear();
    return Ended{std::exchange(wanted_, {}), std::exchange(opened_, {})};
  }
  const Status& lost() const { return lost_; }

  static void Call(Calls calls, const Status& status) {
    for (Transport::Reached& call : calls) std::move(call)(status);
  }

 private:
  std::deque<Command> unwritten_;
  std::set<int64_t> wanted_;
  Calls opened_;
  bool is_open_ = false;
  Status lost_;
};

// Returns whether `why` means that both tasks run, but one of them lacks something that the
// transport needs.
inline bool CannotConnect(const Status& why) {
  return absl::IsFailedPrecondition(why) || absl::IsResourceExhausted(why);
}

// The texts that a transport adds to an error for which CannotConnect is true.
struct CannotConnectText {
  string_view what;    // "--protocol=shm: no shared memory"
  string_view advice;  // "choose --protocol=auto or grpc in all tasks"
};

// Returns the error with which the steps of a lost stream to `producer` fail: FailedPrecondition
// with the texts of `text` if CannotConnect(why); an Aborted or DataLoss `why` unchanged; else
// Unavailable.
Status DescribeLost(const TaskId& producer, const Status& why, const CannotConnectText& text);

// Fails the steps with `status`, and calls the callbacks that wait for the stream to open: with
// FailedPrecondition and the text of `why` if CannotConnect(why), else with `status`.
void ReportLost(Subscriptions::Ended ended, TaskSteps& steps, const Status& status,
                const Status& why);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Subscriptions: what a consumer's stream knows besides its connection: the steps that want its
// tensors, the commands that have not been written, and the calls that wait for it to open.
//
// Not thread-safe: the stream's lock guards it. The methods that end something return what the
// stream has to call without its lock.
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
    std::set<int64_t> steps;  // that have to fail
    Calls opened;
  };

  // Returns false if the stream is lost.
  bool Add(int64_t step_id) {
    if (!lost_.ok()) return false;
    wanted_.insert(step_id);
    Say({Command::kSubscribe, static_cast<uint64_t>(step_id)});
    return true;
  }
  void Remove(int64_t step_id) { wanted_.erase(step_id); }
  bool Wants(int64_t step_id) const { return wanted_.contains(step_id); }
  void Say(const Command& command) { waiting_.push_back(command); }
  // The commands to be written.
  std::deque<Command>& waiting() { return waiting_; }

  // Keeps `*opened` until the stream is open or lost, and returns nothing; or returns with what to
  // call it at once.
  std::optional<Status> WhenOpen(Transport::Reached* opened) {
    if (!lost_.ok() || is_open_) return lost_;
    opened_.push_back(std::move(*opened));
    return std::nullopt;
  }
  Calls MarkOpen() {
    is_open_ = true;
    return std::exchange(opened_, {});
  }
  // Returns nothing if the stream was lost before.
  std::optional<Ended> MarkLost(const Status& why) {
    if (!lost_.ok()) return std::nullopt;
    lost_ = why;
    waiting_.clear();
    return Ended{std::exchange(wanted_, {}), std::exchange(opened_, {})};
  }
  const Status& lost() const { return lost_; }

  static void Call(Calls calls, const Status& status) {
    for (Transport::Reached& call : calls) std::move(call)(status);
  }

 private:
  std::deque<Command> waiting_;
  std::set<int64_t> wanted_;
  Calls opened_;
  bool is_open_ = false;
  Status lost_;
};

// True if `why` means that both tasks are there, and one of them lacks what the transport needs.
inline bool HasNoWay(const Status& why) {
  return absl::IsFailedPrecondition(why) || absl::IsResourceExhausted(why);
}

// The words that a transport says for it.
struct NoWayText {
  string_view what;    // "--protocol=shm: no shared memory"
  string_view advice;  // "choose --protocol=auto or grpc in all tasks"
};

// Returns why the stream to `producer` is lost, as its steps see it: FailedPrecondition with the
// transport's words if HasNoWay, Aborted and DataLoss as they are, else Unavailable.
Status DescribeLost(const TaskId& producer, const Status& why, const NoWayText& no_way);

// Fails the steps with `status`, and answers those that wait for the stream to open because of
// `why`.
void TellLost(Subscriptions::Ended ended, TaskSteps& steps, const Status& status,
              const Status& why);

}  // namespace penstock

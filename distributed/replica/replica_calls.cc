// SPDX-License-Identifier: Apache-2.0
#include "distributed/replica/replica_calls.h"

#include <utility>

#include "core/base/join.h"

namespace penstock {
namespace {

template <class Response, class Call>
StatusOr<Response> Ask(Scheduler& scheduler, const char* what, Call call) {
  StatusOr<Response> answer = Internal("no answer");
  Wait wait(scheduler, what);
  call([&answer, done = wait.done()](StatusOr<Response> answered) mutable {
    answer = std::move(answered);
    std::move(done)(OkStatus());
  });
  (void)wait.Get();
  return answer;
}

}  // namespace

ReplicaCalls::ReplicaCalls(Options options) : options_(std::move(options)) {}

StatusOr<wire::GreetResponse> ReplicaCalls::Greet() {
  wire::GreetRequest request;
  request.set_task(options_.task);
  request.set_incarnation(options_.incarnation);
  auto answer = Ask<wire::GreetResponse>(
      *options_.scheduler, "the other replica to say what it is",
      [&](auto done) { options_.peer->Greet(request, options_.timeout_ms, std::move(done)); });
  if (answer.ok() && answer->task() != options_.task) {
    return FailedPrecondition(options_.other, " is of ", answer->task(), ", expected ",
                              options_.task, ": the tasks' clusters differ");
  }
  return answer;
}

StatusOr<uint64_t> ReplicaCalls::Claim(uint64_t wanted) {
  wire::ClaimRequest request;
  request.set_task(options_.task);
  request.set_incarnation(options_.incarnation);
  request.set_epoch(wanted);
  ASSIGN_OR_RETURN(
      const wire::ClaimResponse answer,
      Ask<wire::ClaimResponse>(*options_.scheduler, "the witness to give an epoch", [&](auto done) {
        options_.witness->Claim(request, options_.timeout_ms, std::move(done));
      }));
  return answer.epoch();
}

Status ReplicaCalls::Follow(uint64_t feed) {
  wire::FollowRequest request;
  request.set_task(options_.task);
  request.set_incarnation(options_.incarnation);
  request.set_feed(feed);
  request.set_takes_pieces(true);
  return Ask<wire::FollowResponse>(*options_.scheduler, "the primary to feed this replica",
                                   [&](auto done) {
                                     options_.peer->Follow(request, options_.timeout_ms,
                                                           std::move(done));
                                   })
      .status();
}

StatusOr<uint64_t> ReplicaCalls::Push(const wire::PushRequest& push, int64_t timeout_ms) {
  ASSIGN_OR_RETURN(
      const wire::PushResponse answer,
      Ask<wire::PushResponse>(*options_.scheduler, "the follower to take changes", [&](auto done) {
        options_.peer->Push(push, timeout_ms, std::move(done));
      }));
  return answer.number();
}

}  // namespace penstock

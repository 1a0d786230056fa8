// SPDX-License-Identifier: Apache-2.0
//
// PartialRun: a step that is fed and fetched in instalments, while it runs.
//
// Feeds are sent to the rendezvous of the step's part in the master's own task, and fetches are
// received from it, under the names that the compiler gives them (CompileOptions::partial_run).
// For the layers below, this is an ordinary step. The step ends when all its nodes have run, which
// needs all its feeds. If the step fails, the pending instalment, or else the next one, ends with
// its error. Thread-safe. Held by shared pointers: its step keeps it alive.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/cancellation.h"
#include "core/base/done.h"
#include "core/base/mutex.h"
#include "core/runtime/rendezvous.h"
#include "distributed/master/prepared_step.h"
#include "distributed/worker/step.h"

namespace penstock {

class PartialRun : public std::enable_shared_from_this<PartialRun> {
 public:
  // `client_device`: the device at which feeds enter. `prepared` is ready.
  PartialRun(std::shared_ptr<const PreparedStep> prepared, std::string client_device);

  // The caller calls each of these once: Begun when the step has begun in the master's task (null:
  // it has no part there), Ended when all its parts have ended.
  void Begun(std::shared_ptr<Step> step) { step_ = std::move(step); }
  void Ended(const Status& status);
  // Returns the step's cancellation; cancelling it ends the step.
  Cancellation& cancellation() { return cancellation_; }

  // Feeds some placeholders and fetches some outputs. Each of them may be named in only one
  // instalment. Writes `outputs`, borrowed until `done`, in the order of `fetches`. The last
  // instalment ends with the step. InvalidArgument if names or values are wrong, or if a fetch
  // needs feeds that are still to come; the step then continues unchanged. Any other error is the
  // step's error, and ends the step.
  void Run(const Feeds& feeds, const std::vector<std::string>& fetches,
           std::vector<Tensor>* outputs, Done done);
  // Ends the step with `why`, and calls `done` with the step's status when it has ended. Called
  // instead of Run for an instalment that was cancelled before it could begin.
  void Cancel(const Status& why, Done done);
  // Returns true if no further instalment is possible: the step has failed, or everything was fed
  // and fetched.
  bool finished() const;
  // Returns true if all parts of the step have ended. That may be later than finished(), if the
  // partial run has neither feeds nor fetches, and earlier, if a fetch is still to come.
  bool ended() const;

 private:
  // Names are given as indices in PreparedStep::names().
  struct Instalment {
    std::vector<int> feeds;
    std::vector<int> fetches;
  };
  StatusOr<Instalment> Take(const Feeds& feeds, const std::vector<std::string>& fetches);
  Status CheckComputable(int fetch, const std::vector<bool>& fed) const;
  void AfterEnd(Done done);
  HashedKey KeyOf(const std::string& tensor) const;

  const std::shared_ptr<const PreparedStep> prepared_;
  const std::string client_device_;
  std::shared_ptr<Step> step_;
  Cancellation cancellation_;

  mutable Mutex mu_;
  std::vector<bool> fed_ ABSL_GUARDED_BY(mu_);
  std::vector<bool> fetched_ ABSL_GUARDED_BY(mu_);
  size_t left_ ABSL_GUARDED_BY(mu_);  // the number of names that are still to be fed or fetched
  std::optional<Status> ended_ ABSL_GUARDED_BY(mu_);
  std::vector<Done> after_end_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "distributed/worker/worker_graph.h"

#include <atomic>
#include <utility>

#include "core/base/cancellation.h"

namespace penstock {
namespace {

// Calls Done when the last of several executors has ended. The first failure cancels the others
// and is passed to Done.
class LastPart {
 public:
  LastPart(size_t parts, Cancellation* cancellation, Done done)
      : left_(parts), cancellation_(cancellation), done_(std::move(done)) {}

  static void Ended(const std::shared_ptr<LastPart>& self, const Status& status) {
    if (!status.ok()) self->cancellation_->Cancel(status);
    if (self->left_.fetch_sub(1) > 1) return;
    std::move(self->done_)(self->cancellation_->status());
  }

 private:
  std::atomic<size_t> left_;
  Cancellation* const cancellation_;
  Done done_;
};

}  // namespace

void WorkerGraph::RunAsync(const StepArgs& args, Done done) {
  const auto self = shared_from_this();
  StepMemory memory(*memory_, args.step_id);
  MemoryAccount* const account = memory.account();
  auto last =
      std::make_shared<LastPart>(parts_.size(), args.cancellation,
                                 Done([self, memory = std::move(memory), done = std::move(done)](
                                          Status s) mutable { std::move(done)(std::move(s)); }));
  for (const Part& part : parts_) {
    StepArgs part_args = args;
    part_args.resources = part.resources;
    part_args.memory = account;
    part.executor->RunAsync(part_args,
                            Done([last](Status status) { LastPart::Ended(last, status); }));
  }
}

}  // namespace penstock

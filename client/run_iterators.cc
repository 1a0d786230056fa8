// SPDX-License-Identifier: Apache-2.0
#include "client/run_iterators.h"

#include <utility>

#include "client/drop_elements.h"

namespace penstock::client {

RunIterators::RunIterators(std::vector<Iterator> iterators, Output taken, const ExactlyOnce* once)
    : iterators_(std::move(iterators)), taken_(taken), once_(once) {}

Status RunIterators::SessionBegins(const HookSession& begun) {
  if (once_ != nullptr && iterators_.empty() && !taken_.valid()) {
    return once_->Begin(begun.session).status();
  }
  if (once_ != nullptr && !taken_.valid()) {
    return InvalidArgument("RunIterators with ExactlyOnce must be given what a step takes");
  }
  std::vector<TensorRef> initializers;
  for (const Iterator& iterator : iterators_) {
    initializers.push_back(iterator.initializer());
    if (!taken_.valid()) continue;
    RETURN_IF_ERROR(Annotate(iterator.dataset().repeatable(), "the input cannot be resumed"));
  }
  if (!initializers.empty()) {
    RETURN_IF_ERROR(begun.session.Run({}, {}, initializers, begun.run).status());
  }
  if (!taken_.valid()) return OkStatus();
  const Status dropped =
      DropElements(begun.session, taken_, once_, begun.global_step, begun.run, begun.stopping);
  return dropped.ok() ? OkStatus() : StepFailed(dropped);
}

Status RunIterators::StepFailed(const Status& why) {
  return once_ == nullptr ? why : once_->Explain(why);
}

}  // namespace penstock::client

// SPDX-License-Identifier: Apache-2.0
//
// The fetches of a step of TrainingLoop: the global step, the measures, and the tensors that hooks
// add.
#include "client/training.h"

namespace penstock::client {

// Returns the prepared step that also fetches `extra`, preparing it if necessary.
StatusOr<const Callable*> TrainingLoop::StepWith(const Outputs& extra) {
  std::vector<std::string> key;
  for (const Output& output : extra) key.push_back(output.name());
  const auto known = steps_.find(key);
  if (known != steps_.end()) return &known->second;
  std::vector<TensorRef> feeds(step_.inputs.begin(), step_.inputs.end());
  std::vector<TensorRef> fetches = {step_after_};
  for (const auto& [name, output] : step_.measures) fetches.push_back(output);
  fetches.insert(fetches.end(), extra.begin(), extra.end());
  ASSIGN_OR_RETURN(Callable step, session_->MakeCallable(feeds, fetches, {step_.train}));
  return &steps_.emplace(std::move(key), std::move(step)).first->second;
}

// Returns the tensors that hooks want from the step that begins with `step`. Records in `*wanted`,
// in the same order, how many each hook wants.
Outputs TrainingLoop::ExtraFetches(int64_t step, std::vector<HookFetches>* wanted) {
  Outputs extra;
  for (TrainingHook* hook : hooks_) {
    const Outputs wants = hook->ExtraFetches(step);
    if (!wants.empty()) wanted->push_back({hook, wants.size()});
    extra.insert(extra.end(), wants.begin(), wants.end());
  }
  return extra;
}

// Passes the extra fetches, which follow the global step and the measures, to the hooks that wanted
// them.
void TrainingLoop::PassExtraFetches(const std::vector<HookFetches>& wanted,
                                    const std::vector<Tensor>& outputs) {
  auto next = outputs.begin() + 1 + static_cast<int64_t>(step_.measures.size());
  for (const auto& [hook, count] : wanted) {
    const auto end = next + static_cast<int64_t>(count);
    hook->Fetched({next, end});
    next = end;
  }
}

}  // namespace penstock::client

// SPDX-License-Identifier: Apache-2.0
//
// RunIterators: initialises the iterators of a program's datasets in each session of a training
// loop, and moves them to the position that the training has reached.
//
//   RunIterators input({iterator}, batch[0], &once);
//   loop.AddHook(&input);
//
// At the end of a dataset the loop ends with OK. If reading a dataset fails, the step that reads it
// fails with the same error.
//
// With `taken`, a training that is resumed from a checkpoint also resumes at its position in the
// input: each session reads the datasets from the beginning, and drops the elements of earlier
// steps. The training computes nothing from the dropped elements, but the datasets read and map
// them again. The datasets must be the same in each session (Dataset::repeatable); otherwise the
// first session ends with an error.
//
// With `once`, the number of dropped elements is the count of this worker's batches that `once`
// keeps. Then every element is used exactly once, even if workers are killed (exactly_once.h).
// Without `once`, the number is the global step. That is exact only if this is the only worker, has
// no concurrent steps, and is not killed within a step while a parameter server survives.
//
// Without iterators and `taken`, `once` alone is for steps whose batches are fed: the object only
// calls ExactlyOnce::Begin and Explain, and the program feeds each step the batch of its global
// step.
//
// If the input ends before all elements of earlier steps are dropped, the loop ends with
// FailedPrecondition. Possible causes: files are missing, or other workers have raised the global
// step too. If the training is told to end meanwhile, no more elements are dropped.
#pragma once

#include <vector>

#include "client/dataset_iterator.h"
#include "client/exactly_once.h"
#include "client/training_hook.h"

namespace penstock::client {

class RunIterators : public TrainingHook {
 public:
  // `taken` is a tensor or an op with which a step takes one element of each iterator; it must be
  // given if `once` and iterators are. Borrows `once`.
  explicit RunIterators(std::vector<Iterator> iterators, Output taken = {},
                        const ExactlyOnce* once = nullptr);

  Status SessionBegins(const HookSession& begun) override;
  Status StepFailed(const Status& why) override;

 private:
  const std::vector<Iterator> iterators_;
  const Output taken_;
  const ExactlyOnce* const once_;
};

}  // namespace penstock::client

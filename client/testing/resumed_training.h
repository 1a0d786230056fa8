// SPDX-License-Identifier: Apache-2.0
//
// For tests of resumed trainings: a hook that records the batches and fails the training, and a
// function that compares a training that was killed repeatedly with an uninterrupted one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "client/program.h"
#include "client/training.h"
#include "client/variable.h"
#include "core/base/env.h"
#include "core/op/gradient.h"
#include "gtest/gtest.h"

namespace penstock::client {

// Records the batch of each step as the measure "first". Fails after the step `dies_after`, as if
// the process had been killed; 0: never.
class WatchFirst : public TrainingHook {
 public:
  explicit WatchFirst(int64_t dies_after = 0) : dies_after_(dies_after) {}
  Status AfterStep(const StepResult& result, bool* stop) override {
    seen.push_back(result.measures.at("first"));
    return result.global_step == dies_after_ ? Internal("killed") : OkStatus();
  }
  std::vector<double> seen;

 private:
  const int64_t dies_after_;
};

// Returns the loss of a variable "w" that learns to invert the numbers of the batch.
inline Output InverseLoss(Program& program, Output batch) {
  const Variable w(program, "w", {}, Zeros());
  const Output axes = Constant(program, Tensor::Vector<int32_t>({0}));
  return Mean(Square(Cast(batch, DType::kFloat) * w - 1), axes);
}

// Returns the four numbers of a batch combined in one number: the sum of the numbers times
// `weights`, a vector of their type.
inline Output Combined(Program& program, Output batch, Tensor weights) {
  const Output axes = Constant(program, Tensor::Vector<int32_t>({0}));
  return Sum(batch * Constant(program, std::move(weights)), axes);
}

// Returns the options of a training that prints nothing and saves every four steps. Zero steps: no
// limit. An empty directory: no checkpoints.
inline TrainingOptions QuietTraining(int64_t max_steps, const std::string& checkpoint_dir) {
  return {.checkpoint_dir = checkpoint_dir,
          .save_every_steps = 4,
          .max_steps = max_steps,
          .stop_on_signals = false,
          .say = [](const std::string&) {}};
}

// Expects that a training of 15 steps which is killed repeatedly uses the same batches as an
// uninterrupted one. `train` runs a new training, with `watch` as a hook and with this checkpoint
// directory.
inline void ExpectGoesOnInItsInput(
    const std::string& name,
    absl::FunctionRef<Status(WatchFirst& watch, const std::string& checkpoint_dir)> train) {
  const std::string directory = StrCat(testing::TempDir(), "/", name, "_", Env::Real().RandomU64());
  std::vector<double> whole, pieces;
  for (const int64_t dies_after : {0, 6, 9, 14, 0}) {
    WatchFirst watch(dies_after);
    const bool uninterrupted = whole.empty();
    const Status status = train(watch, uninterrupted ? "" : directory);
    EXPECT_EQ(status.ok(), dies_after == 0) << status;
    if (uninterrupted) {
      whole = watch.seen;
      continue;
    }
    // The steps after the last checkpoint (of step 4k) are lost.
    pieces.insert(pieces.end(), watch.seen.begin(), watch.seen.end());
    if (dies_after != 0) pieces.resize(dies_after / 4 * 4);
  }
  EXPECT_EQ(whole.size(), 15u);
  EXPECT_EQ(pieces, whole);
}

}  // namespace penstock::client

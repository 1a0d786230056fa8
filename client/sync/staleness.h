// SPDX-License-Identifier: Apache-2.0
//
// Staleness: measures how out of date the gradients of asynchronous workers are. The staleness of a
// gradient is the number of updates between its step's read of the variables and its own update.
//
//   Staleness staleness(program, train);
//   TrainingLoop loop(program, {.train = train, .measures = {{"staleness", staleness.measure()}}},
//                     options);
//   loop.AddHook(&staleness);
//   ... std::puts(staleness.Describe().c_str());
//
// A TrainingHook that counts the values of the measure "staleness". Progress lines show the
// measure, too. If WriteHistograms is called, histograms of this worker's steps go to an event file
// during the training.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "client/program.h"
#include "client/summary/summary_writer.h"
#include "client/training_hook.h"

namespace penstock::client {

class Staleness : public TrainingHook {
 public:
  static constexpr char kMeasure[] = "staleness";
  static constexpr char kHistogramTag[] = "staleness_histogram";

  // `train` must raise the program's global step by one. Borrows the program.
  Staleness(Program& program, Output train, SourceLine line = {__builtin_FILE(), __builtin_LINE()});

  Output measure() const { return measure_; }
  // Returns the number of steps by staleness.
  const std::map<int64_t, int64_t>& counts() const { return counts_; }
  // Returns a text such as "staleness of 500 updates: mean 1.3; 0: 20 %, 1: 45 %, 2-3: 30 %, 4-7: 5
  // %".
  std::string Describe() const;

  // From now on writes a histogram to `writer`, with the tag kHistogramTag, about every
  // `every_steps` global steps and at the end. Each histogram counts the steps since the one
  // before. Borrows the writer. REQUIRES: every_steps >= 1.
  void WriteHistograms(SummaryWriter& writer, int64_t every_steps);

  Status AfterStep(const StepResult& result, bool* stop) override;
  Status End(Session& session, int64_t global_step) override;

 private:
  Status WriteHistogram(int64_t global_step);

  Output measure_;
  std::map<int64_t, int64_t> counts_;
  SummaryWriter* writer_ = nullptr;  // null: no histograms
  int64_t every_steps_ = 0;
  int64_t written_step_ = -1;             // the global step of the last histogram; -1: none
  std::map<int64_t, int64_t> unwritten_;  // the counts since then
};

}  // namespace penstock::client

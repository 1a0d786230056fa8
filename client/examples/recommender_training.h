// SPDX-License-Identifier: Apache-2.0
//
// Trains the recommender, in this process or as one worker of a cluster, and tests it.
#pragma once

#include <cstdint>
#include <string>

#include "client/examples/all_reduce.h"
#include "core/base/status.h"
#include "distributed/cluster/cluster_spec.h"

namespace penstock::examples {

struct RecommenderFlags {
  TaskConfig task;  // an empty cluster: everything in this process
  AllReduceFlags training;
  int64_t units = 16, steps = 1000, batch_size = 256;
  double learning_rate = 0.002;
  std::string table = "variable";  // or "dynamic" (DynamicTable)
  int64_t max_rows = 0;            // with dynamic tables, as in DynamicTableOptions
  std::string spill_directory;
  std::string placement = "client", data_dir, checkpoint_dir;
  double save_every_seconds = 60, wait_seconds = 300;
  int max_failed_saves = 0;
  int incremental_saves = 0;  // see TrainingOptions
};

// Trains until the last step that the flags name. The chief then evaluates the model on the test
// ratings, and prints "test AUC: 0.765" as its last line. Returns Cancelled if a signal ended the
// training before the last step.
Status TrainRecommender(const RecommenderFlags& flags, const std::string& target);

}  // namespace penstock::examples

// SPDX-License-Identifier: Apache-2.0
//
// Trains the language model, in this process or as one worker of a cluster, and tests it.
#pragma once

#include <cstdint>
#include <string>

#include "client/examples/all_reduce.h"
#include "client/examples/language_model_net.h"
#include "core/base/status.h"
#include "distributed/cluster/cluster_spec.h"

namespace penstock::examples {

struct LanguageModelFlags {
  TaskConfig task;  // an empty cluster: train in this process
  LanguageModelSize size;
  AllReduceFlags training;
  bool sync = false;  // synchronous: all workers take each step together
  int64_t steps = 2000, batch_size = 32, length_max = 200;
  double learning_rate = 0.002, clip = 5, temperature = 0.7;
  std::string data_dir = "/usr/share/games/fortunes";
  std::string checkpoint_dir;
  double save_every_seconds = 60, wait_seconds = 300;
  int max_failed_saves = 0;
};

// Trains until the last step that the flags name. The chief then evaluates the model on the test
// texts, prints texts sampled from the model, and "test bits per character: 2.345" as its last
// line. Returns Cancelled if a signal ended the training before the last step.
Status TrainLanguageModel(const LanguageModelFlags& flags, const std::string& target);

}  // namespace penstock::examples

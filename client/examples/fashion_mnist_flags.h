// SPDX-License-Identifier: Apache-2.0
//
// The flags of the Fashion-MNIST example.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "client/examples/all_reduce.h"
#include "core/base/status.h"
#include "distributed/cluster/cluster_spec.h"

namespace penstock::examples {

struct Flags {
  TaskConfig task;     // an empty cluster: everything in this process
  std::string server;  // address of this task, if another process serves it
  std::string model = "mlp";
  int64_t steps = 2000;
  int64_t batch_size = 128;
  double learning_rate = 0.001;
  bool sync = false;
  AllReduceFlags training;                  // `strategy` may also be "replicas"
  int64_t replicas_to_aggregate = 0;        // workers whose gradients make an update; 0: all
  std::optional<int64_t> staleness_bound;   // in steps; not set: workers do not wait for others
  std::optional<double> staleness_timeout;  // in seconds; 0: no limit; not set: 60
  bool bfloat16_transfers = false;
  int64_t memory_limit = 0;
  int concurrent_steps = 1;
  std::string trace_file;       // "": nothing is traced
  std::string summary_dir;      // "": no event files
  int64_t summary_steps = 100;  // number of steps between summaries
  int64_t eval_steps = 0;       // number of steps between tests in the training; 0: none
  bool evaluate = false;        // only test the checkpoints of another training
  bool tensorboard = false;
  std::string checkpoint_dir;
  int64_t save_every_steps = 0;
  double save_every_seconds = 60;
  int max_failed_saves = 0;
  std::string input = "idx";  // or tfrecord
  std::string data_dir = "/usr/share/datasets/fashion-mnist";
  int64_t seed = 1;
  double wait_seconds = 300;

  bool replicas() const { return training.strategy == "replicas"; }
  bool all_reduce() const { return training.all_reduce(); }
  bool is_chief() const { return !distributed() || task.is_chief(); }
  bool distributed() const { return !task.cluster.empty(); }
  int num_tasks(const std::string& job) const;
};

// Parses the command line; if no flag names the cluster, reads it from TF_CONFIG in the
// environment. For --help, prints the help and returns nullopt. The message of an InvalidArgument
// is one line that names the flag and says what to write instead.
StatusOr<std::optional<Flags>> ParseFlags(int argc, char** argv);

}  // namespace penstock::examples

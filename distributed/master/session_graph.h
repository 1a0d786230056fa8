// SPDX-License-Identifier: Apache-2.0
//
// SessionGraph: the graph of one session, and how its steps are compiled: with the costs measured
// so far, and the devices that automatic placement has chosen for the session's state.
//
// Thread-safe. Several threads may compile at the same time; Extend and Clear wait for them, and
// block later ones. Locks: mu_ is locked before the mutexes of AutoPlacement and MeasuredCosts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "core/compiler/pass/compile_report.h"
#include "core/graph/graph.h"
#include "distributed/master/auto_placement.h"
#include "distributed/master/measured_costs.h"
#include "distributed/master/prepared_step.h"
#include "distributed/session/session.h"
#include "distributed/worker/training_program.h"

namespace penstock {

class SessionGraph {
 public:
  struct Options {
    SessionOptions session;
    const Registry* registry = nullptr;
    std::string task;                 // the master's own
    std::vector<DeviceInfo> devices;  // the devices of all tasks; the first one is the client's
    Env* env = nullptr;
    Scheduler* threads = nullptr;
  };
  explicit SessionGraph(Options options);

  // Changes the graph by `add`, which must leave the graph unchanged if it fails. Returns the new
  // version. Aborted if `expected_version` >= 0 is not the present version.
  StatusOr<int64_t> Extend(int64_t expected_version, absl::FunctionRef<Status(Graph*)> add)
      ABSL_LOCKS_EXCLUDED(mu_);
  int64_t version() const ABSL_LOCKS_EXCLUDED(mu_);
  // Frees the graph's nodes.
  void Clear() ABSL_LOCKS_EXCLUDED(mu_);

  struct Compiled {
    std::vector<Partition> partitions;
    bool has_choice = false;      // true if costs have decided where a node runs
    bool placement_kept = false;  // true if no node has moved since the step's last placement
    TrainingProgram program;      // empty in a cluster of one task
  };
  // Compiles a step that is being prepared, and sets its fields about feeds, costs and placement.
  // Expects in its `expected_shapes` the shapes of the fed values, if they are known. NotFound if
  // the graph lacks a name.
  StatusOr<Compiled> Compile(PreparedStep* step) ABSL_LOCKS_EXCLUDED(mu_);
  // Predicts how long a prepared step takes, with these costs; null: estimates only.
  Status Predict(const PreparedStep& step, const CostTable* costs, CompileReport* report)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the graphs of a prepared step's partitions.
  StatusOr<PreparedStep::Graphs> PartitionGraphs(const PreparedStep& step) ABSL_LOCKS_EXCLUDED(mu_);
  // Does the same as PartitionGraphs, but compiles the graphs only once, and keeps them in the
  // step. Returns null if compiling fails.
  std::shared_ptr<const PreparedStep::Graphs> KeptGraphs(PreparedStep& step)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Records the costs of a traced step.
  void RecordCosts(const std::vector<DeviceStats>& stats,
                   const MeasuredCosts::ClocksAhead& clocks_ahead) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns all measured costs; null if nothing was measured.
  std::shared_ptr<const CostTable> costs() const { return costs_.Get(); }

 private:
  StatusOr<std::vector<PreparedStep::Feed>> FeedsOf(const PreparedStep& step) const
      ABSL_LOCKS_EXCLUDED(mu_);
  StatusOr<std::vector<std::vector<int>>> FeedsOfFetches(const PreparedStep& step) const
      ABSL_LOCKS_EXCLUDED(mu_);
  int64_t MemoryLimitOf(const PreparedStep& step) const;
  StatusOr<CompileOptions> OptionsOf(const PreparedStep& step) const;
  StatusOr<std::vector<Partition>> CompileWith(const PreparedStep& step, CompileOptions options,
                                               CompileReport* report) ABSL_LOCKS_EXCLUDED(mu_);
  void LogPlacement(const std::vector<Partition>& partitions) const;
  // Returns whether several tasks have devices.
  bool IsCluster() const;

  const Options options_;
  const bool places_automatically_;
  AutoPlacement placement_;
  MeasuredCosts costs_;

  mutable SharedMutex mu_;
  Graph graph_ ABSL_GUARDED_BY(mu_);
  int64_t version_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace penstock

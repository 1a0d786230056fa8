// SPDX-License-Identifier: Apache-2.0
//
// SimProcess: one process of a simulated cluster: a task with its files, timers and witness; and
// its Replica, if two processes form a parameter server.
//
// A killed process continues to run, but without effect: its messages are dropped, and its file
// operations fail. So all of its code ends soon, and then the SimProcess is destroyed.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/sim/sim_files.h"
#include "distributed/replica/replica.h"
#include "distributed/replica/witness.h"
#include "distributed/sim/sim_memory.h"
#include "distributed/sim/sim_network.h"

namespace penstock::simulation {

// The Env of a process: the simulated clock, a disk that all processes share, and the process's own
// wall clock.
class ProcessEnv final : public Env {
 public:
  ProcessEnv(SimScheduler& scheduler, SimFiles& files) : scheduler_(scheduler), files_(files) {}

  void Kill() { *alive_ = false; }
  bool alive() const { return *alive_; }
  void JumpWallClock(int64_t micros) { wall_offset_micros_ += micros; }

  int64_t NowNanos() override { return scheduler_.now_ns(); }
  int64_t WallMicros() override {
    return 1'577'836'800'000'000 + scheduler_.now_ns() / 1'000 + wall_offset_micros_;
  }
  void SleepForNanos(int64_t nanos) override { scheduler_.SleepUntil(NowNanos() + nanos); }
  uint64_t RandomU64() override { return scheduler_.Random(); }

  StatusOr<std::unique_ptr<WritableFile>> NewWritableFile(const std::string& path) override;
  StatusOr<std::unique_ptr<RandomAccessFile>> OpenFile(const std::string& path) override;
  StatusOr<std::string> ReadFile(const std::string& path) override;
  bool FileExists(const std::string& path) override;
  StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) override;
  Status CreateDirectories(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status RemoveFile(const std::string& path) override;
  Status RemoveDirectory(const std::string& path) override;
  Status SyncDirectory(const std::string& path) override;

 private:
  class File;
  Status Check() const;
  Status RenameIndexFirst(const std::string& from, const std::string& to);

  SimScheduler& scheduler_;
  SimFiles& files_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  int64_t wall_offset_micros_ = 0;
  // (from, to): renames of data shards that the planted bug kIndexFirst delays until the index is
  // renamed
  std::vector<std::pair<std::string, std::string>> late_renames_;
};

// The objects that the processes of a cluster share. All are borrowed.
struct SimMachine {
  SimScheduler* scheduler = nullptr;
  SimFiles* files = nullptr;
  SimNetwork* network = nullptr;
  const ClusterSpec* cluster = nullptr;
  // Returns the live process at the address, or null.
  std::function<class SimProcess*(const std::string& address)> find;
  // A replica calls this when it must end, together with its process.
  std::function<void(class SimProcess&)> fenced;
  std::function<void(const std::string& line)> say;
};

class SimProcess {
 public:
  // Starts to serve. `replica` is 0 or 1.
  SimProcess(const SimMachine& machine, const std::string& job, int index, int replica);
  ~SimProcess();

  const SimEnd& end() const { return end_; }
  const std::string& host() const { return end_.host; }
  int replica_index() const { return replica_index_; }
  ProcessEnv& env() { return env_; }
  Task& task() { return *task_; }
  bool alive() const { return env_.alive(); }
  Witness& witness() { return witness_; }
  // Returns the replica; null if the task has only one process.
  Replica* replica() { return replica_.get(); }
  // The numbers of steps that have begun and ended here; counted only if there is a replica.
  struct StepCounts {
    int64_t begun = 0, ended = 0;
  };
  StepCounts step_counts() const { return step_counts_; }
  const std::string job;
  const int index;

  // From now on the process's actions have no effect. `silent`: whether its peers get no notice.
  void Kill(bool silent);
  // Ends everything that runs in the process, also after Kill. Blocks.
  void Stop();

 private:
  class CountingGate;
  std::unique_ptr<ReplicaClient> ClientOf(const std::string& address, bool witness);
  void MakeReplica(const std::string& other);

  const SimMachine machine_;
  const int replica_index_;
  ProcessEnv env_;
  const std::unique_ptr<DeadlineTimer> timer_;
  const std::unique_ptr<Transport> transport_;
  const MemoryAccountPtr account_;
  std::unique_ptr<ReplicaLog> log_;
  StepCounts step_counts_;
  std::unique_ptr<CountingGate> gate_;
  std::unique_ptr<Task> task_;
  std::unique_ptr<Replica> replica_;
  Witness witness_;
  SimEnd end_;
};

}  // namespace penstock::simulation

// SPDX-License-Identifier: Apache-2.0
//
// SimProcess: one process of a simulated cluster: a task with its files, timers, witness and, if it
// is one of two that are a parameter server, its replica.
//
// A process that was killed goes on without effect: what it sends is dropped, and its files fail.
// So everything that it runs comes to an end. It is destroyed when nothing of it runs any more.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/sim/sim_files.h"
#include "distributed/replica/replica.h"
#include "distributed/replica/witness.h"
#include "distributed/transport/sim/sim_network.h"

namespace penstock::simulation {

// The Env of a process: the simulated clock, a disk that all share, and a wall clock of its own.
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
  std::vector<std::pair<std::string, std::string>> late_renames_;  // of a planted bug
};

// The parts that the processes of a cluster share. All borrowed.
struct SimMachine {
  SimScheduler* scheduler = nullptr;
  SimFiles* files = nullptr;
  SimNetwork* network = nullptr;
  const ClusterSpec* cluster = nullptr;
  // The process that is alive at the address, or null.
  std::function<class SimProcess*(const std::string& address)> find;
  // Called by a replica that has to end with its process.
  std::function<void(class SimProcess&)> fenced;
  std::function<void(const std::string& line)> say;
};

class SimProcess {
 public:
  // `replica`: 0 or 1. Starts serving.
  SimProcess(const SimMachine& machine, const std::string& job, int index, int replica);
  ~SimProcess();

  const SimEnd& end() const { return end_; }
  const std::string& host() const { return end_.host; }
  int replica_index() const { return replica_index_; }
  ProcessEnv& env() { return env_; }
  Task& task() { return *task_; }
  bool alive() const { return env_.alive(); }
  Witness& witness() { return witness_; }
  // Null if its task has one process.
  Replica* replica() { return replica_.get(); }
  const std::string job;
  const int index;

  // From now on nothing that it does has any effect.
  void Kill(bool silent);
  // Ends what runs in it, also after Kill. Blocks.
  void Stop();

 private:
  std::unique_ptr<ReplicaClient> ClientOf(const std::string& address, bool witness);
  void MakeReplica(const std::string& other);

  const SimMachine machine_;
  const int replica_index_;
  ProcessEnv env_;
  const std::unique_ptr<DeadlineTimer> timer_;
  const std::unique_ptr<Transport> transport_;
  std::unique_ptr<ReplicaLog> log_;
  std::unique_ptr<Task> task_;
  std::unique_ptr<Replica> replica_;
  Witness witness_;
  SimEnd end_;
};

}  // namespace penstock::simulation

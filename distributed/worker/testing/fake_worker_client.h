// SPDX-License-Identifier: Apache-2.0
//
// FakeWorkerClient: for tests of masters, a worker whose answers the test sets. It records each
// call. Not thread-safe: for one thread, or a simulated scheduler.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "distributed/worker/worker_client.h"

namespace penstock {

class FakeWorkerClient final : public WorkerClient {
 public:
  struct StatusCall {
    StatusQuestion question;
    CallOptions options;
  };
  struct RunCall {
    RunGraphArgs args;
    CallOptions options;
  };

  // The answer to GetStatus. While `holds_status` is true, only AnswerHeld gives it.
  StatusOr<TaskStatus> status = Unavailable("not set");
  bool holds_status = false;
  void AnswerHeld() {
    for (StatusAnswer& answer : std::exchange(held_, {})) std::move(answer)(status);
  }
  // The answers to CreateSession, RegisterGraph and AbortStep.
  Status create_answer, register_answer, abort_answer;
  int64_t register_timeout_ms = 0;  // of the last RegisterGraph
  // If this is an error, each step ends with it at once; else a step runs until EndStep.
  Status run_error;
  void EndStep(int64_t step_id, const Status& with) {
    auto found = running_.extract(step_id);
    if (!found.empty()) std::move(found.mapped())(with);
  }
  bool Runs(int64_t step_id) const { return running_.count(step_id) > 0; }

  std::vector<StatusCall> status_calls;
  std::vector<RunCall> run_calls;
  std::vector<std::string>
      log;  // the calls without a list of their own: "AbortStep 7: CANCELLED: why"

  void GetStatus(const StatusQuestion& question, const CallOptions& options,
                 StatusAnswer answer) override {
    status_calls.push_back({question, options});
    if (holds_status) {
      held_.push_back(std::move(answer));
    } else {
      std::move(answer)(status);
    }
  }
  void CreateSession(const WorkerSessionOptions& session, const CallOptions& options,
                     Done done) override {
    log.push_back(StrCat("CreateSession ", session.handle));
    std::move(done)(create_answer);
  }
  void DeleteSession(const std::string& session, const CallOptions& options, Done done) override {
    Log(std::move(done), "DeleteSession ", session);
  }
  void RegisterGraph(const std::string& session, uint64_t graph, std::vector<Partition> partitions,
                     const TrainingProgram& program, const CallOptions& options,
                     Done done) override {
    log.push_back(StrCat("RegisterGraph ", session, " ", graph));
    register_timeout_ms = options.timeout_ms;
    std::move(done)(register_answer);
  }
  void DeregisterGraph(const std::string& session, uint64_t graph, const CallOptions& options,
                       Done done) override {
    Log(std::move(done), "DeregisterGraph ", session, " ", graph);
  }
  void RunGraph(const RunGraphArgs& args, const CallOptions& options, Done done) override {
    run_calls.push_back({args, options});
    if (!run_error.ok()) return std::move(done)(run_error);
    running_.emplace(args.step_id, std::move(done));
  }
  void AbortStep(int64_t step_id, const Status& why, const CallOptions& options,
                 Done done) override {
    log.push_back(StrCat("AbortStep ", step_id, ": ",
                         why.ToString(absl::StatusToStringMode::kWithNoExtraData)));
    std::move(done)(abort_answer);
  }
  void AbandonStep(int64_t step_id) override {
    log.push_back(StrCat("AbandonStep ", step_id));
    EndStep(step_id, Cancelled("abandoned"));
  }
  void Reset(const std::vector<std::string>& containers, const CallOptions& options,
             Done done) override {
    Log(std::move(done), "Reset of ", containers.size());
  }
  void Shutdown(const std::string& reason, const CallOptions& options, Done done) override {
    Log(std::move(done), "Shutdown: ", reason);
  }

 private:
  template <class... Parts>
  void Log(Done done, const Parts&... parts) {
    log.push_back(StrCat(parts...));
    std::move(done)(OkStatus());
  }

  std::vector<StatusAnswer> held_;
  std::map<int64_t, Done> running_;
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/trace_calls.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/join.h"
#include "core/base/mutex.h"
#include "core/op/task_name.h"
#include "distributed/calls/status_proto.h"
#include "distributed/calls/unary_call.h"
#include "distributed/rpc/value_proto.h"
#include "proto/penstock/insight.grpc.pb.h"

namespace penstock {
namespace {

constexpr int64_t kNanosPerMilli = 1'000'000;
constexpr int64_t kLookNanos = 100 * kNanosPerMilli;
// The number of times that a trace reads the other tasks' clocks, in addition to the heartbeats,
// which may be seconds apart and have slow round trips.
constexpr int kClockReadings = 5;
constexpr int64_t kClockPauseNanos = 20 * kNanosPerMilli;
// The time that a task may take to answer after its timeout has passed.
constexpr int64_t kAnswerMs = 5'000;

Status Check(const wire::TraceRequest& request) {
  const bool records = !request.roads_only();
  if (records && (request.steps() < 1 || request.steps() > StepRecorder::kStepsMax)) {
    return InvalidArgument("steps: ", request.steps(), ", expected 1 to ", StepRecorder::kStepsMax);
  }
  if (request.timeout_ms() < 1 || request.timeout_ms() > kTraceTimeoutMsMax) {
    return InvalidArgument("timeout_ms: ", request.timeout_ms(), ", expected 1 to ",
                           kTraceTimeoutMsMax);
  }
  return OkStatus();
}

// Calls a function when something is cancelled, until this object is destroyed.
class OnCancel {
 public:
  OnCancel(Cancellation* cancellation, const std::function<void()>& cancelled)
      : cancellation_(cancellation),
        registered_(cancellation->Register([cancelled](const Status&) { cancelled(); }, &token_)) {
    if (!registered_) cancelled();
  }
  ~OnCancel() {
    if (registered_) cancellation_->Deregister(token_);
  }
  OnCancel(const OnCancel&) = delete;
  OnCancel& operator=(const OnCancel&) = delete;

 private:
  Cancellation* const cancellation_;
  Cancellation::Token token_ = 0;
  const bool registered_;
};

// Waits for the steps of one recording. Wait returns "" if they have all ended, else the reason why
// some are missing.
class Watch {
 public:
  Watch(const TraceServices& services, StepRecorder::Recording* recording, int64_t deadline_ns)
      : services_(services),
        recording_(*recording),
        deadline_ns_(deadline_ns),
        active_ns_(services.env->NowNanos()) {}

  std::string Wait() {
    while (true) {
      const int64_t now_ns = services_.env->NowNanos();
      if (recording_.Wait(std::min(deadline_ns_, now_ns + kLookNanos))) return recording_.cut();
      const std::string why = ReasonToStop();
      if (!why.empty()) return why;
    }
  }

 private:
  std::string ReasonToStop() {
    const int64_t now_ns = services_.env->NowNanos();
    const auto sessions = services_.task->master().sessions();
    if (sessions.empty()) return "it has no session";
    const bool runs = recording_.under_way() > 0 ||
                      std::any_of(sessions.begin(), sessions.end(), [](const auto& session) {
                        return !session->running_steps().empty();
                      });
    const int64_t begun = recording_.begun();
    if (runs || begun != begun_) active_ns_ = now_ns;
    begun_ = begun;
    if (now_ns >= deadline_ns_) return "the others did not end in time";
    if (now_ns - active_ns_ >= kTraceIdleNanos) {
      return StrCat("no more ran for ", kTraceIdleNanos / 1'000'000'000, " s");
    }
    return "";
  }

  const TraceServices& services_;
  StepRecorder::Recording& recording_;
  const int64_t deadline_ns_;
  int64_t active_ns_;
  int64_t begun_ = 0;
};

// Reads the other tasks' clocks several times, so that the offsets are accurate.
void ReadClocks(const TraceServices& services, Cancellation* cancellation) {
  for (int i = 0; i < kClockReadings && !cancellation->cancelled(); ++i) {
    services.task->master().ReadClocks();
    services.threads->SleepUntil(services.env->NowNanos() + kClockPauseNanos,
                                 "the answers about the tasks' clocks");
  }
}

void AddClocks(const TraceServices& services, wire::TaskTrace* trace) {
  for (const HealthMonitor::Peer& peer : services.task->master().peers()) {
    if (!peer.clock.has_value()) continue;
    wire::ClockReading* const reading = trace->add_clock();
    reading->set_task(peer.task.name);
    reading->set_offset_ns(peer.clock->offset_ns);
    reading->set_error_ns(peer.clock->error_ns);
  }
}

void AddProtocols(const TraceServices& services, wire::TaskTrace* trace) {
  for (const auto& [job, tasks] : services.task->master().cluster().jobs()) {
    for (const auto& [index, address] : tasks) {
      const std::string name = TaskName{.job = job, .task = index}.ToString();
      const std::string protocol = services.task->worker().ProtocolFrom(name);
      if (name == services.task->self().name || protocol.empty()) continue;
      wire::Road* const road = trace->add_road();
      road->set_from(name);
      road->set_protocol(protocol);
    }
  }
}

void AddStep(RecordedStep step, wire::TaskTrace* trace) {
  wire::RecordedStep* const recorded = trace->add_step();
  recorded->set_session(step.session);
  for (const std::string& fetch : step.fetches) recorded->add_fetch(fetch);
  for (const std::string& target : step.targets) recorded->add_target(target);
  recorded->set_start_ns(step.start_ns);
  recorded->set_end_ns(step.end_ns);
  ToProto(step.devices, recorded->mutable_stats());
}

// The pending calls to other tasks, which Cancel cancels.
class Calls {
 public:
  void Add(grpc::ClientContext* context) {
    MutexLock lock(mu_);
    if (cancelled_) context->TryCancel();
    contexts_.insert(context);
  }
  void Remove(grpc::ClientContext* context) {
    MutexLock lock(mu_);
    contexts_.erase(context);
  }
  void Cancel() {
    MutexLock lock(mu_);
    cancelled_ = true;
    for (grpc::ClientContext* const context : contexts_) context->TryCancel();
  }

 private:
  Mutex mu_;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  std::set<grpc::ClientContext*> contexts_ ABSL_GUARDED_BY(mu_);
};

// Asks the process at `address` for its trace. Calls `part` after it has written the trace, or the
// error, to `traced`.
void AskProcess(const TraceServices& services, const wire::TraceRequest& request,
                const std::string& address, Calls* calls, wire::TracedTask* traced, Done part) {
  const auto stub = std::make_shared<wire::Insight::Stub>(services.channels->To(address));
  const auto asked = std::make_shared<grpc::ClientContext*>(nullptr);
  ClientCall<wire::TaskTrace>::Start(
      *services.loop, traced->name(), request.timeout_ms() + kAnswerMs,
      [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
        *asked = context;
        calls->Add(context);
        return stub->PrepareAsyncTraceTask(context, request, queue);
      },
      [stub, calls, traced, asked, part = std::move(part)](const Status& status,
                                                           wire::TaskTrace& answer) mutable {
        calls->Remove(*asked);
        if (status.ok()) {
          *traced->mutable_trace() = std::move(answer);
        } else {
          ToProto(status, traced->mutable_error());
        }
        std::move(part)(OkStatus());
      });
}

}  // namespace

StatusOr<wire::TaskTrace> TraceTask(const TraceServices& services,
                                    const wire::TraceRequest& request, Cancellation* cancellation) {
  RETURN_IF_ERROR(Check(request));
  wire::TaskTrace trace;
  if (request.roads_only()) {
    AddProtocols(services, &trace);
    return trace;
  }
  Master& master = services.task->master();
  trace.set_sessions(static_cast<int64_t>(master.sessions().size()));
  if (trace.sessions() > 0) {
    const int64_t deadline_ns = services.env->NowNanos() + request.timeout_ms() * kNanosPerMilli;
    ASSIGN_OR_RETURN(const auto recording, master.recorder().Begin({.steps = request.steps()}));
    {
      const OnCancel stop(cancellation, [recording] { recording->Cancel(); });
      trace.set_cut(Watch(services, recording.get(), deadline_ns).Wait());
    }
    master.recorder().End(recording);
    trace.set_steps_begun(recording->begun());
    for (RecordedStep& step : recording->TakeSteps()) AddStep(std::move(step), &trace);
    ReadClocks(services, cancellation);
    if (cancellation->cancelled()) return cancellation->status();
  }
  AddClocks(services, &trace);
  AddProtocols(services, &trace);
  return trace;
}

StatusOr<wire::ClusterTrace> TraceCluster(const TraceServices& services,
                                          const wire::TraceRequest& request,
                                          Cancellation* cancellation) {
  RETURN_IF_ERROR(Check(request));
  const TaskId& self = services.task->self();
  const ClusterSpec& cluster = services.task->master().cluster();
  wire::ClusterTrace trace;
  trace.set_asked(self.name);
  std::vector<std::string> addresses;  // the addresses of trace.task(), in its order
  for (const auto& [job, tasks] : cluster.jobs()) {
    for (const auto& [index, address] : tasks) {
      for (const std::string& process : {address, cluster.ReplicaAddress(job, index)}) {
        if (process.empty()) continue;
        trace.add_task()->set_name(TaskName{.job = job, .task = index}.ToString());
        addresses.push_back(process);
      }
    }
  }
  Calls calls;
  Wait others(*services.threads, "the traces of the other tasks");
  const OnCancel stop(cancellation, [&calls] { calls.Cancel(); });
  wire::TracedTask* own = nullptr;
  {
    const auto join = std::make_shared<Join>(others.done());
    for (int i = 0; i < trace.task_size(); ++i) {
      wire::TracedTask* const task = trace.mutable_task(i);
      // If a task has one process, does not compare addresses: the system may have chosen the port.
      const bool one_process =
          std::count_if(trace.task().begin(), trace.task().end(),
                        [&](const auto& other) { return other.name() == task->name(); }) == 1;
      if (task->name() == self.name && (one_process || addresses[i] == self.address)) {
        own = task;
      } else {
        AskProcess(services, request, addresses[i], &calls, task, Join::Part(join));
      }
    }
  }
  Status refused;
  if (own != nullptr) {
    auto traced = TraceTask(services, request, cancellation);
    if (traced.ok()) {
      *own->mutable_trace() = *std::move(traced);
    } else {
      refused = traced.status();
      ToProto(refused, own->mutable_error());
      calls.Cancel();
    }
  }
  (void)others.Get();
  if (cancellation->cancelled()) return cancellation->status();
  RETURN_IF_ERROR(refused);
  return trace;
}

}  // namespace penstock

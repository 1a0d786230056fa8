// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/task_report.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/blocking_calls.h"
#include "core/base/version.h"
#include "core/checkpoint/finished_checkpoints.h"
#include "core/op/awaited_variables.h"
#include "core/op/element_holder.h"
#include "core/op/noted_staleness.h"
#include "core/op/variable.h"
#include "distributed/insight/part_report.h"

namespace penstock {
namespace {

constexpr int64_t kNanosPerMilli = 1'000'000;
// The maximum number of variables in a report, which lists the largest ones; and the maximum number
// of queues in it that no node waits for.
constexpr size_t kVariablesMax = 20;
constexpr int kQueuesMax = 100;

void SetError(const Status& status, wire::Error* error) {
  error->set_code(static_cast<tensorflow::error::Code>(status.code()));
  error->set_message(std::string(status.message()));
}

int64_t ResidentBytes(Env& env) {
  const StatusOr<std::string> pages = env.ReadFile("/proc/self/statm");  // "TOTAL RESIDENT ..."
  if (!pages.ok()) return 0;
  const std::vector<string_view> fields = absl::StrSplit(*pages, ' ');
  int64_t resident = 0;
  if (fields.size() < 2 || !absl::SimpleAtoi(fields[1], &resident)) return 0;
  return resident * sysconf(_SC_PAGESIZE);
}

class Reporter {
 public:
  Reporter(Task& task, Env& env) : task_(task), env_(env), now_ns_(env.NowNanos()) {}

  wire::TaskReport Report() {
    AddTask();
    AddSessions();
    AddSteps();
    AddStaleness();
    AddParts();
    AddResources();
    AddPeers();
    return std::move(report_);
  }

 private:
  using ResourceKey = std::tuple<std::string, std::string, std::string>;
  static ResourceKey KeyOf(const wire::ResourceName& name) {
    return {name.device(), name.container(), name.name()};
  }
  int64_t AgeMs(int64_t since_ns) const { return (now_ns_ - since_ns) / kNanosPerMilli; }

  void AddTask() {
    wire::TaskIncarnation* const self = report_.mutable_self();
    self->set_task(task_.self().name);
    self->set_address(task_.self().address);
    self->set_incarnation(task_.self().incarnation);
    report_.set_version(kVersion);
    report_.set_uptime_ms(task_.uptime_ns() / kNanosPerMilli);
    report_.set_memory_bytes(ResidentBytes(env_));
    for (const FinishedCheckpoint& last : LastCheckpoints()) {
      wire::CheckpointReport* const checkpoint = report_.add_checkpoint();
      checkpoint->set_path(last.path);
      checkpoint->set_step(last.step);
      checkpoint->set_age_ms(AgeMs(last.finished_ns));
    }
    AddFailedSaves();
    AddAwaitedVariables();
    AddMemory();
    for (std::string& difference : task_.worker().program_differences()) {
      report_.add_program_difference(std::move(difference));
    }
    for (std::string& call : BlockingCall::List(env_)) report_.add_blocking_call(std::move(call));
    for (const auto& [to, sent] : task_.worker().steps().SentTo()) {
      wire::SentReport* const report = report_.add_sent();
      report->set_to(to.ToString());
      report->set_bytes(sent.bytes);
      report->set_tensors(sent.tensors);
    }
  }

  void AddFailedSaves() {
    for (const FailedSave& failed : FailedSaves()) {
      wire::FailedSaveReport* const report = report_.add_failed_save();
      report->set_path(failed.path);
      report->set_step(failed.step);
      report->set_node(failed.node);
      SetError(failed.status, report->mutable_error());
      report->set_age_ms(AgeMs(failed.failed_ns));
      report->set_first_age_ms(AgeMs(failed.first_failed_ns));
      report->set_times(failed.times);
    }
  }

  // Leaves out variables that have a value by now, and variables of other tasks of this process.
  void AddAwaitedVariables() {
    for (const AwaitedVariable& awaited : AwaitedVariables()) {
      const std::vector<Worker::Store> stores = task_.worker().stores();
      const bool own = std::any_of(stores.begin(), stores.end(), [&](const Worker::Store& store) {
        return store.device == awaited.device;
      });
      const bool has_value =
          std::any_of(stores.begin(), stores.end(), [&](const Worker::Store& store) {
            if (store.device != awaited.device) return false;
            const auto found = store.resources->Lookup(awaited.container, awaited.name);
            if (!found.ok()) return false;
            const auto* const variable = dynamic_cast<const Variable*>(found->get());
            return variable == nullptr || variable->initialized();
          });
      if (!own || has_value) continue;
      wire::AwaitedVariableReport* const report = report_.add_awaited_variable();
      report->mutable_name()->set_device(awaited.device);
      report->mutable_name()->set_container(awaited.container);
      report->mutable_name()->set_name(awaited.name);
      report->set_age_ms(AgeMs(awaited.last_ns));
      report->set_first_age_ms(AgeMs(awaited.first_ns));
      report->set_times(awaited.times);
    }
  }

  void AddMemory() {
    for (const Worker::AllocatorUse& use : task_.worker().allocators()) {
      wire::AllocatorReport* const allocator = report_.add_allocator();
      allocator->set_device(use.device);
      allocator->set_name(use.name);
      allocator->set_bytes_in_use(use.stats.bytes_in_use);
      allocator->set_peak_bytes_in_use(use.stats.peak_bytes_in_use);
      allocator->set_bytes_reserved(use.stats.bytes_reserved);
      allocator->set_allocations(use.stats.num_allocations);
      allocator->set_bytes_limit(use.stats.bytes_limit);
    }
    for (const Worker::SessionUse& use : task_.worker().session_memory()) {
      wire::SessionMemoryReport* const session = report_.add_session_memory();
      session->set_session(use.session);
      session->set_bytes_in_use(use.bytes);
      session->set_peak_bytes_in_use(use.peak_bytes);
      session->set_bytes_limit(use.limit);
    }
  }

  void AddSessions() {
    for (const auto& session : task_.master().sessions()) {
      wire::SessionReport* const report = report_.add_session();
      report->set_handle(session->handle());
      report->set_age_ms(AgeMs(session->created_ns()));
      report->set_idle_ms(session->idle_ns() / kNanosPerMilli);
      report->set_client(session->client());
      report->set_steps_begun(static_cast<int64_t>(session->steps_begun()));
      for (const auto& step : session->running_steps()) AddStep(*step, report->add_step());
    }
    for (const auto& wait : task_.master().waits()) {
      wire::NewSessionReport* const report = report_.add_new_session();
      report->set_age_ms(AgeMs(wait->begun_ns()));
      for (const TaskWait::Task& task : wait->tasks()) report->add_task(task.id.name);
      for (const auto& [task, why] : wait->unanswered()) {
        wire::UnansweredTask* const unanswered = report->add_unanswered();
        unanswered->set_task(task.name);
        SetError(why, unanswered->mutable_error());
      }
    }
  }

  void AddStep(const MasterStep& step, wire::StepReport* report) const {
    report->set_step_id(static_cast<uint64_t>(step.id()));
    report->set_age_ms(AgeMs(step.begun_ns()));
    const CallableSpec& names = step.prepared().names();
    for (const std::string& fetch : names.fetches) report->add_fetch(fetch);
    for (const std::string& target : names.targets) report->add_target(target);
    for (const TaskId& task : step.UnfinishedTasks()) report->add_running_in(task.name);
  }

  void AddSteps() {
    const Master& master = task_.master();
    wire::StepCounts* const steps = report_.mutable_steps();
    steps->set_begun(static_cast<int64_t>(master.steps_begun()));
    steps->set_per_second(master.steps_per_second());
    const StepCounters& counters = master.counters();
    for (const auto& [code, count] : counters.failed()) {
      (*steps->mutable_failed())[absl::StatusCodeToString(code)] = static_cast<int64_t>(count);
    }
    for (const double bound : StepCounters::kBounds) steps->add_bound(bound);
    for (const uint64_t count : counters.buckets()) steps->add_count(static_cast<int64_t>(count));
    steps->set_seconds(counters.seconds());
  }

  void AddStaleness() {
    // An isolated session has stores of its own, with the names of the task's devices.
    std::set<std::string> devices;
    for (const Worker::Store& store : task_.worker().stores()) devices.insert(store.device);
    NotedStaleness all;
    for (const std::string& device : devices) {
      const NotedStaleness noted = StalenessOf(device);
      for (size_t i = 0; i < noted.counts.size(); ++i) all.counts[i] += noted.counts[i];
      all.sum += noted.sum;
    }
    if (std::accumulate(all.counts.begin(), all.counts.end(), int64_t{0}) == 0) return;
    wire::StalenessReport* const report = report_.mutable_staleness();
    for (const int64_t bound : NotedStaleness::kBounds) report->add_bound(bound);
    for (const int64_t count : all.counts) report->add_count(count);
    report->set_sum(all.sum);
  }

  void AddParts() {
    std::map<int64_t, wire::PartReport> parts;
    for (const auto& step : task_.worker().steps().steps()) {
      wire::PartReport& part = parts[step->id()];
      part.set_session(step->session());
      part.set_age_ms(AgeMs(step->begun_ns()));
      for (const auto& [consumer, tensors] : step->WaitingForSubscription()) {
        part.add_unasked_by(consumer.ToString());
      }
    }
    for (const Worker::RegisteredGraph& registered : task_.worker().graphs()) {
      for (const WorkerGraph::Part& part : registered.graph->parts()) {
        for (const StepActivity& activity : part.executor->Activities()) {
          const auto [it, first] = parts.try_emplace(activity.step_id);
          if (first) {
            it->second.set_session(registered.session);
            it->second.set_age_ms(-1);
          }
          AddActivity(part.executor->graph(), part.executor->device().name(), activity, now_ns_,
                      &it->second);
        }
      }
    }
    for (auto& [id, part] : parts) {
      part.set_step_id(static_cast<uint64_t>(id));
      for (const wire::WaitReport& wait : part.wait()) {
        if (wait.has_resource()) waited_for_[KeyOf(wait.resource())] = true;
      }
      *report_.add_part() = std::move(part);
    }
  }

  void AddResources() {
    std::vector<wire::ResourceReport> variables;
    int queues = 0;
    for (const Worker::Store& store : task_.worker().stores()) {
      for (const auto& [container, name] : store.resources->List()) {
        const auto found = store.resources->Lookup(container, name);
        if (!found.ok()) continue;  // the resource was removed meanwhile
        wire::ResourceReport report;
        report.mutable_name()->set_device(store.device);
        report.mutable_name()->set_container(container);
        report.mutable_name()->set_name(name);
        report.set_type((*found)->TypeName());
        if (const auto* const variable = dynamic_cast<const Variable*>(found->get())) {
          report.set_bytes(BytesOf(*variable));
          report_.set_variables(report_.variables() + 1);
          report_.set_variable_bytes(report_.variable_bytes() + report.bytes());
          variables.push_back(std::move(report));
          continue;
        }
        const auto* const holder = dynamic_cast<const ElementHolder*>(found->get());
        const bool waited_for = waited_for_.count(KeyOf(report.name())) > 0;
        if (!waited_for && (holder == nullptr || ++queues > kQueuesMax)) continue;
        report.set_text((*found)->DebugString());
        if (holder != nullptr) AddCount(holder->element_count(), report.mutable_queue());
        *report_.add_resource() = std::move(report);
      }
    }
    const size_t shown = std::min(variables.size(), kVariablesMax);
    std::partial_sort(variables.begin(), variables.begin() + static_cast<ptrdiff_t>(shown),
                      variables.end(),
                      [](const auto& a, const auto& b) { return a.bytes() > b.bytes(); });
    for (size_t i = 0; i < shown; ++i) *report_.add_resource() = std::move(variables[i]);
  }

  static int64_t BytesOf(const Variable& variable) {
    int64_t bytes = 0;
    const auto count = [&](const Tensor& value) {
      bytes = static_cast<int64_t>(value.bytes());
      return OkStatus();
    };
    (void)variable.Inspect(count);  // 0 if it has no value yet
    return bytes;
  }

  static void AddCount(const ElementCount& count, wire::QueueReport* report) {
    report->set_size(count.size);
    report->set_capacity(count.capacity);
    report->set_closed(count.closed);
    report->set_waiting_puts(count.waiting_puts);
    report->set_waiting_takes(count.waiting_takes);
  }

  void AddPeers() {
    for (const HealthMonitor::Peer& peer : task_.master().peers()) {
      wire::PeerReport* const report = report_.add_peer();
      report->set_task(peer.task.name);
      report->set_incarnation(peer.task.incarnation);
      report->set_heartbeats_missed(peer.misses);
      report->set_silent_ms(AgeMs(peer.last_heard_ns));
      if (!peer.status.ok()) SetError(peer.status, report->mutable_lost());
    }
  }

  Task& task_;
  Env& env_;
  const int64_t now_ns_;
  wire::TaskReport report_;
  std::map<ResourceKey, bool> waited_for_;
};

}  // namespace

wire::TaskReport ReportTask(Task& task, Env& env) { return Reporter(task, env).Report(); }

}  // namespace penstock

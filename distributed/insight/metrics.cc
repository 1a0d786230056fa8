// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/metrics.h"

#include <prometheus/text_serializer.h>

#include <utility>
#include <vector>

namespace penstock {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

class Metrics {
 public:
  explicit Metrics(const wire::TaskReport& task) : task_(task) {}

  std::string Text() {
    AddTask();
    AddSteps();
    AddPeers();
    AddReplica();
    AddCheckpoints();
    AddResources();
    return prometheus::TextSerializer().Serialize(families_);
  }

 private:
  MetricFamily& Family(const char* name, const char* help, MetricType type) {
    families_.push_back({name, help, type, {}});
    return families_.back();
  }
  static void Add(MetricFamily& family, double value, Labels labels = {}) {
    ClientMetric metric;
    metric.label = std::move(labels);
    metric.counter.value = value;
    metric.gauge.value = value;
    family.metric.push_back(std::move(metric));
  }
  void Gauge(const char* name, const char* help, int64_t value) {
    Add(Family(name, help, MetricType::Gauge), static_cast<double>(value));
  }
  void Counter(const char* name, const char* help, int64_t value) {
    Add(Family(name, help, MetricType::Counter), static_cast<double>(value));
  }

  void AddTask() {
    Add(Family("penstock_task_info", "The task; the value is 1.", MetricType::Gauge), 1,
        {{"task", task_.self().task()}, {"version", task_.version()}});
    Add(Family("penstock_uptime_seconds", "Time since the task's start.", MetricType::Gauge),
        static_cast<double>(task_.uptime_ms()) / 1000);
    Gauge("penstock_memory_bytes", "Resident memory of the process.", task_.memory_bytes());
    Gauge("penstock_sessions", "Sessions whose master this task is.", task_.session_size());
    Gauge("penstock_new_sessions", "New sessions that wait for tasks.", task_.new_session_size());
    AddSent("penstock_sent_bytes_total", "Bytes of tensors sent to another task.",
            &wire::SentReport::bytes);
    AddSent("penstock_sent_tensors_total", "Tensors sent to another task, empty ones included.",
            &wire::SentReport::tensors);
  }
  void AddSent(const char* name, const char* help, int64_t (wire::SentReport::*value)() const) {
    MetricFamily& family = Family(name, help, MetricType::Counter);
    for (const wire::SentReport& sent : task_.sent()) {
      Add(family, static_cast<double>((sent.*value)()),
          {{"from", task_.self().task()}, {"to", sent.to()}});
    }
  }

  void AddSteps() {
    const wire::StepCounts& steps = task_.steps();
    Counter("penstock_steps_total", "Steps that sessions of this task have begun.", steps.begun());
    Gauge("penstock_steps_running", "Steps of all masters that run in this task now.",
          task_.part_size());
    MetricFamily& failed =
        Family("penstock_steps_failed_total", "Steps that have failed.", MetricType::Counter);
    for (const auto& [code, count] : steps.failed()) {
      Add(failed, static_cast<double>(count), {{"code", code}});
    }
    MetricFamily& seconds =
        Family("penstock_step_seconds",
               "Times of steps, except those that run in their client's own process.",
               MetricType::Histogram);
    ClientMetric metric;
    uint64_t so_far = 0;
    for (int i = 0; i < steps.count_size(); ++i) {
      so_far += static_cast<uint64_t>(steps.count(i));
      // The serializer adds the last bucket, which has no bound.
      if (i < steps.bound_size()) metric.histogram.bucket.push_back({so_far, steps.bound(i)});
    }
    metric.histogram.sample_count = so_far;
    metric.histogram.sample_sum = steps.seconds();
    seconds.metric.push_back(std::move(metric));
  }

  void AddPeers() {
    MetricFamily& alive = Family("penstock_peer_alive",
                                 "1 if this task counts another task as alive.", MetricType::Gauge);
    for (const wire::PeerReport& peer : task_.peer()) {
      Add(alive, peer.has_lost() ? 0 : 1, {{"peer", peer.task()}});
    }
    MetricFamily& silent = Family("penstock_peer_silent_seconds",
                                  "Time since another task's last answer.", MetricType::Gauge);
    for (const wire::PeerReport& peer : task_.peer()) {
      Add(silent, static_cast<double>(peer.silent_ms()) / 1000, {{"peer", peer.task()}});
    }
  }

  void AddReplica() {
    if (!task_.has_replica()) return;
    const wire::ReplicaReport& replica = task_.replica();
    const bool primary = replica.role() == wire::ReplicaReport::PRIMARY;
    Gauge("penstock_replica_primary", "Whether this process is its parameter server's primary.",
          primary);
    if (!primary) return;
    Gauge("penstock_replica_has_follower", "Whether a follower could take over.", replica.whole());
    Gauge("penstock_replica_behind", "Changes that the follower has not acknowledged.",
          static_cast<int64_t>(replica.behind()));
    Gauge("penstock_replica_waiting_steps", "Steps that wait for the follower.",
          replica.waiting_steps());
  }

  void AddCheckpoints() {
    MetricFamily& age = Family("penstock_checkpoint_age_seconds",
                               "Time since an op of this task finished the last checkpoint of a "
                               "path (without the step).",
                               MetricType::Gauge);
    for (const wire::CheckpointReport& last : task_.checkpoint()) {
      Add(age, static_cast<double>(last.age_ms()) / 1000, {{"checkpoint", NameOf(last)}});
    }
    MetricFamily& step =
        Family("penstock_checkpoint_step", "The step in its name; -1: none.", MetricType::Gauge);
    for (const wire::CheckpointReport& last : task_.checkpoint()) {
      Add(step, static_cast<double>(last.step()), {{"checkpoint", NameOf(last)}});
    }
  }
  // Returns the label of a checkpoint. It omits the step; otherwise each checkpoint would create a
  // new time series.
  static std::string NameOf(const wire::CheckpointReport& last) {
    return last.step() < 0 ? last.path() : last.path().substr(0, last.path().rfind('-'));
  }

  void AddResources() {
    Gauge("penstock_variables", "Variables kept here.", task_.variables());
    Gauge("penstock_variables_bytes", "Size of all variables.", task_.variable_bytes());
    MetricFamily& variables = Family(
        "penstock_variable_bytes", "Size of each of the 20 largest variables.", MetricType::Gauge);
    for (const wire::ResourceReport& resource : task_.resource()) {
      if (resource.has_bytes()) {
        Add(variables, static_cast<double>(resource.bytes()), LabelsOf("variable", resource));
      }
    }
    AddQueues("penstock_queue_elements", "Elements in a queue.", &wire::QueueReport::size);
    AddQueues("penstock_queue_capacity", "Capacity of a queue; negative: no limit.",
              &wire::QueueReport::capacity);
    AddQueues("penstock_queue_waiting_puts", "Operations that wait for room.",
              &wire::QueueReport::waiting_puts);
    AddQueues("penstock_queue_waiting_takes", "Operations that wait for elements.",
              &wire::QueueReport::waiting_takes);
  }
  void AddQueues(const char* name, const char* help, int64_t (wire::QueueReport::*value)() const) {
    MetricFamily& family = Family(name, help, MetricType::Gauge);
    for (const wire::ResourceReport& resource : task_.resource()) {
      if (!resource.has_queue()) continue;
      Add(family, static_cast<double>((resource.queue().*value)()), LabelsOf("queue", resource));
    }
  }
  static Labels LabelsOf(const char* what, const wire::ResourceReport& resource) {
    return {{what, resource.name().name()},
            {"container", resource.name().container()},
            {"device", resource.name().device()}};
  }

  const wire::TaskReport& task_;
  std::vector<MetricFamily> families_;
};

}  // namespace

std::string MetricsText(const wire::TaskReport& task) { return Metrics(task).Text(); }

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/status_tables.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/check.h"
#include "distributed/insight/words.h"

namespace penstock {
namespace {

using absl::StrAppend;
using absl::StrCat;

// Returns "alive", "does not answer" or "does not answer, for 4 s".
std::string StateText(const wire::ClusterReport& cluster, const wire::ClusterTask& task) {
  if (!task.has_error()) return "alive";
  int64_t silent_ms = -1;
  for (const wire::ClusterTask& other : cluster.task()) {
    for (const wire::PeerReport& peer : other.report().peer()) {
      if (peer.task() == task.name()) silent_ms = std::max(silent_ms, peer.silent_ms());
    }
  }
  return StrCat("does not answer", ForText(silent_ms));
}

std::string FailedText(const wire::StepCounts& steps) {
  std::vector<std::string> failed;
  for (const auto& [code, count] : steps.failed()) failed.push_back(StrCat(code, " ", count));
  std::sort(failed.begin(), failed.end());  // a Protobuf map has no order
  return failed.empty() ? "0" : absl::StrJoin(failed, ", ");
}

// Returns "primary", "follower" or "looks for its primary"; "" if the task has only one process.
std::string RoleText(const wire::TaskReport& task) {
  if (!task.has_replica()) return "";
  switch (task.replica().role()) {
    case wire::ReplicaReport::PRIMARY:
      return "primary";
    case wire::ReplicaReport::FOLLOWER:
      return "follower";
    default:
      return "looks for its primary";
  }
}

void AddTask(const std::string& name, const std::string& state, const wire::ClusterTask& task,
             StatusTable* table) {
  std::vector<std::string> row = {name, task.address(), state};
  if (task.has_error()) {
    row.resize(table->header.size(), "-");
  } else {
    const wire::TaskReport& report = task.report();
    row.insert(row.end(), {AgeText(report.uptime_ms()), BytesText(report.memory_bytes()),
                           absl::StrFormat("%.1f", report.steps().per_second()),
                           StrCat(report.steps().begun()), FailedText(report.steps()),
                           StrCat(report.part_size()), report.version(),
                           StrCat(absl::Hex(report.self().incarnation(), absl::kZeroPad16))});
  }
  table->rows.push_back(std::move(row));
}

StatusTable Tasks(const wire::ClusterReport& cluster) {
  StatusTable table{.title = "Tasks",
                    .header = {"task", "address", "state", "up", "memory", "steps/s", "steps",
                               "failed", "running here", "version", "incarnation"}};
  for (const wire::ClusterTask& task : cluster.task()) {
    AddTask(ShortTask(task.name()), StateText(cluster, task), task, &table);
    if (!task.has_other_replica()) continue;
    const wire::ClusterTask& other = task.other_replica();
    AddTask(StrCat(ShortTask(task.name()), ", replica"),
            other.has_error() ? "does not answer" : "alive", other, &table);
  }
  return table;
}

// Returns the state of the primary's follower: "has everything", "12 changes behind", "is being
// copied", or "none" with the reason; "-" if this process is not the primary.
std::string FollowerText(const wire::ReplicaReport& primary) {
  if (primary.role() != wire::ReplicaReport::PRIMARY) return "-";
  if (!primary.feeding()) {
    return StrCat("none", primary.cannot_copy().empty() ? "" : ": ", primary.cannot_copy());
  }
  if (!primary.whole()) return "is being copied";
  return primary.behind() == 0 ? "has everything" : StrCat(primary.behind(), " changes behind");
}

// Returns a row for each process of the parameter servers that have two processes.
StatusTable Replicas(const wire::ClusterReport& cluster) {
  StatusTable table{
      .title = "Replicas",
      .header = {"task", "address", "role", "epoch", "its follower", "acknowledged", "steps wait"}};
  for (const wire::ClusterTask& task : cluster.task()) {
    if (!task.has_other_replica()) continue;
    for (const wire::ClusterTask* process : {&task, &task.other_replica()}) {
      const wire::ReplicaReport& replica = process->report().replica();
      std::vector<std::string> row = {ShortTask(task.name()), process->address()};
      if (process->has_error()) {
        row.push_back("does not answer");
        row.resize(table.header.size(), "-");
      } else {
        const bool feeds = replica.feeding() && replica.acknowledged_ms() >= 0;
        row.insert(row.end(),
                   {RoleText(process->report()), StrCat(replica.epoch()), FollowerText(replica),
                    feeds ? StrCat(AgeText(replica.acknowledged_ms()), " ago") : "-",
                    StrCat(replica.waiting_steps())});
      }
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

StatusTable Checkpoints(const wire::ClusterReport& cluster) {
  StatusTable table{.title = "Last checkpoints",
                    .header = {"checkpoint", "step", "age", "written by"}};
  for (const wire::ClusterTask& task : cluster.task()) {
    for (const wire::CheckpointReport& last : task.report().checkpoint()) {
      table.rows.push_back({last.path(), last.step() < 0 ? "-" : StrCat(last.step()),
                            AgeText(last.age_ms()), ShortTask(task.name())});
    }
  }
  return table;
}

StatusTable ProgramDifferences(const wire::ClusterReport& cluster) {
  StatusTable table{.title = "Programs that differ", .header = {"task", "difference"}};
  for (const wire::ClusterTask& task : cluster.task()) {
    for (const std::string& difference : task.report().program_difference()) {
      table.rows.push_back({ShortTask(task.name()), difference});
    }
  }
  return table;
}

StatusTable Sessions(const wire::ClusterReport& cluster) {
  StatusTable table{.title = "Sessions",
                    .header = {"session", "master", "client", "age", "idle", "steps", "in flight",
                               "oldest step"}};
  for (const wire::ClusterTask& task : cluster.task()) {
    for (const wire::SessionReport& session : task.report().session()) {
      int64_t oldest_ms = -1;
      for (const wire::StepReport& step : session.step()) {
        oldest_ms = std::max(oldest_ms, step.age_ms());
      }
      table.rows.push_back({session.handle(), ShortTask(task.name()),
                            session.client().empty() ? "in the task" : session.client(),
                            AgeText(session.age_ms()),
                            session.step_size() > 0 ? "-" : AgeText(session.idle_ms()),
                            StrCat(session.steps_begun()), StrCat(session.step_size()),
                            oldest_ms < 0 ? "-" : AgeText(oldest_ms)});
    }
    for (const wire::NewSessionReport& session : task.report().new_session()) {
      table.rows.push_back({"new, waits for tasks", ShortTask(task.name()), "-",
                            AgeText(session.age_ms()), "-", "0", "0", "-"});
    }
  }
  return table;
}

// Returns the number of counts that have a place between the bounds, of which the last one has no
// upper bound. A report from outside may have more.
int NumCounts(const wire::StalenessReport& report) {
  return std::min(report.count_size(), report.bound_size() + 1);
}

// Returns the shares of all updates, by their staleness: "0: 20 %, 1: 45 %, 2-3: 35 %".
std::string SharesText(const wire::StalenessReport& report, double updates) {
  std::vector<std::string> shares;
  for (int i = 0; i < NumCounts(report); ++i) {
    if (report.count(i) == 0) continue;
    const int64_t from = i == 0 ? 0 : report.bound(i - 1) + 1;
    const std::string to = i >= report.bound_size()  ? " and more"
                           : report.bound(i) == from ? ""
                                                     : StrCat("-", report.bound(i));
    shares.push_back(absl::StrFormat("%d%s: %.0f %%", from, to,
                                     100 * static_cast<double>(report.count(i)) / updates));
  }
  return absl::StrJoin(shares, ", ");
}

StatusTable Staleness(const wire::ClusterReport& cluster) {
  StatusTable table{.title = "Staleness of updates",
                    .header = {"task", "updates", "mean", "shares of the updates"}};
  for (const wire::ClusterTask& task : cluster.task()) {
    const wire::StalenessReport& report = task.report().staleness();
    int64_t updates = 0;
    for (int i = 0; i < NumCounts(report); ++i) updates += report.count(i);
    if (updates == 0) continue;
    const auto all = static_cast<double>(updates);
    table.rows.push_back({ShortTask(task.name()), StrCat(updates),
                          absl::StrFormat("%.1f", static_cast<double>(report.sum()) / all),
                          SharesText(report, all)});
  }
  return table;
}

StatusTable Queues(const wire::ClusterReport& cluster) {
  StatusTable table{
      .title = "Queues",
      .header = {"queue", "type", "task", "elements", "capacity", "puts wait", "takes wait"}};
  for (const wire::ClusterTask& task : cluster.task()) {
    for (const wire::ResourceReport& resource : task.report().resource()) {
      if (!resource.has_queue()) continue;
      const wire::QueueReport& queue = resource.queue();
      table.rows.push_back({StrCat(resource.name().name(), queue.closed() ? " (closed)" : ""),
                            resource.type(), ShortTask(task.name()), StrCat(queue.size()),
                            queue.capacity() < 0 ? "-" : StrCat(queue.capacity()),
                            StrCat(queue.waiting_puts()), StrCat(queue.waiting_takes())});
    }
  }
  return table;
}

StatusTable Variables(const wire::ClusterReport& cluster) {
  constexpr size_t kShownMax = 20;
  std::vector<std::pair<const wire::ResourceReport*, const wire::ClusterTask*>> variables;
  for (const wire::ClusterTask& task : cluster.task()) {
    for (const wire::ResourceReport& resource : task.report().resource()) {
      if (resource.has_bytes()) variables.emplace_back(&resource, &task);
    }
  }
  std::stable_sort(variables.begin(), variables.end(), [](const auto& a, const auto& b) {
    return a.first->bytes() > b.first->bytes();
  });
  variables.resize(std::min(variables.size(), kShownMax));
  StatusTable table{.title = "Largest variables", .header = {"variable", "task", "size"}};
  for (const auto& [variable, task] : variables) {
    table.rows.push_back(
        {variable->name().name(), ShortTask(task->name()), BytesText(variable->bytes())});
  }
  return table;
}

StatusTable Traffic(const wire::ClusterReport& cluster) {
  StatusTable table{.title = "Tensors sent", .header = {"from", "to", "tensors", "size"}};
  for (const wire::ClusterTask& task : cluster.task()) {
    for (const wire::SentReport& sent : task.report().sent()) {
      table.rows.push_back({ShortTask(task.name()), ShortTask(sent.to()), StrCat(sent.tensors()),
                            BytesText(sent.bytes())});
    }
  }
  return table;
}

std::string LimitText(int64_t bytes) { return bytes > 0 ? BytesText(bytes) : "none"; }

StatusTable Allocators(const wire::ClusterReport& cluster) {
  StatusTable table{
      .title = "Memory of tensors",
      .header = {"device", "memory", "in use", "peak", "reserved", "allocations", "limit"}};
  for (const wire::ClusterTask& task : cluster.task()) {
    for (const wire::AllocatorReport& its : task.report().allocator()) {
      table.rows.push_back({ShortTask(its.device()), its.name(), BytesText(its.bytes_in_use()),
                            BytesText(its.peak_bytes_in_use()), BytesText(its.bytes_reserved()),
                            StrCat(its.allocations()), LimitText(its.bytes_limit())});
    }
  }
  return table;
}

StatusTable SessionMemories(const wire::ClusterReport& cluster) {
  StatusTable table{.title = "Memory of sessions",
                    .header = {"session", "task", "in use", "peak", "limit"}};
  for (const wire::ClusterTask& task : cluster.task()) {
    for (const wire::SessionMemoryReport& its : task.report().session_memory()) {
      table.rows.push_back({its.session(), ShortTask(task.name()), BytesText(its.bytes_in_use()),
                            BytesText(its.peak_bytes_in_use()), LimitText(its.bytes_limit())});
    }
  }
  return table;
}

std::string TextOf(const std::vector<StatusTable>& tables) {
  std::string text;
  for (const StatusTable& table : tables) {
    std::vector<size_t> widths;
    for (const std::string& title : table.header) widths.push_back(title.size());
    for (const auto& row : table.rows) {
      for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    const auto add = [&](const std::vector<std::string>& row) {
      std::string line;
      for (size_t i = 0; i < row.size(); ++i) {
        StrAppend(&line, "  ", row[i]);
        if (i + 1 < row.size()) line.append(widths[i] - row[i].size(), ' ');
      }
      StrAppend(&text, line, "\n");
    };
    StrAppend(&text, "\n", table.title, "\n");
    add(table.header);
    for (const auto& row : table.rows) add(row);
  }
  return text;
}

}  // namespace

std::vector<StatusTable> StatusTables(const wire::ClusterReport& cluster) {
  std::vector<StatusTable> tables = {Tasks(cluster)};
  for (StatusTable table :
       {Replicas(cluster), ProgramDifferences(cluster), Sessions(cluster), Staleness(cluster),
        Checkpoints(cluster), Queues(cluster), Variables(cluster), Traffic(cluster)}) {
    if (!table.rows.empty()) tables.push_back(std::move(table));
  }
  return tables;
}

std::string StatusLine(const wire::ClusterReport& cluster) {
  int silent = 0, sessions = 0, steps = 0;
  double per_second = 0;
  int64_t bytes = 0;
  for (const wire::ClusterTask& task : cluster.task()) {
    silent += task.has_error() ? 1 : 0;
    sessions += task.report().session_size();
    for (const wire::SessionReport& session : task.report().session()) steps += session.step_size();
    per_second += task.report().steps().per_second();
    bytes += task.report().variable_bytes();
  }
  const auto plural = [](int n, const char* what) {
    return StrCat(n, " ", what, n == 1 ? "" : "s");
  };
  return StrCat(
      plural(cluster.task_size(), "task"), ", ",
      silent == 0 ? "all answer" : StrCat(silent, silent == 1 ? " does" : " do", " not answer"),
      "; ", plural(sessions, "session"), ", ", plural(steps, "step"), " in flight, ",
      absl::StrFormat("%.1f", per_second), " steps/s, ", BytesText(bytes), " of variables");
}

std::string StatusText(const wire::ClusterReport& cluster) {
  return StrCat(StatusLine(cluster), "\n", TextOf(StatusTables(cluster)));
}

std::string MemoryText(const wire::ClusterReport& cluster) {
  std::string text;
  for (const wire::ClusterTask& task : cluster.task()) {
    if (task.has_error()) {
      StrAppend(&text, ShortTask(task.name()), " ", StateText(cluster, task), "\n");
    }
  }
  return StrCat(text, TextOf({Allocators(cluster), SessionMemories(cluster)}));
}

std::string StatusJson(const wire::ClusterReport& cluster) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  CHECK(google::protobuf::util::MessageToJsonString(cluster, &json, options).ok());
  return json;
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "distributed/cluster/cluster_spec.h"

namespace penstock {
namespace {

using Json = nlohmann::json;

template <class... Parts>
Status Wrong(const Parts&... parts) {
  return InvalidArgument("TF_CONFIG: ", parts...);
}

// Reads a task's index: a number or, as some launchers write it, a string of
// digits.
bool ReadIndex(const Json& json, int* index) {
  if (json.is_number_unsigned() && json.get<uint64_t>() > std::numeric_limits<int>::max()) {
    return false;  // rejected, because a cast to a signed number could make it a valid index
  }
  if (json.is_number_integer()) {
    const int64_t value = json.get<int64_t>();
    *index = static_cast<int>(value);
    return value == *index;
  }
  return json.is_string() && absl::SimpleAtoi(json.get<std::string>(), index);
}

Status AddTask(const std::string& job, int index, const Json& address, ClusterSpec* cluster) {
  if (!address.is_string()) {
    return Wrong("cluster.", job, " task ", index, " is not a string; write \"host:port\"");
  }
  const Status added = cluster->AddTask(job, index, address.get<std::string>());
  return added.ok() ? added : Wrong("cluster.", job, ": ", added.message());
}

Status AddJob(const std::string& job, const Json& tasks, ClusterSpec* cluster) {
  if (tasks.is_array()) {
    int index = 0;
    for (const Json& address : tasks) {
      RETURN_IF_ERROR(AddTask(job, index++, address, cluster));
    }
    return OkStatus();
  }
  if (!tasks.is_object()) {
    return Wrong("cluster.", job, " is neither a list of \"host:port\" nor an object of them");
  }
  for (const auto& [key, address] : tasks.items()) {
    int index = 0;
    if (!absl::SimpleAtoi(key, &index)) {
      return Wrong("cluster.", job, ": key \"", key, "\" is not a task index");
    }
    RETURN_IF_ERROR(AddTask(job, index, address, cluster));
  }
  return OkStatus();
}

StatusOr<Json> ParseObject(string_view text) {
  try {
    Json json = Json::parse(text.begin(), text.end());
    if (!json.is_object()) return Wrong("not a JSON object; write {\"cluster\": .., \"task\": ..}");
    return json;
  } catch (const Json::exception& e) {
    std::string what = e.what();
    for (char& c : what) c = c == '\n' ? ' ' : c;
    return Wrong("not valid JSON: ", what);
  }
}

Status ReadTask(const Json& config, TaskConfig* task) {
  const auto found = config.find("task");
  if (found == config.end() || !found->is_object() || !found->contains("type")) {
    return Wrong("there is no task; add \"task\": {\"type\": \"worker\", \"index\": 0}");
  }
  const Json& type = (*found)["type"];
  if (!type.is_string()) return Wrong("task.type is not a string; write for example \"worker\"");
  task->job = absl::AsciiStrToLower(type.get<std::string>());
  if (found->contains("index") && !ReadIndex((*found)["index"], &task->task)) {
    return Wrong("task.index ", (*found)["index"].dump(), " is not a task index; write a number");
  }
  return OkStatus();
}

}  // namespace

StatusOr<TaskConfig> TaskConfigFromJson(string_view text) {
  ASSIGN_OR_RETURN(const Json json, ParseObject(text));
  TaskConfig config;
  const auto cluster = json.find("cluster");
  if (cluster != json.end() && !cluster->is_object()) {
    return Wrong("cluster is not an object; write {\"worker\": [\"host:port\"], ..}");
  }
  if (cluster != json.end()) {
    for (const auto& [job, tasks] : cluster->items()) {
      RETURN_IF_ERROR(AddJob(job, tasks, &config.cluster));
    }
  }
  if (config.cluster.empty()) {
    return Wrong("the cluster has no jobs; add \"cluster\": {\"worker\": [\"host:port\"]}");
  }
  RETURN_IF_ERROR(ReadTask(json, &config));
  if (config.job != "evaluator" && config.address().empty()) {
    const auto tasks = config.cluster.jobs().find(config.job);
    if (tasks == config.cluster.jobs().end()) {
      return Wrong("task.type '", config.job, "' is not a job of the cluster (",
                   config.cluster.ToString(), ")");
    }
    return Wrong("task.index ", config.task, " is not a task of job '", config.job, "' (",
                 config.cluster.ToString(), ")");
  }
  return config;
}

}  // namespace penstock

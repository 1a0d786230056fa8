// SPDX-License-Identifier: Apache-2.0
#include "client/allreduce/elastic_workers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "client/seconds.h"
#include "core/op/device_name.h"
#include "distributed/session/session.h"

namespace penstock::client {

ElasticWorkers::ElasticWorkers(const ElasticOptions& options)
    : options_(options),
      presence_({.training = PresenceName(),
                 .task = options.worker >= 0 && options.worker < size() ? task(options.worker) : "",
                 .lifetime_seconds = options.present_seconds,
                 .new_session = [this] { return NewShortSession(task(options_.worker)); },
                 .announce_seconds = 4 * options.ask_seconds,
                 .env = options.env,
                 .scheduler = options.scheduler}) {}

std::string ElasticWorkers::Missing(const std::vector<int>& workers) const {
  std::vector<std::string> missing;
  for (int w = 0; w < size(); ++w) {
    if (!std::binary_search(workers.begin(), workers.end(), w)) missing.push_back(task(w));
  }
  return absl::StrJoin(missing, ", ");
}

std::string ElasticWorkers::PresenceName() const {
  return StrCat("elastic_group_", options_.group_key);
}

StatusOr<std::unique_ptr<SessionInterface>> ElasticWorkers::NewSession(
    const SessionOptions& options) const {
  return options_.new_session ? options_.new_session(options)
                              : NewRemoteSession(options_.target, options, *options_.env);
}

// Makes a session with `task`, besides this worker's, of which no operation takes longer than
// ask_seconds.
StatusOr<std::unique_ptr<SessionInterface>> ElasticWorkers::NewShortSession(
    const std::string& task) const {
  return NewSession(
      {.operation_timeout_ms = Millis(options_.ask_seconds), .device_filters = {task}});
}

// Returns the incarnation of `task`. An error if it does not answer in time, or if its client is
// not present.
StatusOr<uint64_t> ElasticWorkers::AskIncarnation(const std::string& task) const {
  ASSIGN_OR_RETURN(const DeviceName name, DeviceName::Parse(task));
  ASSIGN_OR_RETURN(auto session, NewShortSession(task));
  ASSIGN_OR_RETURN(const std::vector<DeviceInfo> devices, session->ListDevices());
  const auto device = std::find_if(devices.begin(), devices.end(),
                                   [&](const DeviceInfo& each) { return name.Matches(each.name); });
  if (device == devices.end()) return NotFound(task, " has no devices");
  ASSIGN_OR_RETURN(const bool present, Presence::IsPresent(std::move(session), PresenceName(), task,
                                                           options_.present_seconds));
  if (!present) return NotFound("the client of ", task, " is gone");
  return device->incarnation;
}

std::vector<std::optional<uint64_t>> ElasticWorkers::AskIncarnations(
    const std::vector<int>& workers) const {
  std::vector<std::optional<uint64_t>> answers(workers.size());
  std::vector<std::unique_ptr<Thread>> threads;
  for (size_t i = 0; i < workers.size(); ++i) {
    threads.push_back(
        options_.scheduler->StartThread("ask a worker", [this, i, &workers, &answers] {
          const auto incarnation = AskIncarnation(options_.workers[workers[i]]);
          if (incarnation.ok()) answers[i] = *incarnation;
        }));
  }
  threads.clear();  // waits for them
  return answers;
}

bool ElasticWorkers::ClientIsGone(int worker) const {
  auto asking = NewShortSession(task(worker));
  if (!asking.ok()) return false;
  const auto present = Presence::IsPresent(*std::move(asking), PresenceName(), task(worker),
                                           options_.present_seconds);
  return present.ok() && !*present;
}

}  // namespace penstock::client

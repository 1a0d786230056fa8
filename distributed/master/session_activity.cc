// SPDX-License-Identifier: Apache-2.0
//
// MasterSession: its client, the steps that run, and how long it has been idle.
#include "distributed/master/master_session.h"

namespace penstock {

std::string MasterSession::client() const {
  MutexLock lock(client_mu_);
  return client_;
}

std::vector<std::shared_ptr<const MasterStep>> MasterSession::running_steps() const {
  std::vector<std::shared_ptr<const MasterStep>> steps;
  MutexLock lock(running_mu_);
  for (const auto& [id, step] : steps_) steps.push_back(step);
  return steps;
}

void MasterSession::NoteConnectedClient(const absl::flat_hash_set<std::string>& connected) {
  MutexLock lock(client_mu_);
  if (!client_.empty() && !connected.contains(client_)) return;
  last_used_ns_ = options_.services.env->NowNanos();
}

int64_t MasterSession::idle_ns() const {
  MutexLock lock(running_mu_);
  if (steps_.size() > partial_steps_) return 0;
  return options_.services.env->NowNanos() - last_used_ns_;
}

}  // namespace penstock

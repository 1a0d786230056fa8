// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/client_activity.h"

namespace penstock {

void ClientActivity::NoteCall(const std::string& client) {
  NoteUse();
  MutexLock lock(mu_);
  if (client_ != client) client_ = client;
}

void ClientActivity::NoteConnected(const absl::flat_hash_set<std::string>& connected) {
  MutexLock lock(mu_);
  if (client_.empty() || connected.contains(client_)) NoteUse();
}

std::string ClientActivity::client() const {
  MutexLock lock(mu_);
  return client_;
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// A Rendezvous within one process. If Send comes first, it puts its value into a table, from which
// Recv takes it; if Recv comes first, it puts its continuation there. Afterwards the table keeps
// only the hash of the key, to reject a second Send or Recv, and for keys in loops nothing. (A
// false error is possible only if two keys of one step have equal 64-bit hashes.)
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/runtime/rendezvous.h"
#include "core/runtime/waiting_keys.h"

namespace penstock {
namespace {

struct KeyHash {
  size_t operator()(const HashedKey& key) const { return key.hash(); }
};

// An entry of the table: a value that waits for its receiver, or a receiver that waits for its
// value.
struct Waiting {
  Rendezvous::Received received;  // null if the entry is a value
  Tensor value;
  bool is_dead = false;
};

class LocalRendezvous final : public Rendezvous {
 public:
  ~LocalRendezvous() override { Abort(Cancelled("the step's rendezvous was destroyed")); }

  Status Send(const HashedKey& key, Tensor value, bool is_dead) override ABSL_LOCKS_EXCLUDED(mu_) {
    Received received;
    {
      MutexLock lock(mu_);
      if (!aborted_.ok()) return aborted_;
      if (passed_.contains(key.hash())) return Twice("sent", key);
      const auto [it, first] = waiting_.try_emplace(key);
      if (first) {
        it->second.value = std::move(value);
        it->second.is_dead = is_dead;
        return OkStatus();
      }
      if (!it->second.received) return Twice("sent", key);
      received = std::move(it->second.received);
      waiting_.erase(it);
      RecordPassed(key);
    }
    std::move(received)(OkStatus(), std::move(value), is_dead);
    return OkStatus();
  }

  void Recv(const HashedKey& key, Received received) override ABSL_LOCKS_EXCLUDED(mu_) {
    Waiting sent;
    Status status;
    {
      MutexLock lock(mu_);
      status = TakeOrWait(key, &received, &sent);
    }
    if (received) std::move(received)(std::move(status), std::move(sent.value), sent.is_dead);
  }

  std::vector<RendezvousKey> WaitingKeys() const ABSL_LOCKS_EXCLUDED(mu_) {
    std::vector<RendezvousKey> keys;
    {
      MutexLock lock(mu_);
      for (const auto& [key, waiting] : waiting_) {
        if (waiting.received) keys.push_back(key.key());
      }
    }
    std::sort(keys.begin(), keys.end());
    return keys;
  }

  void Abort(const Status& why) override ABSL_LOCKS_EXCLUDED(mu_) {
    CHECK(!why.ok(), "rendezvous aborted with an OK status");
    absl::flat_hash_map<HashedKey, Waiting, KeyHash> ended;
    {
      MutexLock lock(mu_);
      if (!aborted_.ok()) return;
      aborted_ = why;
      ended.swap(waiting_);
    }
    // Receivers are called in the order of the keys, so that a simulated run is repeatable.
    std::vector<std::pair<std::string, Received>> receivers;
    for (auto& [key, waiting] : ended) {
      if (waiting.received) receivers.emplace_back(key.ToString(), std::move(waiting.received));
    }
    std::sort(receivers.begin(), receivers.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [key, received] : receivers) std::move(received)(why, Tensor(), false);
  }

 private:
  static Status Twice(string_view what, const HashedKey& key) {
    return Internal("rendezvous key ", key.ToString(), " was ", what, " twice in one step");
  }

  void RecordPassed(const HashedKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (key.frame() == 0) passed_.insert(key.hash());
  }

  // If a value is waiting, takes it into `*sent`. Else leaves `*received` in the table.
  Status TakeOrWait(const HashedKey& key, Received* received, Waiting* sent)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (!aborted_.ok()) return aborted_;
    if (passed_.contains(key.hash())) return Twice("received", key);
    const auto [it, first] = waiting_.try_emplace(key);
    if (first) {
      it->second.received = std::exchange(*received, nullptr);
      return OkStatus();
    }
    if (it->second.received) return Twice("received", key);
    *sent = std::move(it->second);
    waiting_.erase(it);
    RecordPassed(key);
    return OkStatus();
  }

  mutable Mutex mu_;
  Status aborted_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<HashedKey, Waiting, KeyHash> waiting_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_set<uint64_t> passed_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

std::vector<RendezvousKey> WaitingKeys(const Rendezvous& local) {
  return static_cast<const LocalRendezvous&>(local).WaitingKeys();
}

std::unique_ptr<Rendezvous> NewLocalRendezvous() { return std::make_unique<LocalRendezvous>(); }

}  // namespace penstock

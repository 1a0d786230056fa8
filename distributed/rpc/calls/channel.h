// SPDX-License-Identifier: Apache-2.0
//
// How channels and servers are set up: keepalive that finds dead and frozen peers, no limit on
// messages, no proxy. Channels: one per peer, shared by all who call it.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/server_builder.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "core/base/mutex.h"
#include "distributed/rpc/security/credentials.h"

namespace penstock {

struct KeepaliveOptions {
  // A connection on which nothing is heard is probed after `time_ms`, and closed when the probe is
  // not answered within `timeout_ms`. The timeout is longer than pauses that are harmless: half of
  // what the heartbeats allow.
  int time_ms = 2000;
  int timeout_ms = 4000;
};

std::shared_ptr<grpc::Channel> NewChannel(const std::string& address,
                                          const KeepaliveOptions& keepalive,
                                          const Credentials& credentials = *Credentials::None());
// `message_bytes_max`: of a message that the server takes; 0: no limit.
void SetServerArguments(const KeepaliveOptions& keepalive, grpc::ServerBuilder* builder,
                        int message_bytes_max = 0);

// Thread-safe.
class Channels {
 public:
  explicit Channels(const KeepaliveOptions& keepalive,
                    std::shared_ptr<const Credentials> credentials = Credentials::None());
  // A new one where the last cannot reach the peer and is older than a second. gRPC waits longer
  // and longer before it resolves a name again, up to two minutes; a new channel does it at once.
  // So callers that wait for a peer get its channel anew before each attempt.
  std::shared_ptr<grpc::Channel> To(const std::string& address);
  // Tries to connect until `timeout_ms` are over, or until it is clear that the settings of the two
  // sides do not fit; `*misfit` then says how. The channel may not be connected.
  std::shared_ptr<grpc::Channel> Connect(const std::string& address, int64_t timeout_ms,
                                         std::string* misfit);
  // Returns the last answer of DiagnoseConnection about the address. If that is more than a few
  // seconds old, also has it asked again, on a thread of its own. Never blocks: for callers that
  // call again later.
  std::string Misfit(const std::string& address);

 private:
  struct Diagnoses;
  struct Entry {
    std::shared_ptr<grpc::Channel> channel;
    int64_t made_ns = 0;
  };
  const KeepaliveOptions keepalive_;
  const std::shared_ptr<const Credentials> credentials_;
  const std::shared_ptr<Diagnoses> diagnoses_;
  Mutex mu_;
  std::map<std::string, Entry> channels_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock

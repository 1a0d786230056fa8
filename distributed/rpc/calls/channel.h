// SPDX-License-Identifier: Apache-2.0
//
// How channels and servers are set up: keepalive that finds dead and frozen peers, no limit on
// messages, no proxy. Channels: one per peer, shared by all who call it.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/server_builder.h>

#include <map>
#include <memory>
#include <string>

#include "core/base/mutex.h"

namespace penstock {

struct KeepaliveOptions {
  // A connection on which nothing is heard is probed after `time_ms`, and closed when the probe is
  // not answered within `timeout_ms`. The timeout is longer than pauses that are harmless: half of
  // what the heartbeats allow.
  int time_ms = 2000;
  int timeout_ms = 4000;
};

std::shared_ptr<grpc::Channel> NewChannel(const std::string& address,
                                          const KeepaliveOptions& keepalive);
void SetServerArguments(const KeepaliveOptions& keepalive, grpc::ServerBuilder* builder);

// Thread-safe.
class Channels {
 public:
  explicit Channels(const KeepaliveOptions& keepalive) : keepalive_(keepalive) {}
  std::shared_ptr<grpc::Channel> To(const std::string& address);

 private:
  const KeepaliveOptions keepalive_;
  Mutex mu_;
  std::map<std::string, std::shared_ptr<grpc::Channel>> channels_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Settings of gRPC channels and servers: keepalive that detects dead and frozen peers, no
// limit on message sizes, no proxy. Channels: keeps one channel per peer, shared by all
// callers.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/server_builder.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "core/base/mutex.h"
#include "distributed/security/credentials.h"

namespace penstock {

struct KeepaliveOptions {
  // gRPC probes a connection on which it has received nothing for `time_ms`, and closes it if the
  // peer does not answer the probe within `timeout_ms`. The default timeout is longer than harmless
  // pauses of a process, and half of the 8 s after which heartbeats find a task lost.
  int time_ms = 2000;
  int timeout_ms = 4000;
};

// Makes a channel to `address` ("host:port") with these settings.
std::shared_ptr<grpc::Channel> NewChannel(const std::string& address,
                                          const KeepaliveOptions& keepalive,
                                          const Credentials& credentials = *Credentials::None());
// Applies the options to a server. `message_bytes_max`: the size limit of a message that the server
// accepts; 0: no limit.
void SetServerArguments(const KeepaliveOptions& keepalive, grpc::ServerBuilder* builder,
                        int message_bytes_max = 0);

// Thread-safe.
class Channels {
 public:
  explicit Channels(const KeepaliveOptions& keepalive,
                    std::shared_ptr<const Credentials> credentials = Credentials::None());
  // Returns the channel to `address`. Replaces it with a new one if it cannot reach the peer and
  // is older than a second: gRPC waits up to two minutes before it resolves a name again, but a new
  // channel resolves it at once. Callers that wait for a peer therefore call this before each
  // attempt.
  std::shared_ptr<grpc::Channel> To(const std::string& address);
  // Returns the channel to `address` when it is connected, when `timeout_ms` have passed, or when a
  // diagnosis shows that the TLS or other settings of the two processes do not match. In the last
  // case `*mismatch` says how they differ.
  std::shared_ptr<grpc::Channel> Connect(const std::string& address, int64_t timeout_ms,
                                         std::string* mismatch);
  // Returns the last result of DiagnoseConnection for the address; "" if there was none in the last
  // 10 s. If there was none in the last 3 s, also starts a new diagnosis on a thread of its own.
  // Never blocks: callers call again later for the new result.
  std::string Mismatch(const std::string& address);

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

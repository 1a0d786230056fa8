// SPDX-License-Identifier: Apache-2.0
//
// ClientLimits: limits how many sessions of a master one client may have, and how many steps of one
// session may be in flight. Refusals are RESOURCE_EXHAUSTED and name the flag, the limit and the
// current number. Clients in this process are not counted. Thread-safe.
#pragma once

#include <grpcpp/server_context.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/status.h"

namespace penstock {

// Returns the caller's name: the one in its certificate if the task wants certificates
// (--tls_client_auth), else the client's host; "this host" if the connection is not over IP.
std::string ClientOf(const grpc::ServerContext& context);

class ClientLimits {
 public:
  struct Options {
    int max_sessions_per_client = 0;  // 0: no limit
    int max_steps_in_flight = 0;      // per session; 0: no limit
  };
  // Counts one session or step until it is destroyed. Null if there is no limit.
  using Permit = std::shared_ptr<void>;

  explicit ClientLimits(const Options& options)
      : options_(options), counts_(std::make_shared<Counts>()) {}

  // Count one more session of a client, or step of a session. ResourceExhausted at the limit.
  StatusOr<Permit> AddSession(const std::string& client);
  StatusOr<Permit> AddStep(const std::string& session);

 private:
  struct Counts {
    Mutex mu;
    std::map<std::string, int> sessions ABSL_GUARDED_BY(mu);  // by client
    std::map<std::string, int> steps ABSL_GUARDED_BY(mu);     // by session
  };
  using Count = std::map<std::string, int>;
  static Permit HoldPermit(std::shared_ptr<Counts> counts, Count Counts::*kind, std::string key);

  const Options options_;
  const std::shared_ptr<Counts> counts_;  // shared with the permits, which may outlive this object
};

}  // namespace penstock

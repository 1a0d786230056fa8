// SPDX-License-Identifier: Apache-2.0
//
// Credentials: what SecuritySettings mean to gRPC. Every channel and every port of Penstock is made
// here, so none can be opened without them.
//
// Immutable and thread-safe. Certificates are read again when their files change (looked at every
// kRefreshSeconds); connections that are open go on with the old ones. The token file is read once.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <memory>
#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/base/status.h"
#include "distributed/rpc/security/security_settings.h"
#include "distributed/rpc/security/tokens.h"

namespace penstock {

class Credentials {
 public:
  static constexpr unsigned kRefreshSeconds = 10;
  enum class Role { kTask, kClient };

  // Neither TLS nor a token.
  static const std::shared_ptr<const Credentials>& None();
  // InvalidArgument names the setting that is missing, and the file that cannot be used.
  static StatusOr<std::shared_ptr<const Credentials>> Load(const SecuritySettings& settings,
                                                           Role role, Env& env = Env::Real());

  // Returns the weaknesses of these credentials, a line each: a key that others may read, a token
  // that travels in the clear.
  const std::vector<std::string>& warnings() const { return warnings_; }
  const SecuritySettings& settings() const { return settings_; }
  const Tokens& tokens() const { return tokens_; }
  bool tls() const { return provider_ != nullptr; }
  // Whether a task with them turns anybody away.
  bool secured() const { return tls() || !tokens_.empty(); }

  // Calls on the channel bring the token.
  std::shared_ptr<grpc::Channel> NewChannel(const std::string& address,
                                            grpc::ChannelArguments arguments) const;
  // The port refuses calls without a token with UNAUTHENTICATED, whatever they call.
  std::shared_ptr<grpc::ServerCredentials> NewServerCredentials() const;

 private:
  Credentials() = default;
  Status Check(Role role);
  std::shared_ptr<grpc::ChannelCredentials> NewChannelCredentials() const;

  SecuritySettings settings_;
  Tokens tokens_;
  std::vector<std::string> warnings_;
  std::shared_ptr<grpc::experimental::CertificateProviderInterface> provider_;  // null: plaintext
};

// Those of ProcessSecurity, as a client's; loaded once for as long as the settings stay the same.
StatusOr<std::shared_ptr<const Credentials>> ProcessCredentials();

}  // namespace penstock

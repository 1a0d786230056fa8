// SPDX-License-Identifier: Apache-2.0
//
// Credentials: makes gRPC channels and ports that are secured according to SecuritySettings. All
// channels and ports of Penstock are made here, so none can be opened without these settings.
//
// Immutable and thread-safe. Certificates are read again when their files change (checked every
// kRefreshSeconds); open connections keep the old ones. The token file is read once.
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
#include "distributed/security/security_settings.h"
#include "distributed/security/tokens.h"

namespace penstock {

class Credentials {
 public:
  static constexpr unsigned kRefreshSeconds = 10;
  enum class Role { kTask, kClient };

  // Returns credentials with neither TLS nor a token.
  static const std::shared_ptr<const Credentials>& None();
  // InvalidArgument names the missing setting, or the file that cannot be used.
  static StatusOr<std::shared_ptr<const Credentials>> Load(const SecuritySettings& settings,
                                                           Role role, Env& env = Env::Real());

  // Returns the weaknesses of these credentials, one line each: a key that other users may read,
  // a token that is sent unencrypted.
  const std::vector<std::string>& warnings() const { return warnings_; }
  const SecuritySettings& settings() const { return settings_; }
  const Tokens& tokens() const { return tokens_; }
  bool tls() const { return provider_ != nullptr; }
  // Returns whether a task with these credentials refuses some clients.
  bool secured() const { return tls() || !tokens_.empty(); }

  // Makes a channel whose calls carry the token.
  std::shared_ptr<grpc::Channel> NewChannel(const std::string& address,
                                            grpc::ChannelArguments arguments) const;
  // Makes credentials for a port: calls of any service without a token end with
  // UNAUTHENTICATED.
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

// Returns the credentials of ProcessSecurity, for a client. They are loaded only when the
// settings have changed.
StatusOr<std::shared_ptr<const Credentials>> ProcessCredentials();

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "distributed/security/credentials.h"

#include <grpc/grpc_security.h>
#include <grpc/support/log.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <grpcpp/support/client_interceptor.h>
#include <openssl/crypto.h>

#include <cstdlib>
#include <utility>

#include "core/base/check.h"
#include "core/base/mutex.h"
#include "distributed/security/certificate_files.h"
#include "distributed/security/token_port.h"

namespace penstock {
namespace {

using grpc::experimental::FileWatcherCertificateProvider;
using grpc::experimental::InterceptionHookPoints;

// When a process exits, OpenSSL normally frees its tables. Threads of gRPC may still use them, and
// programs crashed after the end of main. So this code initialises OpenSSL before gRPC does, and
// tells it to keep the tables.
[[maybe_unused]] const int kKeepOpensslTables =
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);

// Adds the token to each call as a header. gRPC's own call credentials would be sent only on
// encrypted connections.
class TokenSender final : public grpc::experimental::Interceptor {
 public:
  explicit TokenSender(const std::string& header) : header_(header) {}
  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      methods->GetSendInitialMetadata()->insert({kTokenHeader, header_});
    }
    methods->Proceed();
  }

 private:
  const std::string& header_;  // owned by the factory, which lives as long as the channel
};

class TokenSenders final : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  explicit TokenSenders(const std::string& token) : header_(StrCat(kTokenScheme, token)) {}
  grpc::experimental::Interceptor* CreateClientInterceptor(
      grpc::experimental::ClientRpcInfo*) override {
    return new TokenSender(header_);
  }

 private:
  const std::string header_;
};

// Turns off some log lines of gRPC: it logs each failed handshake without naming the peer, so any
// stranger could fill the log. The errors of calls contain the same information. GRPC_VERBOSITY
// brings these lines back.
void SilenceHandshakeLogs() {
  static const bool once [[maybe_unused]] = [] {
    if (std::getenv("GRPC_VERBOSITY") != nullptr) return false;
    gpr_set_log_verbosity(static_cast<gpr_log_severity>(GPR_LOG_SEVERITY_ERROR + 1));
    return true;
  }();
}

Status Missing(string_view setting, const std::string& why) {
  return InvalidArgument(NameOfSetting(setting), " is missing: ", why);
}

}  // namespace

const std::shared_ptr<const Credentials>& Credentials::None() {
  static const auto& none =
      *new std::shared_ptr<const Credentials>(std::shared_ptr<Credentials>(new Credentials));
  return none;
}

Status Credentials::Check(Role role) {
  const SecuritySettings& s = settings_;
  if (s.tls_client_auth && !s.tls()) {
    return InvalidArgument(NameOfSetting("tls_client_auth"), " takes TLS; give --tls_cert, ",
                           "--tls_key and --tls_ca, too");
  }
  if (!s.tls_server_name.empty() && !s.tls()) {
    return InvalidArgument(NameOfSetting("tls_server_name"), " takes TLS; give --tls_ca, too");
  }
  if (!s.tls()) return OkStatus();
  if (s.tls_ca.empty()) {
    return Missing("tls_ca", "the authority that the certificates of the other side come from");
  }
  if (s.tls_cert.empty() != s.tls_key.empty()) {
    return s.tls_cert.empty() ? Missing("tls_cert", "the certificate of the key in --tls_key")
                              : Missing("tls_key", "the key of the certificate in --tls_cert");
  }
  if (role == Role::kTask && s.tls_cert.empty()) {
    return Missing("tls_cert", "with --tls_ca a task speaks TLS, which takes its certificate");
  }
  return OkStatus();
}

StatusOr<std::shared_ptr<const Credentials>> Credentials::Load(const SecuritySettings& settings,
                                                               Role role, Env& env) {
  std::shared_ptr<Credentials> made(new Credentials);
  made->settings_ = settings;
  RETURN_IF_ERROR(made->Check(role));
  if (settings.tls()) {
    SilenceHandshakeLogs();
    RETURN_IF_ERROR(CheckCertificateFiles(settings, env, &made->warnings_));
    made->provider_ = std::make_shared<FileWatcherCertificateProvider>(
        settings.tls_key, settings.tls_cert, settings.tls_ca, kRefreshSeconds);
  }
  if (!settings.token_file.empty()) {
    const std::string name = NameOfSetting("token_file");
    ASSIGN_OR_RETURN(made->tokens_, Tokens::Read(settings.token_file, name, env));
    WarnIfReadable(settings.token_file, "token_file", &made->warnings_);
    if (!settings.tls()) {
      made->warnings_.push_back(
          StrCat(name, " without TLS: the token travels in the clear, and whoever reads the ",
                 "network's traffic can use it; give --tls_cert, --tls_key and --tls_ca, too"));
    }
  }
  return std::shared_ptr<const Credentials>(std::move(made));
}

std::shared_ptr<grpc::ChannelCredentials> Credentials::NewChannelCredentials() const {
  if (!tls()) return grpc::InsecureChannelCredentials();
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(provider_);
  options.watch_root_certs();
  if (!settings_.tls_cert.empty()) options.watch_identity_key_cert_pairs();
  return grpc::experimental::TlsCredentials(options);
}

std::shared_ptr<grpc::Channel> Credentials::NewChannel(const std::string& address,
                                                       grpc::ChannelArguments arguments) const {
  if (!settings_.tls_server_name.empty()) {
    arguments.SetSslTargetNameOverride(settings_.tls_server_name);
  }
  if (tokens_.empty()) {
    return grpc::CreateCustomChannel(address, NewChannelCredentials(), arguments);
  }
  std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>> senders;
  senders.push_back(std::make_unique<TokenSenders>(tokens_.first()));
  return grpc::experimental::CreateCustomChannelWithInterceptors(address, NewChannelCredentials(),
                                                                 arguments, std::move(senders));
}

std::shared_ptr<grpc::ServerCredentials> Credentials::NewServerCredentials() const {
  if (!secured()) return grpc::InsecureServerCredentials();
  if (!tls()) return NewTokenPort(grpc_insecure_server_credentials_create(), tokens_);
  grpc::experimental::TlsServerCredentialsOptions options(provider_);
  options.watch_identity_key_cert_pairs();
  if (settings_.tls_client_auth) {
    options.watch_root_certs();
    options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  if (tokens_.empty()) return grpc::experimental::TlsServerCredentials(options);
  return NewTokenPort(grpc_tls_server_credentials_create(options.c_credentials_options()), tokens_);
}

StatusOr<std::shared_ptr<const Credentials>> ProcessCredentials() {
  struct Loaded {
    Mutex mu;
    std::shared_ptr<const Credentials> credentials ABSL_GUARDED_BY(mu);
  };
  static Loaded& loaded = *new Loaded;
  ASSIGN_OR_RETURN(const SecuritySettings settings, ProcessSecurity());
  MutexLock lock(loaded.mu);
  if (loaded.credentials == nullptr || !(loaded.credentials->settings() == settings)) {
    ASSIGN_OR_RETURN(loaded.credentials, Credentials::Load(settings, Credentials::Role::kClient));
  }
  return loaded.credentials;
}

}  // namespace penstock

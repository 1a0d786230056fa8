// SPDX-License-Identifier: Apache-2.0
#include "distributed/security/credentials.h"

#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <sys/stat.h>

#include <chrono>

#include "core/base/check.h"
#include "distributed/calls/testing/call_bytes.h"
#include "distributed/security/connection_diagnosis.h"
#include "distributed/security/testing/test_authority.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using Role = Credentials::Role;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

std::string LoadError(const SecuritySettings& settings, Role role = Role::kTask) {
  return std::string(Credentials::Load(settings, role).status().message());
}

// A server whose port has the given security settings; its only service is the health check.
class TestPort {
 public:
  explicit TestPort(const SecuritySettings& settings) {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::ServerBuilder builder;
    const auto credentials = Credentials::Load(settings, Role::kTask);
    CHECK_OK(credentials.status());
    builder.AddListeningPort("127.0.0.1:0", (*credentials)->NewServerCredentials(), &port_);
    queue_ = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
    CHECK(port_ != 0, "no port for the test");
  }
  ~TestPort() {
    server_->Shutdown(std::chrono::system_clock::now());
    queue_->Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_->Next(&tag, &ok)) {
    }
  }
  std::string address(const std::string& host = "127.0.0.1") const {
    return StrCat(host, ":", port_);
  }

 private:
  int port_ = 0;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
};

grpc::Status Call(const std::string& address, const SecuritySettings& settings,
                  const std::string& method = "/some.Service/Method") {
  const auto credentials = Credentials::Load(settings, Role::kClient);
  CHECK_OK(credentials.status());
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return CallBytes((*credentials)->NewChannel(address, arguments), method);
}

// Expects that a client with `settings` is admitted: its call reaches the server, which does
// not know the method.
void ExpectAdmitted(const TestPort& port, const SecuritySettings& settings) {
  const grpc::Status status = Call(port.address(), settings);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << status.error_message();
  const auto credentials = *Credentials::Load(settings, Role::kClient);
  EXPECT_EQ(DiagnoseConnection(port.address(), *credentials), "");
}

std::string Diagnose(const std::string& address, const SecuritySettings& settings) {
  EXPECT_EQ(Call(address, settings).error_code(), grpc::StatusCode::UNAVAILABLE);
  return DiagnoseConnection(address, **Credentials::Load(settings, Role::kClient));
}

class CredentialsTest : public testing::Test {
 protected:
  SecuritySettings WithToken(SecuritySettings settings, const std::string& token) const {
    settings.token_file = authority_.Write(StrCat("token", token), token);
    return settings;
  }
  SecuritySettings Client() const { return {.tls_ca = authority_.ca()}; }
  SecuritySettings Mutual() const {
    SecuritySettings settings = authority_.Issue();
    settings.tls_client_auth = true;
    return settings;
  }

  const TestAuthority authority_;
  const std::string token_ = "0123456789abcdef", other_token_ = "fedcba9876543210";
};

TEST_F(CredentialsTest, WithoutSettingsAllClientsAreAdmitted) {
  const TestPort port(SecuritySettings{});
  ExpectAdmitted(port, {});
  ExpectAdmitted(port, WithToken({}, token_));
  EXPECT_FALSE(Credentials::None()->secured());
}

TEST_F(CredentialsTest, ATokenIsWantedByEveryService) {
  for (const bool tls : {false, true}) {
    const SecuritySettings client = tls ? Client() : SecuritySettings{};
    const TestPort port(WithToken(tls ? authority_.Issue() : SecuritySettings{}, token_));
    ExpectAdmitted(port, WithToken(client, token_));
    for (const char* method : {"/some.Service/Method", "/grpc.health.v1.Health/Check",
                               "/tensorflow.MasterService/CreateSession",
                               "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}) {
      const grpc::Status none = Call(port.address(), client, method);
      EXPECT_EQ(none.error_code(), grpc::StatusCode::UNAUTHENTICATED) << method;
      EXPECT_THAT(none.error_message(), AllOf(StartsWith("this cluster wants a token"),
                                              HasSubstr("PENSTOCK_TOKEN_FILE")));
      const grpc::Status wrong = Call(port.address(), WithToken(client, other_token_), method);
      EXPECT_EQ(wrong.error_code(), grpc::StatusCode::UNAUTHENTICATED) << method;
      EXPECT_THAT(wrong.error_message(), StartsWith("the call's token is not one of"));
    }
  }
}

TEST_F(CredentialsTest, TlsRefusesWhatDoesNotFit) {
  const TestPort port(authority_.Issue());
  ExpectAdmitted(port, Client());
  ExpectAdmitted(port, authority_.Issue());
  EXPECT_EQ(Call(port.address("localhost"), Client()).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(Diagnose(port.address(), {}), StartsWith("the task speaks TLS, this process does "
                                                       "not: give it --tls_ca (PENSTOCK_TLS_CA)"));
  const TestAuthority other("another authority");
  EXPECT_THAT(Diagnose(port.address(), {.tls_ca = other.ca()}),
              AllOf(StartsWith("the task's certificate does not come from an authority in"),
                    HasSubstr(other.ca())));
  const TestPort named(authority_.Issue({.names = "DNS:localhost"}));
  EXPECT_THAT(Diagnose(named.address(), Client()),
              AllOf(StartsWith("the task's certificate is not for '127.0.0.1' but for localhost"),
                    HasSubstr("--tls_server_name (PENSTOCK_TLS_SERVER_NAME)")));
}

TEST_F(CredentialsTest, TheServerNameReplacesTheHost) {
  const TestPort port(authority_.Issue({.names = "DNS:cluster.internal"}));
  SecuritySettings client = Client();
  EXPECT_THAT(Diagnose(port.address(), client), HasSubstr("but for cluster.internal"));
  client.tls_server_name = "cluster.internal";
  ExpectAdmitted(port, client);
}

TEST_F(CredentialsTest, MutualTlsWantsACertificateOfTheAuthority) {
  const TestPort port(Mutual());
  ExpectAdmitted(port, Mutual());
  EXPECT_THAT(Diagnose(port.address(), Client()),
              AllOf(StartsWith("the task wants a certificate of its clients (--tls_client_auth)"),
                    HasSubstr("PENSTOCK_TLS_KEY")));
  const TestAuthority other("another authority");
  SecuritySettings stranger = other.Issue();
  stranger.tls_ca = authority_.ca();
  EXPECT_THAT(Diagnose(port.address(), stranger),
              StartsWith("the task refuses this process's certificate"));
}

TEST_F(CredentialsTest, ATlsClientOfAPlaintextTask) {
  const TestPort port(SecuritySettings{});
  EXPECT_THAT(Diagnose(port.address(), Client()),
              StartsWith("the task does not speak TLS, this process does"));
}

TEST_F(CredentialsTest, ACertificateThatExpiresWhileATaskRuns) {
  const SecuritySettings task = authority_.Issue({.valid_until_s = 1});
  const TestPort port(task);
  std::string said;
  for (int i = 0; i < 50 && said.empty(); ++i) {
    Env::Real().SleepForNanos(100'000'000);
    said = DiagnoseConnection(port.address(), **Credentials::Load(Client(), Role::kClient));
  }
  EXPECT_THAT(said, AllOf(StartsWith("the task's certificate expired on"),
                          HasSubstr("renew the certificate in the task's --tls_cert")));
  EXPECT_THAT(LoadError(task),
              AllOf(StartsWith("--tls_cert (PENSTOCK_TLS_CERT): '"), HasSubstr("' expired on")));
}

TEST_F(CredentialsTest, ANewCertificateIsTakenWithoutARestart) {
  const SecuritySettings task = authority_.Issue({.names = "DNS:old.internal"});
  const TestPort port(task);
  SecuritySettings client = Client();
  client.tls_server_name = "new.internal";
  EXPECT_THAT(Diagnose(port.address(), client), HasSubstr("but for old.internal"));
  const SecuritySettings renewed = authority_.Issue({.names = "DNS:new.internal"});
  Env& env = Env::Real();
  CHECK_OK(env.WriteFileAtomically(task.tls_key, *env.ReadFile(renewed.tls_key)));
  CHECK_OK(env.WriteFileAtomically(task.tls_cert, *env.ReadFile(renewed.tls_cert)));
  grpc::Status status;
  for (int i = 0; i < 60 && status.error_code() != grpc::StatusCode::UNIMPLEMENTED; ++i) {
    env.SleepForNanos(500'000'000);
    status = Call(port.address(), client);
  }
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << status.error_message();
}

TEST_F(CredentialsTest, MistakesNameTheSettingAndTheFile) {
  const SecuritySettings good = authority_.Issue();
  EXPECT_EQ(LoadError(good), "");
  SecuritySettings s = good;
  s.tls_ca = "";
  EXPECT_THAT(LoadError(s), StartsWith("--tls_ca (PENSTOCK_TLS_CA) is missing"));
  s = good;
  s.tls_key = "";
  EXPECT_THAT(LoadError(s), StartsWith("--tls_key (PENSTOCK_TLS_KEY) is missing"));
  s = good;
  s.tls_cert = "";
  EXPECT_THAT(LoadError(s), StartsWith("--tls_cert (PENSTOCK_TLS_CERT) is missing"));
  EXPECT_THAT(LoadError(Client()), StartsWith("--tls_cert (PENSTOCK_TLS_CERT) is missing"));
  EXPECT_EQ(LoadError(Client(), Role::kClient), "");
  EXPECT_THAT(LoadError({.tls_client_auth = true}),
              StartsWith("--tls_client_auth (PENSTOCK_TLS_CLIENT_AUTH) takes TLS"));
  s = good;
  s.tls_key = authority_.Issue().tls_key;
  EXPECT_THAT(LoadError(s), HasSubstr("is not the key of the certificate in '"));
  s.tls_key = good.tls_cert;
  EXPECT_THAT(LoadError(s), HasSubstr("holds no private key in PEM form"));
  s.tls_key = "/none.pem";
  EXPECT_THAT(LoadError(s), StartsWith("--tls_key (PENSTOCK_TLS_KEY): cannot open '/none.pem'"));
  s = good;
  s.tls_cert = good.tls_key;
  EXPECT_THAT(LoadError(s), HasSubstr("holds no certificate in PEM form"));
  EXPECT_THAT(LoadError(authority_.Issue({.valid_from_s = 600})), HasSubstr("is valid only from"));
}

TEST_F(CredentialsTest, WarnsOfKeysThatOthersMayReadAndTokensInTheClear) {
  SecuritySettings settings = WithToken(authority_.Issue(), token_);
  EXPECT_THAT((*Credentials::Load(settings, Role::kTask))->warnings(), IsEmpty());
  ASSERT_EQ(chmod(settings.tls_key.c_str(), 0644), 0);
  ASSERT_EQ(chmod(settings.token_file.c_str(), 0640), 0);
  const auto warnings = (*Credentials::Load(settings, Role::kTask))->warnings();
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_THAT(warnings[0], AllOf(HasSubstr(settings.tls_key), HasSubstr("(mode 644)")));
  EXPECT_THAT(warnings[1], AllOf(HasSubstr(settings.token_file), HasSubstr("(mode 640)")));
  const auto plain = *Credentials::Load(WithToken({}, token_), Role::kTask);
  EXPECT_THAT(plain->warnings().front(), HasSubstr("travels in the clear"));
}

}  // namespace
}  // namespace penstock

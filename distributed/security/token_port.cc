// SPDX-License-Identifier: Apache-2.0
#include "distributed/security/token_port.h"

#include <grpc/grpc.h>

#include <string>
#include <utility>

#include "absl/strings/strip.h"
#include "core/base/check.h"

namespace penstock {
namespace {

constexpr char kNoToken[] =
    "this cluster wants a token, and the call brings none: give the client the cluster's token "
    "file in PENSTOCK_TOKEN_FILE or --token_file; a client that cannot send tokens, such as "
    "TensorFlow's, needs the task's --insecure_client_address";
constexpr char kWrongToken[] =
    "the call's token is not one of this cluster's: PENSTOCK_TOKEN_FILE or --token_file of the "
    "client must hold a token of the task's --token_file";

absl::string_view TextOf(const grpc_slice& slice) {
  return absl::string_view(reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)),
                           GRPC_SLICE_LENGTH(slice));
}

// Returns the message with which the call is refused, or null if the call is
// admitted.
const char* Refusal(const Tokens& tokens, const grpc_metadata* metadata, size_t count) {
  const char* refusal = kNoToken;
  for (size_t i = 0; i < count; ++i) {
    const absl::string_view key = TextOf(metadata[i].key), value = TextOf(metadata[i].value);
    if (key != kTokenHeader) continue;
    absl::string_view token = value;
    const bool bearer = absl::ConsumePrefix(&token, kTokenScheme);
    if (bearer && tokens.Contains(token)) return nullptr;
    refusal = kWrongToken;
  }
  return refusal;
}

void Process(void* state, grpc_auth_context*, const grpc_metadata* metadata, size_t count,
             grpc_process_auth_metadata_done_cb done, void* call) {
  const char* const refusal = Refusal(*static_cast<Tokens*>(state), metadata, count);
  const grpc_status_code code = refusal == nullptr ? GRPC_STATUS_OK : GRPC_STATUS_UNAUTHENTICATED;
  done(call, nullptr, 0, nullptr, 0, code, refusal);
}

void Destroy(void* state) { delete static_cast<Tokens*>(state); }

// grpc::InsecureServerCredentials() accepts no metadata processor, but the C object that this class
// wraps does.
class TokenPort final : public grpc::ServerCredentials {
 public:
  TokenPort(grpc_server_credentials* port, Tokens tokens) : port_(port) {
    grpc_server_credentials_set_auth_metadata_processor(
        port_, {.process = Process, .destroy = Destroy, .state = new Tokens(std::move(tokens))});
  }
  ~TokenPort() override { grpc_server_credentials_release(port_); }
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {
    CHECK(false, "a port has one processor");
  }

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), port_);
  }

  grpc_server_credentials* const port_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> NewTokenPort(grpc_server_credentials* port,
                                                      Tokens tokens) {
  return std::make_shared<TokenPort>(port, std::move(tokens));
}

}  // namespace penstock

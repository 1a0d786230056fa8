// SPDX-License-Identifier: Apache-2.0
//
// Makes a port of a gRPC server that requires a token with every call. gRPC checks the token before
// it looks up the method, so the port protects all services, reflection included.
#pragma once

#include <grpc/grpc_security.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "distributed/security/tokens.h"

namespace penstock {

// A call carries "authorization: Bearer TOKEN".
inline constexpr char kTokenHeader[] = "authorization";
inline constexpr char kTokenScheme[] = "Bearer ";

// Takes over `port`, which secures the connections (TLS or plaintext). Calls without one of the
// tokens end with UNAUTHENTICATED, which names --token_file. No service is exempt: gRPC reads an
// entire message before it calls the service, so anybody could fill the task's memory through a
// service that needs no token.
std::shared_ptr<grpc::ServerCredentials> NewTokenPort(grpc_server_credentials* port, Tokens tokens);

}  // namespace penstock

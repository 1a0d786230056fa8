// SPDX-License-Identifier: Apache-2.0
//
// Makes a port of a gRPC server that requires a token with every call. gRPC checks it before it
// looks up the method, so this protects all services, reflection included.
#pragma once

#include <grpc/grpc_security.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "distributed/security/tokens.h"

namespace penstock {

// A call carries "authorization: Bearer TOKEN".
inline constexpr char kTokenHeader[] = "authorization";
inline constexpr char kTokenScheme[] = "Bearer ";

// Takes over `port`, which says how connections are made. Calls without one of the tokens end with
// UNAUTHENTICATED, which names --token_file. There are no exceptions: gRPC reads the entire
// message before a service sees it, so a service without a token would let anybody fill the task's
// memory.
std::shared_ptr<grpc::ServerCredentials> NewTokenPort(grpc_server_credentials* port, Tokens tokens);

}  // namespace penstock

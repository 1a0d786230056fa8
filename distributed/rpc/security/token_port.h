// SPDX-License-Identifier: Apache-2.0
//
// A port of a gRPC server that wants a token with every call. gRPC asks before it looks for the
// method, so this covers every service there is, reflection included.
#pragma once

#include <grpc/grpc_security.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "distributed/rpc/security/tokens.h"

namespace penstock {

// A call brings "authorization: Bearer TOKEN".
inline constexpr char kTokenHeader[] = "authorization";
inline constexpr char kTokenScheme[] = "Bearer ";

// Takes `port`, which says how connections are made. Calls without one of the tokens end with
// UNAUTHENTICATED, which names --token_file. There are no exceptions: gRPC reads a whole message
// before a service sees it, so a service for everybody would let everybody fill the task's memory.
std::shared_ptr<grpc::ServerCredentials> NewTokenPort(grpc_server_credentials* port, Tokens tokens);

}  // namespace penstock

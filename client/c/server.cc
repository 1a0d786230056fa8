// SPDX-License-Identifier: Apache-2.0
//
// Implements the servers of c_api.h.
#include "distributed/rpc/server.h"

#include "client/c/c_api.h"
#include "client/c/handles.h"
#include "distributed/cluster/cluster_spec.h"

struct PS_Server {
  std::unique_ptr<penstock::Server> server;
  std::string target;
};

using namespace penstock;         // NOLINT
using namespace penstock::c_api;  // NOLINT

PS_Status* PS_NewServer(const char* config, PS_Server** server) {
  return Call([&]() -> Status {
    RETURN_IF_ERROR(NotNull(config, "config"));
    RETURN_IF_ERROR(NotNull(server, "server"));
    ServerOptions options;
    ASSIGN_OR_RETURN(options.task, TaskConfigFromJson(config));
    ASSIGN_OR_RETURN(auto made, Server::Create(options));
    auto handle = std::make_unique<PS_Server>();
    handle->target = made->target();
    handle->server = std::move(made);
    *server = handle.release();
    return OkStatus();
  });
}

PS_Status* PS_StartServer(PS_Server* server) {
  return Call([&]() -> Status {
    RETURN_IF_ERROR(NotNull(server, "server"));
    return server->server->Start();
  });
}

const char* PS_ServerTarget(const PS_Server* server) { return server->target.c_str(); }

void PS_JoinServer(PS_Server* server) {
  PS_DeleteStatus(Call([&] {
    server->server->Join();
    return OkStatus();
  }));
}

void PS_StopServer(PS_Server* server) {
  PS_DeleteStatus(Call([&] {
    server->server->RequestShutdown("its program has stopped it");
    server->server->Stop();
    return OkStatus();
  }));
}

void PS_DeleteServer(PS_Server* server) {
  PS_DeleteStatus(Call([&] {
    delete server;
    return OkStatus();
  }));
}

// SPDX-License-Identifier: Apache-2.0
//
// ServerFlags: the flags of `penstock server` that describe the task and its Server. The flags that
// say when the process ends are in server_command.cc.
//
//   ServerFlags flags;
//   flags.AddTo(&app);  // in the order of --help; parsing sets the fields
//   ... parse ...
//   ASSIGN_OR_RETURN(ServerOptions options, flags.Options(app, std::getenv("TF_CONFIG")));
//
// AddTo borrows the object until the command line is parsed. Parsing checks the ranges of single
// flags; Server::Create checks the rest.
#pragma once

#include <cstdint>

#include "core/base/status.h"
#include "distributed/cluster/cluster_spec.h"
#include "distributed/rpc/server.h"

namespace CLI {
class App;
}  // namespace CLI

namespace penstock {

struct ServerFlags {
  ClusterFlags task;
  // The options that flags set directly. Options() adds the task, and the times below.
  ServerOptions options;
  int64_t session_idle_timeout_s = 3600;
  int64_t stuck_after_s = 60;

  void AddTo(CLI::App* app);
  // Returns the options that the parsed flags of `app` give. The cluster comes from `tf_config`,
  // the environment variable TF_CONFIG (null: not set), unless a flag names a host or a task.
  // InvalidArgument if neither says which task this is.
  StatusOr<ServerOptions> Options(const CLI::App& app, const char* tf_config) const;
};

}  // namespace penstock

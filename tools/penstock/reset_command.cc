// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "client/session.h"
#include "distributed/rpc/ask_cluster.h"
#include "distributed/security/security_flags.h"
#include "tools/penstock/commands.h"

namespace penstock {
namespace {

constexpr int64_t kTimeoutMs = 60'000;

struct Options {
  std::string target;
  std::vector<std::string> containers;
};

int Reset(const Options& options) {
  // Calls AskCluster first, which fails at once if the task is not running; a session call would
  // wait up to a minute.
  Status status = AskCluster(options.target).status();
  if (absl::IsUnimplemented(status))
    status = OkStatus();  // the server is not Penstock's, so it does not know this call
  if (status.ok()) {
    status = client::Session::Reset(options.target, options.containers,
                                    {.operation_timeout_ms = kTimeoutMs});
  }
  if (!status.ok()) {
    const int code = ExitCodeOf(status);
    return status.code() == StatusCode::kInvalidArgument ? 2 : code;
  }
  std::printf("%s: its sessions are closed; dropped on all tasks: %s\n", options.target.c_str(),
              options.containers.empty() ? "the default container"
                                         : absl::StrJoin(options.containers, ", ").c_str());
  return 0;
}

}  // namespace

void AddResetCommand(CLI::App& app, int* exit_code) {
  CLI::App* reset = app.add_subcommand("reset", "Close a master's sessions and drop its variables");
  reset->footer(
      "Closes every session of the task at the address (their clients get errors), and drops the\n"
      "resources in the containers on all tasks of the cluster: variables, queues, tables. State\n"
      "that was not saved is lost. The tasks go on serving.\n\n"
      "  penstock reset grpc://127.0.0.1:2222\n"
      "  penstock reset grpc://127.0.0.1:2222 --container=experiment_7\n");
  const auto options = std::make_shared<Options>();
  reset->add_option("target", options->target, "grpc://HOST:PORT of the sessions' master")
      ->required();
  reset->add_option("--container", options->containers,
                    "Drop this container; may be repeated. By default the default container");
  AddClientSecurityFlags(*reset);
  reset->callback([options, exit_code] { *exit_code = Reset(*options); });
}

}  // namespace penstock

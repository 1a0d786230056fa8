// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/ask_cluster.h"

#include <memory>

#include "absl/strings/strip.h"
#include "core/base/error_origin.h"
#include "distributed/cluster/cluster_spec.h"
#include "distributed/rpc/calls/channel.h"
#include "distributed/rpc/calls/status_proto.h"
#include "distributed/rpc/calls/unary_call.h"
#include "distributed/rpc/security/connection_diagnosis.h"
#include "distributed/rpc/security/credentials.h"
#include "proto/penstock/insight.grpc.pb.h"

namespace penstock {
namespace {

// A task's own time to answer, in milliseconds.
constexpr int64_t kOwnMs = 1'000, kCostsMs = 60'000;

// The task at an address, as a process outside of its cluster calls it.
struct AskedTask {
  std::string address;
  std::shared_ptr<const Credentials> credentials;
  std::unique_ptr<wire::Insight::Stub> stub;
};

StatusOr<AskedTask> TaskAt(const std::string& target) {
  AskedTask task{.address = std::string(absl::StripPrefix(target, "grpc://"))};
  const auto parsed = HostPort::Parse(task.address);
  if (!parsed.ok()) {
    return InvalidArgument("'", target, "' is not the address of a task, grpc://HOST:PORT: ",
                           parsed.status().message());
  }
  ASSIGN_OR_RETURN(task.credentials, ProcessCredentials());
  task.stub = std::make_unique<wire::Insight::Stub>(
      NewChannel(task.address, KeepaliveOptions(), *task.credentials));
  return task;
}

// Says in words why the task has not answered.
Status Explained(const AskedTask& task, const Status& status) {
  if (absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status)) {
    const std::string misfit = DiagnoseConnection(task.address, *task.credentials);
    if (!misfit.empty()) {
      return Status(StatusCode::kUnauthenticated,
                    StrCat("the task at ", task.address, ": ", misfit));
    }
    return WithMessage(status,
                       StrCat("the task at ", task.address, " does not answer: it is dead, ",
                              "stopped or cannot be reached; another task of the cluster ",
                              "may tell more (", status.message(), ")"));
  }
  if (absl::IsUnimplemented(status)) {
    return Unimplemented("the server at ", task.address, " is not a Penstock task of this version");
  }
  return WithMessage(status, StrCat("the task at ", task.address, ": ", status.message()));
}

}  // namespace

StatusOr<wire::ClusterReport> AskCluster(const std::string& target, int64_t timeout_ms) {
  ASSIGN_OR_RETURN(const AskedTask task, TaskAt(target));
  grpc::ClientContext context;
  SetTimeout(timeout_ms + kOwnMs, &context);
  wire::GetClusterRequest request;
  request.set_timeout_ms(timeout_ms);
  wire::ClusterReport report;
  const Status status = FromGrpc(task.stub->GetCluster(&context, request, &report), "");
  if (!status.ok()) return Explained(task, status);
  return report;
}

StatusOr<wire::CostReport> AskCosts(const std::string& target, int steps_max) {
  ASSIGN_OR_RETURN(const AskedTask task, TaskAt(target));
  grpc::ClientContext context;
  SetTimeout(kCostsMs, &context);
  wire::GetCostsRequest request;
  request.set_steps_max(steps_max);
  wire::CostReport report;
  const Status status = FromGrpc(task.stub->GetCosts(&context, request, &report), "");
  if (absl::IsDeadlineExceeded(status)) {
    return DeadlineExceeded("the task at ", task.address, " takes longer than ", kCostsMs / 1'000,
                            " s to predict the steps of its sessions: ask for fewer steps; or it ",
                            "has stopped: see whether it answers `penstock status`");
  }
  if (!status.ok()) return Explained(task, status);
  return report;
}

}  // namespace penstock

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

StatusOr<wire::ClusterReport> AskCluster(const std::string& target, int64_t timeout_ms) {
  constexpr int64_t kOwnMs = 1'000;
  const std::string address(absl::StripPrefix(target, "grpc://"));
  const auto parsed = HostPort::Parse(address);
  if (!parsed.ok()) {
    return InvalidArgument("'", target, "' is not the address of a task, grpc://HOST:PORT: ",
                           parsed.status().message());
  }
  ASSIGN_OR_RETURN(const auto credentials, ProcessCredentials());
  wire::Insight::Stub stub(NewChannel(address, KeepaliveOptions(), *credentials));
  grpc::ClientContext context;
  SetTimeout(timeout_ms + kOwnMs, &context);
  wire::GetClusterRequest request;
  request.set_timeout_ms(timeout_ms);
  wire::ClusterReport report;
  const Status status = FromGrpc(stub.GetCluster(&context, request, &report), "");
  if (status.ok()) return report;
  if (absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status)) {
    const std::string misfit = DiagnoseConnection(address, *credentials);
    if (!misfit.empty()) {
      return Status(StatusCode::kUnauthenticated, StrCat("the task at ", address, ": ", misfit));
    }
    return WithMessage(status, StrCat("the task at ", address, " does not answer: it is dead, ",
                                      "stopped or cannot be reached; another task of the cluster ",
                                      "may tell more (", status.message(), ")"));
  }
  if (absl::IsUnimplemented(status)) {
    return Unimplemented("the server at ", address, " is not a Penstock task of this version");
  }
  return WithMessage(status, StrCat("the task at ", address, ": ", status.message()));
}

}  // namespace penstock

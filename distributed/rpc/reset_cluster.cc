// SPDX-License-Identifier: Apache-2.0
//
// The client's side of ResetCluster.
#include "core/base/timeout.h"
#include "distributed/calls/unary_call.h"
#include "distributed/rpc/master_stub.h"
#include "distributed/session/session.h"

namespace penstock {
namespace {

constexpr int64_t kTimeoutMs = 120'000;  // if the session's options have none

}  // namespace

Status ResetCluster(const std::string& target, const std::vector<std::string>& containers,
                    const SessionOptions& options) {
  ASSIGN_OR_RETURN(const std::string address, MasterAddressOf(target));
  tensorflow::ResetRequest request;
  request.mutable_container()->Add(containers.begin(), containers.end());
  request.mutable_device_filters()->Add(options.device_filters.begin(),
                                        options.device_filters.end());
  const int64_t given = options.operation_timeout_ms;
  const int64_t timeout_ms = given > 0 ? LimitTimeout(given) : kTimeoutMs;
  ASSIGN_OR_RETURN(const MasterChannel made, ConnectToMaster(target, address, timeout_ms));
  const auto stub = tensorflow::MasterService::NewStub(made.channel);
  grpc::ClientContext context;
  SetTimeout(made.connected ? timeout_ms : kLastAttemptMs, &context);
  tensorflow::ResetResponse response;
  return FromGrpc(stub->Reset(&context, request, &response), target);
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/task_probe.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>

#include "core/base/cond_var.h"
#include "core/base/detached_thread.h"
#include "core/base/mutex.h"
#include "distributed/calls/channel.h"
#include "distributed/calls/unary_call.h"
#include "distributed/rpc/protocol.h"
#include "distributed/rpc/value_proto.h"
#include "distributed/security/connection_diagnosis.h"
#include "distributed/security/credentials.h"
#include "distributed/security/stream_socket.h"
#include "proto/penstock/insight.grpc.pb.h"

namespace penstock {
namespace {

using Outcome = TaskProbe::Outcome;

TaskProbe Failed(Outcome outcome, std::string detail) {
  return {.outcome = outcome, .detail = std::move(detail)};
}

// Tests whether an HTTP/2 server answers. gRPC's errors do not tell a silent peer from a peer that
// is not a gRPC server.
TaskProbe Greet(const StreamSocket& socket, int timeout_ms) {
  const TaskProbe foreign = Failed(Outcome::kForeign, "it does not speak HTTP/2");
  if (send(socket.fd(), kHttp2Preface, kHttp2PrefaceBytes, MSG_NOSIGNAL) !=
      static_cast<ssize_t>(kHttp2PrefaceBytes)) {
    return foreign;
  }
  if (!socket.Await(POLLIN, timeout_ms)) {
    return Failed(Outcome::kSilent, StrCat("no answer for ", timeout_ms, " ms"));
  }
  char frame[4];
  const ssize_t count = recv(socket.fd(), frame, sizeof(frame), 0);
  const bool settings = count > 0 && IsSettingsFrame(frame, static_cast<size_t>(count));
  return settings ? Failed(Outcome::kServes, "") : foreign;
}

// Tests whether something listens at one of the host's addresses, speaks HTTP/2, and has security
// settings that fit `credentials`. Returns kServes if so, else the outcome that says what is wrong.
TaskProbe Reach(const HostPort& to, int timeout_ms, const Credentials& credentials) {
  int error = 0;
  const AddressList found = ResolveAddresses(to, &error);
  if (error != 0) return Failed(Outcome::kUnresolved, gai_strerror(error));
  const auto socket = ConnectToAny(found.get(), timeout_ms, &error);
  if (socket == nullptr) {
    return Failed(error == ECONNREFUSED ? Outcome::kRefused : Outcome::kUnreachable,
                  std::strerror(error));
  }
  if (!credentials.tls()) {
    TaskProbe greeted = Greet(*socket, timeout_ms);
    if (greeted.outcome != Outcome::kForeign) return greeted;
    const std::string mismatch = DiagnoseConnection(to.ToString(), credentials, timeout_ms);
    return mismatch.empty() ? greeted : Failed(Outcome::kMismatch, mismatch);
  }
  const std::string mismatch = DiagnoseConnection(to.ToString(), credentials, timeout_ms);
  return mismatch.empty() ? Failed(Outcome::kServes, "") : Failed(Outcome::kMismatch, mismatch);
}

TaskProbe Ask(const std::string& address, int64_t timeout_ms, const Credentials& credentials,
              Env& env) {
  const auto stub = wire::Insight::NewStub(NewChannel(address, KeepaliveOptions(), credentials));
  grpc::ClientContext context;
  SetTimeout(timeout_ms, &context);
  wire::TaskReport report;
  const int64_t begin_ns = env.NowNanos(), begin_us = env.WallMicros();
  const grpc::Status status = stub->GetTask(&context, {}, &report);
  const double took_ms = static_cast<double>(env.NowNanos() - begin_ns) / 1e6;
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return Failed(Outcome::kSilent, StrCat("no answer for ", timeout_ms, " ms"));
  }
  if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED) {
    return Failed(Outcome::kMismatch, status.error_message());
  }
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    return Failed(Outcome::kForeign,
                  StrCat("it speaks gRPC, but does not know Penstock's calls",
                         status.error_message().empty() ? "" : ": ", status.error_message()));
  }
  if (!status.ok()) return Failed(Outcome::kForeign, status.error_message());
  const double their_us = static_cast<double>(report.clock_us());
  const double our_us = static_cast<double>(begin_us) + took_ms * 1e3 / 2;
  const bool tells_time = report.clock_us() != 0;
  return {.outcome = Outcome::kServes,
          .name = report.self().task(),
          .incarnation = report.self().incarnation(),
          .version = report.version(),
          .protocol_version = report.protocol_version(),
          .protocol = report.protocol(),
          .cluster = FromProto(report.cluster()).value_or(ClusterSpec()),
          .program_differences = {report.program_difference().begin(),
                                  report.program_difference().end()},
          .round_trip_ms = took_ms,
          .clock_ahead_s = tells_time ? (their_us - our_us) / 1e6 : 0};
}

TaskProbe Probe(const std::string& address, int64_t timeout_ms, Env& env) {
  const StatusOr<HostPort> to = HostPort::Parse(address);
  if (!to.ok()) return Failed(Outcome::kUnresolved, std::string(to.status().message()));
  // A third of the time to connect, a third to get a greeting, a third to ask.
  const int third_ms = static_cast<int>(timeout_ms / 3);
  const auto credentials = ProcessCredentials();
  if (!credentials.ok()) {
    return Failed(Outcome::kMismatch, std::string(credentials.status().message()));
  }
  TaskProbe reached = Reach(*to, third_ms, **credentials);
  if (reached.outcome != Outcome::kServes) return reached;
  return Ask(to->ToString(), third_ms, **credentials, env);
}

// The results of the threads that probe. They share this object, because a thread whose resolver
// hangs outlives the call of ProbeTasks. Probing uses threads and the real clock, not a Scheduler:
// resolving a host name blocks in the operating system, and cannot be cancelled.
struct Probes {
  Mutex mu;
  CondVar answered;
  std::vector<TaskProbe> probes ABSL_GUARDED_BY(mu);
  size_t num_unanswered ABSL_GUARDED_BY(mu) = 0;
};

}  // namespace

std::vector<TaskProbe> ProbeTasks(const std::vector<std::string>& addresses, int64_t timeout_ms,
                                  Env& env) {
  const auto shared = std::make_shared<Probes>();
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  MutexLock lock(shared->mu);
  shared->num_unanswered = addresses.size();
  for (size_t i = 0; i < addresses.size(); ++i) {
    shared->probes.push_back(
        Failed(Outcome::kUnresolved, StrCat("the resolver took longer than ", timeout_ms, " ms")));
    // Does not join the thread, because the resolver cannot be interrupted.
    const Status started =
        StartDetachedThread("probe", [shared, i, address = addresses[i], timeout_ms, &env] {
          TaskProbe probe = Probe(address, timeout_ms, env);
          MutexLock lock(shared->mu);
          shared->probes[i] = std::move(probe);
          if (--shared->num_unanswered == 0) shared->answered.NotifyAll();
        });
    if (started.ok()) continue;
    shared->probes[i].detail = std::string(started.message());
    --shared->num_unanswered;
  }
  while (shared->num_unanswered > 0 && shared->answered.WaitUntil(shared->mu, end)) {
  }
  return shared->probes;
}

}  // namespace penstock

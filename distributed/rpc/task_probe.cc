// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/task_probe.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "core/base/cond_var.h"
#include "core/base/mutex.h"
#include "distributed/rpc/calls/channel.h"
#include "distributed/rpc/calls/unary_call.h"
#include "distributed/rpc/protocol.h"
#include "distributed/rpc/value_proto.h"
#include "proto/penstock/worker.grpc.pb.h"

namespace penstock {
namespace {

using Outcome = TaskProbe::Outcome;

TaskProbe Failed(Outcome outcome, std::string detail) {
  return {.outcome = outcome, .detail = std::move(detail)};
}

// 0, or the error of an attempt to connect.
int Connect(const addrinfo& address, int timeout_ms) {
  const int fd = socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  int error = connect(fd, address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd ready{.fd = fd, .events = POLLOUT, .revents = 0};
    socklen_t size = sizeof(error);
    if (poll(&ready, 1, timeout_ms) <= 0) {
      error = ETIMEDOUT;
    } else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
      error = errno;
    }
  }
  close(fd);
  return error;
}

// Whether something listens at one of the host's addresses.
TaskProbe TryToConnect(const HostPort& to, int timeout_ms) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(to.host.c_str(), StrCat(to.port).c_str(), &hints, &found);
  if (failed != 0) return Failed(Outcome::kUnresolved, gai_strerror(failed));
  int error = 0;
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    error = Connect(*a, timeout_ms);
    if (error == 0) break;
  }
  freeaddrinfo(found);
  if (error == 0) return {.outcome = Outcome::kServes};
  return Failed(error == ECONNREFUSED ? Outcome::kRefused : Outcome::kUnreachable,
                std::strerror(error));
}

TaskProbe Ask(const std::string& address, int64_t timeout_ms, Env& env) {
  const auto stub = wire::Worker::NewStub(NewChannel(address, KeepaliveOptions()));
  grpc::ClientContext context;
  SetTimeout(timeout_ms, &context);
  wire::GetStatusRequest request;
  request.set_want_description(true);
  wire::GetStatusResponse response;
  const int64_t begin_ns = env.NowNanos(), begin_us = env.WallMicros();
  const grpc::Status status = stub->GetStatus(&context, request, &response);
  const double took_ms = static_cast<double>(env.NowNanos() - begin_ns) / 1e6;
  // Near its end, gRPC may say that there is no connection yet, instead of that the time is over.
  if (!status.ok() && took_ms > 0.9 * static_cast<double>(timeout_ms)) {
    return Failed(Outcome::kSilent, StrCat("no answer for ", timeout_ms, " ms"));
  }
  if (!status.ok()) return Failed(Outcome::kForeign, status.error_message());
  const double their_us = static_cast<double>(response.clock_us());
  const double our_us = static_cast<double>(begin_us) + took_ms * 1e3 / 2;
  const bool tells_time = response.clock_us() != 0;
  return {.outcome = Outcome::kServes,
          .name = response.self().task(),
          .incarnation = response.self().incarnation(),
          .version = response.version(),
          .protocol_version = response.protocol_version(),
          .protocol = response.protocol(),
          .cluster = FromProto(response.cluster()).value_or(ClusterSpec()),
          .round_trip_ms = took_ms,
          .clock_ahead_s = tells_time ? (their_us - our_us) / 1e6 : 0};
}

TaskProbe Probe(const std::string& address, int64_t timeout_ms, Env& env) {
  const StatusOr<HostPort> to = HostPort::Parse(address);
  if (!to.ok()) return Failed(Outcome::kUnresolved, std::string(to.status().message()));
  const int half_ms = static_cast<int>(timeout_ms / 2);
  TaskProbe connected = TryToConnect(*to, half_ms);
  return connected.outcome == Outcome::kServes ? Ask(to->ToString(), half_ms, env) : connected;
}

// Shared with the threads, since a resolver that hangs outlives the probe.
struct Probes {
  Mutex mu;
  CondVar answered;
  std::vector<TaskProbe> probes ABSL_GUARDED_BY(mu);
  size_t left ABSL_GUARDED_BY(mu) = 0;
};

}  // namespace

std::vector<TaskProbe> ProbeTasks(const std::vector<std::string>& addresses, int64_t timeout_ms,
                                  Env& env) {
  const auto shared = std::make_shared<Probes>();
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  MutexLock lock(shared->mu);
  shared->left = addresses.size();
  for (size_t i = 0; i < addresses.size(); ++i) {
    shared->probes.push_back(
        Failed(Outcome::kUnresolved, StrCat("the resolver took longer than ", timeout_ms, " ms")));
    std::thread([shared, i, address = addresses[i], timeout_ms, &env] {
      TaskProbe probe = Probe(address, timeout_ms, env);
      MutexLock lock(shared->mu);
      shared->probes[i] = std::move(probe);
      if (--shared->left == 0) shared->answered.NotifyAll();
    }).detach();
  }
  while (shared->left > 0 && shared->answered.WaitUntil(shared->mu, end)) {
  }
  return shared->probes;
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/task_probe.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
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
#include "proto/penstock/insight.grpc.pb.h"

namespace penstock {
namespace {

using Outcome = TaskProbe::Outcome;

TaskProbe Failed(Outcome outcome, std::string detail) {
  return {.outcome = outcome, .detail = std::move(detail)};
}

class Socket {
 public:
  explicit Socket(int family)
      : fd_(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;

  // 0, or the error.
  int Connect(const addrinfo& address, int timeout_ms) {
    if (fd_ < 0 || connect(fd_, address.ai_addr, address.ai_addrlen) == 0)
      return fd_ < 0 ? errno : 0;
    if (errno != EINPROGRESS) return errno;
    if (!Await(POLLOUT, timeout_ms)) return ETIMEDOUT;
    int error = 0;
    socklen_t size = sizeof(error);
    return getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
  }

  // Whether HTTP/2 is spoken there (RFC 9113, 3.4): both ends begin with a SETTINGS frame. gRPC
  // itself does not tell a peer that is silent from one that is no server of its.
  Outcome Greet(int timeout_ms) {
    static constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
    if (send(fd_, kPreface, sizeof(kPreface), MSG_NOSIGNAL) != sizeof(kPreface)) {
      return Outcome::kForeign;
    }
    if (!Await(POLLIN, timeout_ms)) return Outcome::kSilent;
    char frame[4];  // three bytes of length, one of type
    const bool settings = recv(fd_, frame, sizeof(frame), 0) == sizeof(frame) && frame[3] == 4;
    return settings ? Outcome::kServes : Outcome::kForeign;
  }

 private:
  bool Await(short event, int timeout_ms) const {
    pollfd ready{.fd = fd_, .events = event, .revents = 0};
    return poll(&ready, 1, timeout_ms) > 0;
  }

  const int fd_;
};

TaskProbe Greet(Socket& socket, int timeout_ms) {
  const Outcome outcome = socket.Greet(timeout_ms);
  if (outcome == Outcome::kSilent) {
    return Failed(outcome, StrCat("no answer for ", timeout_ms, " ms"));
  }
  return Failed(outcome, outcome == Outcome::kForeign ? "it does not speak HTTP/2" : "");
}

// Whether something listens at one of the host's addresses, and speaks HTTP/2.
TaskProbe Reach(const HostPort& to, int timeout_ms) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(to.host.c_str(), StrCat(to.port).c_str(), &hints, &found);
  if (failed != 0) return Failed(Outcome::kUnresolved, gai_strerror(failed));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, freeaddrinfo);
  int error = 0;
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    Socket socket(a->ai_family);
    error = socket.Connect(*a, timeout_ms);
    if (error == 0) return Greet(socket, timeout_ms);
  }
  return Failed(error == ECONNREFUSED ? Outcome::kRefused : Outcome::kUnreachable,
                std::strerror(error));
}

TaskProbe Ask(const std::string& address, int64_t timeout_ms, Env& env) {
  const auto stub = wire::Insight::NewStub(NewChannel(address, KeepaliveOptions()));
  grpc::ClientContext context;
  SetTimeout(timeout_ms, &context);
  wire::TaskReport report;
  const int64_t begin_ns = env.NowNanos(), begin_us = env.WallMicros();
  const grpc::Status status = stub->GetTask(&context, {}, &report);
  const double took_ms = static_cast<double>(env.NowNanos() - begin_ns) / 1e6;
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return Failed(Outcome::kSilent, StrCat("no answer for ", timeout_ms, " ms"));
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
          .round_trip_ms = took_ms,
          .clock_ahead_s = tells_time ? (their_us - our_us) / 1e6 : 0};
}

TaskProbe Probe(const std::string& address, int64_t timeout_ms, Env& env) {
  const StatusOr<HostPort> to = HostPort::Parse(address);
  if (!to.ok()) return Failed(Outcome::kUnresolved, std::string(to.status().message()));
  const int third_ms = static_cast<int>(timeout_ms / 3);  // to connect, to be greeted, to ask
  TaskProbe reached = Reach(*to, third_ms);
  return reached.outcome == Outcome::kServes ? Ask(to->ToString(), third_ms, env) : reached;
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

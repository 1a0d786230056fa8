// SPDX-License-Identifier: Apache-2.0
#include "tests/transport/limits.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/check.h"
#include "core/base/env.h"

namespace penstock {
namespace {

// The receiver's request to the other process.
struct Wanted {
  int64_t bytes = 0, count = 0;
};

bool WriteAll(int fd, const char* from, size_t bytes) {
  while (bytes > 0) {
    const ssize_t written = write(fd, from, bytes);
    if (written <= 0) return false;
    from += written;
    bytes -= static_cast<size_t>(written);
  }
  return true;
}

bool ReadAll(int fd, char* to, size_t bytes) {
  while (bytes > 0) {
    const ssize_t got = read(fd, to, bytes);
    if (got <= 0) return false;
    to += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

void SetNoDelay(int fd) {
  const int yes = 1;
  CHECK(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) == 0);
}

sockaddr* Address(sockaddr_in* address) { return reinterpret_cast<sockaddr*>(address); }

// Connects to `server`, then sends the requested bytes until the other end is closed.
[[noreturn]] void Send(sockaddr_in server, const char* source) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd, Address(&server), sizeof(server)) != 0) _exit(1);
  SetNoDelay(fd);
  Wanted wanted;
  while (ReadAll(fd, reinterpret_cast<char*>(&wanted), sizeof(wanted))) {
    for (int64_t i = 0; i < wanted.count; ++i) {
      if (!WriteAll(fd, source, static_cast<size_t>(wanted.bytes))) _exit(1);
    }
  }
  _exit(0);
}

}  // namespace

Limits::Limits(int64_t bytes_max)
    : source_(static_cast<size_t>(bytes_max), 1), target_(static_cast<size_t>(bytes_max), 2) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  CHECK(bind(listener, Address(&address), length) == 0 && listen(listener, 1) == 0 &&
        getsockname(listener, Address(&address), &length) == 0);
  peer_ = fork();
  CHECK(peer_ >= 0);
  if (peer_ == 0) Send(address, source_.data());
  socket_ = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  CHECK(socket_ >= 0);
  SetNoDelay(socket_);
  close(listener);
}

Limits::~Limits() {
  close(socket_);
  kill(peer_, SIGKILL);
  waitpid(peer_, nullptr, 0);
}

StatusOr<double> Limits::Seconds(const std::string& way, int64_t bytes, int64_t count) {
  CHECK(bytes <= static_cast<int64_t>(source_.size()));
  const int64_t begin = Env::Real().NowNanos();
  if (way == "tcp") {
    RETURN_IF_ERROR(ReceiveByTcp(bytes, count));
  } else if (way == "cma") {
    RETURN_IF_ERROR(ReadByCma(bytes, count));
  } else if (way == "memcpy") {
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(target_.data(), source_.data(), static_cast<size_t>(bytes));
      asm volatile("" : : "r"(target_.data()) : "memory");  // so that the compiler keeps every copy
    }
  } else {
    return InvalidArgument("no limit '", way, "': expected tcp, cma or memcpy");
  }
  return static_cast<double>(Env::Real().NowNanos() - begin) / 1e9;
}

Status Limits::ReceiveByTcp(int64_t bytes, int64_t count) {
  const Wanted wanted = {bytes, count};
  if (!WriteAll(socket_, reinterpret_cast<const char*>(&wanted), sizeof(wanted))) {
    return Unavailable("the other process does not read");
  }
  for (int64_t i = 0; i < count; ++i) {
    if (!ReadAll(socket_, target_.data(), static_cast<size_t>(bytes))) {
      return Unavailable("the other process does not write");
    }
  }
  return OkStatus();
}

Status Limits::ReadByCma(int64_t bytes, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t done = 0; done < bytes;) {  // one call reads 2 GiB at most
      const size_t left = static_cast<size_t>(bytes - done);
      const iovec here = {target_.data() + done, left};
      const iovec there = {const_cast<char*>(source_.data()) + done, left};
      const ssize_t got = process_vm_readv(peer_, &here, 1, &there, 1, 0);
      if (got <= 0) return FailedPrecondition("process_vm_readv: ", std::strerror(errno));
      done += got;
    }
  }
  return OkStatus();
}

}  // namespace penstock

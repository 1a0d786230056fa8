// SPDX-License-Identifier: Apache-2.0
//
// The fastest ways to move bytes between two processes of this host, as upper limits of the speed
// of a transport: a raw TCP connection over the loopback interface, process_vm_readv (CMA), and
// memcpy within one process, which is the minimum for a transport that copies once.
//
// Single-threaded. Limits starts a process, so make it before other threads are started.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace penstock {

class Limits {
 public:
  // `bytes_max`: the maximum size of one message.
  explicit Limits(int64_t bytes_max);
  ~Limits();
  Limits(const Limits&) = delete;
  Limits& operator=(const Limits&) = delete;

  // Returns the seconds that `way` ("tcp", "cma" or "memcpy") takes to move `count` messages of
  // `bytes` bytes. FailedPrecondition if the system does not permit this way.
  StatusOr<double> Seconds(const std::string& way, int64_t bytes, int64_t count);

 private:
  Status ReceiveByTcp(int64_t bytes, int64_t count);
  Status ReadByCma(int64_t bytes, int64_t count);

  const std::vector<char> source_;  // memory that the other process has at the same address
  std::vector<char> target_;
  int socket_ = -1;
  pid_t peer_ = -1;
};

}  // namespace penstock

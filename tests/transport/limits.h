// SPDX-License-Identifier: Apache-2.0
//
// The fastest ways to move bytes between two processes of this host, as limits of what a transport
// can reach: a raw TCP connection over the loopback, process_vm_readv (CMA), and memcpy within one
// process, which every transport that copies once needs at least.
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

  // Returns the seconds of moving `count` messages of `bytes` each by `way`: "tcp", "cma" or
  // "memcpy". FailedPrecondition if the system does not permit it.
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

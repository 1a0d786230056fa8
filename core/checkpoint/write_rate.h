// SPDX-License-Identifier: Apache-2.0
//
// SteadyEnv: an Env that limits the bytes per second written to new files, so that a checkpoint
// that is saved during a training does not take all of the disk's and the network's bandwidth.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/base/forwarding_env.h"

namespace penstock {

// An int attribute of SaveV2 nodes: the maximum number of bytes that the node writes per second. A
// private attribute (core/op/private_attrs.h), written by client/saver.h, read by the kernel
// (kernels/io).
inline constexpr char kBytesPerSecondAttr[] = "_bytes_per_second";

// All files that one SteadyEnv creates share its limit. One thread at a time may write.
class SteadyEnv final : public ForwardingEnv {
 public:
  // REQUIRES: bytes_per_second > 0. `check` is called at least every 50 ms while a write waits; an
  // error from it ends the write. A large write is split into pieces that take 50 ms. Borrows
  // `base`, and waits with base.SleepForNanos.
  SteadyEnv(Env& base, int64_t bytes_per_second, std::function<Status()> check);

  StatusOr<std::unique_ptr<WritableFile>> NewWritableFile(const std::string& path) override;

 private:
  class File;
  Status Wait(size_t bytes);

  const int64_t bytes_per_second_;
  const size_t piece_bytes_;
  const std::function<Status()> check_;
  int64_t next_ns_ = 0;  // when the next bytes may be written; used only by the writing thread
};

}  // namespace penstock

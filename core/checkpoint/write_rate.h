// SPDX-License-Identifier: Apache-2.0
//
// SteadyEnv: an Env that limits the bytes per second written to new files, so that saving a
// checkpoint during a training leaves the training enough of the disk and the network.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/base/forwarding_env.h"

namespace penstock {

// The int attribute of a SaveV2 node that limits the bytes it writes per second. Written by
// client/saver.h, read by the kernel (kernels/io). A private attribute (core/op/private_attrs.h).
inline constexpr char kBytesPerSecondAttr[] = "_bytes_per_second";

// All files that one SteadyEnv creates share its rate. One thread at a time may write.
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

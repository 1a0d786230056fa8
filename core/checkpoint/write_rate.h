// SPDX-License-Identifier: Apache-2.0
//
// SteadyEnv: an Env whose new files take so many bytes a second, so that a checkpoint that is
// written beside a training leaves it the disk and the network.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/base/forwarding_env.h"

namespace penstock {

// The int attribute of a SaveV2 node that says how many bytes a second it writes, at most. Written
// by client/saver.h, read by the kernel (kernels/io). A private attribute
// (core/op/private_attrs.h).
inline constexpr char kBytesPerSecondAttr[] = "_bytes_per_second";

// All files that one makes share its rate, and are written by one thread at a time.
class SteadyEnv final : public ForwardingEnv {
 public:
  // REQUIRES bytes_per_second > 0. `check` is asked at least every 50 ms while a write waits; what
  // it returns ends the write. A large write goes out in pieces of 50 ms. Borrows `base`, whose
  // SleepForNanos it waits with.
  SteadyEnv(Env& base, int64_t bytes_per_second, std::function<Status()> check);

  StatusOr<std::unique_ptr<WritableFile>> NewWritableFile(const std::string& path) override;

 private:
  class File;
  Status Wait(size_t bytes);

  const int64_t bytes_per_second_;
  const size_t piece_bytes_;
  const std::function<Status()> check_;
  int64_t next_ns_ = 0;  // when the next bytes may be written; of the one thread that writes
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// FileKernel: a kernel that waits for files. It runs on Scheduler::files(), so that a slow disk
// never keeps the computing threads from their work.
#pragma once

#include <string>
#include <utility>

#include "core/op/kernel.h"

namespace penstock {

class FileKernel : public AsyncKernel {
 public:
  void ComputeAsync(KernelContext& ctx, Done done) final;

 protected:
  // Like Compute: must not change the object. Long ones look at the step's cancellation at times.
  virtual Status Run(KernelContext& ctx) const = 0;
};

// OK, or the status that the step was cancelled with.
Status CheckNotCancelled(const KernelContext& ctx);

// Input i, which must be one string. `name` is what the error calls it.
StatusOr<std::string> StringInput(const KernelContext& ctx, int i, const char* name);
// Input i, which must be a vector of strings.
StatusOr<absl::Span<const std::string>> StringsInput(const KernelContext& ctx, int i,
                                                     const char* name);

}  // namespace penstock

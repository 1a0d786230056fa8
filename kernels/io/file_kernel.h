// SPDX-License-Identifier: Apache-2.0
//
// FileKernel: the base of kernels that wait for files. It runs on Scheduler::files(), so that a
// slow disk does not block the computing threads. Also functions that read the inputs of such
// kernels.
#pragma once

#include <string>
#include <utility>

#include "core/op/kernel.h"

namespace penstock {

class FileKernel : public AsyncKernel {
 public:
  void ComputeAsync(KernelContext& ctx, Done done) final;
  bool WaitsForNodes() const final { return false; }

 protected:
  // Computes the outputs. Must not change the object, like Kernel::Compute. Long runs should check
  // from time to time whether the step is cancelled.
  virtual Status Run(KernelContext& ctx) const = 0;
};

// Returns OK, or the status with which the step was cancelled.
Status CheckNotCancelled(const KernelContext& ctx);

// Returns input i, which must be one string. Errors call it `name`.
StatusOr<std::string> StringInput(const KernelContext& ctx, int i, const char* name);
// Returns input i. InvalidArgument, which calls it `name`, unless it is a vector of strings.
StatusOr<absl::Span<const std::string>> StringsInput(const KernelContext& ctx, int i,
                                                     const char* name);

}  // namespace penstock

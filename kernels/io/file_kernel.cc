// SPDX-License-Identifier: Apache-2.0
#include "kernels/io/file_kernel.h"

#include "core/base/blocking_calls.h"
#include "core/base/guarded.h"

namespace penstock {

void FileKernel::ComputeAsync(KernelContext& ctx, Done done) {
  ctx.threads().files().Schedule([this, &ctx, done = std::move(done)]() mutable {
    const BlockingCall call(
        StrCat("node '", ctx.node_name(), "' of step ", ctx.step().step_id, " waits for files"),
        *ctx.step().env);
    Status status = CheckNotCancelled(ctx);
    if (status.ok()) status = Guarded([&] { return Run(ctx); });
    std::move(done)(std::move(status));
  });
}

Status CheckNotCancelled(const KernelContext& ctx) {
  const Cancellation* cancellation = ctx.step().cancellation;
  return cancellation == nullptr || !cancellation->cancelled() ? OkStatus()
                                                               : cancellation->status();
}

StatusOr<std::string> StringInput(const KernelContext& ctx, int i, const char* name) {
  const Tensor& input = ctx.input(i);
  if (input.dtype() != DType::kString || input.num_elements() != 1) {
    return InvalidArgument(name, " must be one string, is ", Name(input.dtype()),
                           input.shape().ToString());
  }
  return input.scalar<std::string>();
}

StatusOr<absl::Span<const std::string>> StringsInput(const KernelContext& ctx, int i,
                                                     const char* name) {
  const Tensor& input = ctx.input(i);
  if (input.dtype() != DType::kString || input.rank() != 1) {
    return InvalidArgument(name, " must be a vector of strings, is ", Name(input.dtype()),
                           input.shape().ToString());
  }
  return input.flat<std::string>();
}

}  // namespace penstock

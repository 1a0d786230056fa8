// SPDX-License-Identifier: Apache-2.0
//
// ShardedFilename, ShardedFilespec: the names of files that several tasks write together.
#include "absl/strings/str_format.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/io/file_kernel.h"

namespace penstock {
namespace {

StatusOr<int32_t> IntInput(const KernelContext& ctx, int i, const char* name) {
  const Tensor& input = ctx.input(i);
  if (input.dtype() != DType::kInt32 || input.num_elements() != 1) {
    return InvalidArgument(name, " must be one int32, is ", Name(input.dtype()),
                           input.shape().ToString());
  }
  return input.scalar<int32_t>();
}

Status OutputString(KernelContext& ctx, std::string value) {
  Tensor* output = nullptr;
  RETURN_IF_ERROR(ctx.Allocate(0, {}, &output));
  *output->mutable_data<std::string>() = std::move(value);
  return OkStatus();
}

class ShardedFilenameKernel : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const std::string basename, StringInput(ctx, 0, "basename"));
    ASSIGN_OR_RETURN(const int32_t shard, IntInput(ctx, 1, "shard"));
    ASSIGN_OR_RETURN(const int32_t num_shards, IntInput(ctx, 2, "num_shards"));
    return OutputString(ctx, absl::StrFormat("%s-%05d-of-%05d", basename, shard, num_shards));
  }
};

class ShardedFilespecKernel : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const std::string basename, StringInput(ctx, 0, "basename"));
    ASSIGN_OR_RETURN(const int32_t num_shards, IntInput(ctx, 1, "num_shards"));
    return OutputString(ctx, absl::StrFormat("%s-\?\?\?\?\?-of-%05d", basename, num_shards));
  }
};

Status AllScalars(ShapeScope& s) {
  for (int i = 0; i < s.num_inputs(); ++i) RETURN_IF_ERROR(s.WithRank(i, 0).status());
  return ScalarShape(s);
}

OP(ShardedFilename) {
  return {
      .doc = "Returns the name of one file of a set, such as basename-00001-of-00004.",
      .inputs = {{"basename", "string"}, {"shard", "int32"}, {"num_shards", "int32"}},
      .outputs = {{"filename", "string"}},
      .shape = AllScalars,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{}}}, {{{}}}, {{{}}}}}},
  };
}
KERNEL_ANY_TYPE(ShardedFilename, ShardedFilenameKernel);

OP(ShardedFilespec) {
  return {
      .doc = "Returns a pattern that matches all files of a set.",
      .inputs = {{"basename", "string"}, {"num_shards", "int32"}},
      .outputs = {{"filename", "string"}},
      .shape = AllScalars,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{}}}, {{{}}}}}},
  };
}
KERNEL_ANY_TYPE(ShardedFilespec, ShardedFilespecKernel);

}  // namespace
}  // namespace penstock

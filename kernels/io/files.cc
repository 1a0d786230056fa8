// SPDX-License-Identifier: Apache-2.0
//
// Ops that read, write and find files.
#include <algorithm>
#include <set>

#include "core/base/env.h"
#include "core/base/match_files.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "core/tensor/memory_account.h"
#include "kernels/io/file_kernel.h"

namespace penstock {
namespace {

// ResourceExhausted if the task has less than `bytes` bytes of memory left. The kernels call it
// because MemoryAccount does not include the memory of strings.
Status CheckMemoryFor(const std::string& filename, int64_t bytes) {
  const int64_t available = MemoryAccount::Task().available();
  if (bytes <= available) return OkStatus();
  return ResourceExhausted("file '", filename, "' has ", bytes,
                           " bytes, and this task (--memory_limit) has ", available, " left");
}

class ReadFileKernel : public FileKernel {
 protected:
  Status Run(KernelContext& ctx) const override {
    ASSIGN_OR_RETURN(const std::string filename, StringInput(ctx, 0, "filename"));
    ASSIGN_OR_RETURN(const auto file, ctx.step().env->OpenFile(filename));
    RETURN_IF_ERROR(CheckMemoryFor(filename, file->size()));
    ASSIGN_OR_RETURN(std::string contents, ctx.step().env->ReadFile(filename));
    Tensor* output = nullptr;
    RETURN_IF_ERROR(ctx.Allocate(0, {}, &output));
    *output->mutable_data<std::string>() = std::move(contents);
    return OkStatus();
  }
};

class WriteFileKernel : public FileKernel {
 protected:
  Status Run(KernelContext& ctx) const override {
    ASSIGN_OR_RETURN(const std::string filename, StringInput(ctx, 0, "filename"));
    ASSIGN_OR_RETURN(const std::string contents, StringInput(ctx, 1, "contents"));
    const size_t slash = filename.rfind('/');
    if (slash != std::string::npos && slash > 0) {
      RETURN_IF_ERROR(ctx.step().env->CreateDirectories(filename.substr(0, slash)));
    }
    ASSIGN_OR_RETURN(const auto file, ctx.step().env->NewWritableFile(filename));
    const Status written = file->Append(contents);
    const Status closed = file->Close();
    return written.ok() ? closed : written;
  }
};

class MatchingFilesKernel : public FileKernel {
 protected:
  Status Run(KernelContext& ctx) const override {
    const Tensor& patterns = ctx.input(0);
    if (patterns.dtype() != DType::kString || patterns.rank() > 1) {
      return InvalidArgument("pattern must be a string or a vector of them, is ",
                             Name(patterns.dtype()), patterns.shape().ToString());
    }
    std::set<std::string> paths;  // sorted
    for (const std::string& pattern : patterns.flat<std::string>()) {
      std::vector<std::string> matching = MatchFiles(*ctx.step().env, pattern);
      if (matching.empty()) RETURN_IF_ERROR(CheckPattern(*ctx.step().env, pattern));
      for (std::string& path : matching) paths.insert(std::move(path));
    }
    Tensor* output = nullptr;
    RETURN_IF_ERROR(ctx.Allocate(0, {static_cast<int64_t>(paths.size())}, &output));
    std::copy(paths.begin(), paths.end(), output->mutable_data<std::string>());
    return OkStatus();
  }
};

Status ReadFileShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(0, 0).status());
  return ScalarShape(s);
}

Status WriteFileShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(0, 0).status());
  return s.WithRank(1, 0).status();
}

Status MatchingFilesShape(ShapeScope& s) {
  s.set_output(0, PartialShape({PartialShape::kUnknown}));
  return OkStatus();
}

OP(ReadFile) {
  return {
      .doc = "Returns the contents of a file.",
      .inputs = {{"filename", "string"}},
      .outputs = {{"contents", "string"}},
      .shape = ReadFileShape,
      .gradient = NoGradient,
      .stateful = true,
      .acts_outside = true,
      .untestable_alone = "works on files: kernels/io has its tests",
  };
}
KERNEL_ANY_TYPE(ReadFile, ReadFileKernel);

OP(WriteFile) {
  return {
      .doc = "Writes a file, and creates its directory if needed.",
      .inputs = {{"filename", "string"}, {"contents", "string"}},
      .shape = WriteFileShape,
      .gradient = NoGradient,
      .stateful = true,
      .acts_outside = true,
      .untestable_alone = "works on files: kernels/io has its tests",
  };
}
KERNEL_ANY_TYPE(WriteFile, WriteFileKernel);

OP(MatchingFiles) {
  return {
      .doc = "Returns the sorted paths of the files that match a pattern with *, ? and [...].",
      .inputs = {{"pattern", "string"}},
      .outputs = {{"filenames", "string"}},
      .shape = MatchingFilesShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2}}}}}},
      .stateful = true,
      .acts_outside = true,
  };
}
KERNEL_ANY_TYPE(MatchingFiles, MatchingFilesKernel);

}  // namespace
}  // namespace penstock

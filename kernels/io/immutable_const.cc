// SPDX-License-Identifier: Apache-2.0
//
// ImmutableConst: a constant whose bytes are in a file that the op's task can read.

#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/io/file_kernel.h"

namespace penstock {
namespace {

class ImmutableConstKernel : public FileKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("dtype", &dtype_));
    RETURN_IF_ERROR(node.Attr("memory_region_name", &path_));
    PartialShape shape;
    RETURN_IF_ERROR(node.Attr("shape", &shape));
    if (!shape.fully_known()) {
      return InvalidArgument("node '", node.name, "': attribute shape ", shape.ToString(),
                             " must be fully known");
    }
    ASSIGN_OR_RETURN(shape_, Shape::Make(shape.dims()));
    if (IsPlain(dtype_)) return OkStatus();
    return Unimplemented("node '", node.name, "': a file holds no constant of type ", Name(dtype_));
  }

 protected:
  // The first step reads the file. All steps share the value; a kernel that writes to a shared
  // buffer makes a copy first.
  Status Run(KernelContext& ctx) const override {
    MutexLock lock(mu_);
    if (!value_.valid()) {
      ASSIGN_OR_RETURN(value_, Read(*ctx.step().env));
    }
    ctx.SetOutput(0, value_);
    return OkStatus();
  }

 private:
  StatusOr<Tensor> Read(Env& env) const {
    ASSIGN_OR_RETURN(const auto file, env.OpenFile(path_));
    const auto bytes =
        CheckedProduct({shape_.num_elements(), static_cast<int64_t>(SizeOf(dtype_))});
    if (!bytes.ok() || *bytes > file->size()) {
      return InvalidArgument("'", path_, "' has ", file->size(), " bytes, too few for ",
                             Name(dtype_), shape_.ToString());
    }
    ASSIGN_OR_RETURN(Tensor value, Tensor::Make(CpuAllocator(), dtype_, shape_));
    RETURN_IF_ERROR(file->Read(0, *bytes, static_cast<char*>(value.mutable_raw_data())));
    if (dtype_ == DType::kBool) {
      // Makes every byte 0 or 1, because a bool must not have any other value.
      auto* const flags = static_cast<uint8_t*>(value.mutable_raw_data());
      for (int64_t i = 0; i < value.num_elements(); ++i) flags[i] = flags[i] != 0;
    }
    return value;
  }

  DType dtype_ = DType::kInvalid;
  Shape shape_;
  std::string path_;
  mutable Mutex mu_;
  mutable Tensor value_ ABSL_GUARDED_BY(mu_);  // invalid until the file is read
};

OP(ImmutableConst) {
  return {
      .doc = "Returns a tensor whose bytes are read from the file memory_region_name.",
      .outputs = {{"tensor", "dtype"}},
      .types = {{"dtype", kAllTypes}},
      .attrs = {{"shape", Shapes{}}, {"memory_region_name", Strings{}}},
      .shape = ShapeFromAttr,
      .gradient = NoGradient,
      .untestable_alone = "reads a file: kernels/io has its tests",
  };
}
KERNEL_ANY_TYPE(ImmutableConst, ImmutableConstKernel);

}  // namespace
}  // namespace penstock

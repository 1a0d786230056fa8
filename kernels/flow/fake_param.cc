// SPDX-License-Identifier: Apache-2.0
//
// FakeParam: returns zeros in place of a value that only another branch computes.
#include <cstring>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"

namespace penstock {
namespace {

class FakeParamKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    PartialShape shape;
    RETURN_IF_ERROR(node.Attr("shape", &shape));
    Dims dims;
    for (int i = 0; shape.known_rank() && i < shape.rank(); ++i) {
      dims.push_back(shape.dim(i) == PartialShape::kUnknown ? 0 : shape.dim(i));
    }
    ASSIGN_OR_RETURN(shape_, Shape::Make(dims));
    return OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape_, &output));
    if (IsPlain(output->dtype()) && output->bytes() > 0) {
      std::memset(output->mutable_raw_data(), 0, output->bytes());
    }
    return OkStatus();
  }

 private:
  Shape shape_;
};

OP(FakeParam) {
  return {
      .doc =
          "Returns a tensor of type dtype that stands for a missing value: a branch of a "
          "conditional returns it for a result that only another branch computes. Its elements are "
          "zeros, empty strings or empty variants. Unknown dimensions of `shape` become 0; if the "
          "rank is unknown, the tensor is a scalar. InvalidArgument if `shape` is too large.",
      .outputs = {{"output", "dtype"}},
      .types = {{"dtype", kAnyType}},
      .attrs = {{"shape", Shapes{}}},
      .shape = [](ShapeScope& s) -> Status {
        s.set_output(0, s.attr<PartialShape>("shape"));
        return OkStatus();
      },
      .gradient = NoGradient,
      .examples = {{.attrs = {{"shape", PartialShape({2, 3})}}}},
  };
}
KERNEL_ANY_TYPE(FakeParam, FakeParamKernel);

}  // namespace
}  // namespace penstock

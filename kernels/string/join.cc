// SPDX-License-Identifier: Apache-2.0
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"

namespace penstock {
namespace {

class StringJoinKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("separator", &separator_); }

  Status Compute(KernelContext& ctx) override {
    Shape shape;
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      const Shape& found = ctx.input(i).shape();
      if (found.rank() == 0) continue;
      if (shape.rank() != 0 && shape != found) {
        return InvalidArgument("Input shapes do not match: ", shape.ToString(), " vs. ",
                               found.ToString());
      }
      shape = found;
    }
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    for (int64_t place = 0; place < shape.num_elements(); ++place) {
      std::string* const joined = output->mutable_data<std::string>() + place;
      for (int i = 0; i < ctx.num_inputs(); ++i) {
        const Tensor& part = ctx.input(i);
        StrAppend(joined, i == 0 ? "" : separator_,
                  part.data<std::string>()[part.rank() == 0 ? 0 : place]);
      }
    }
    return OkStatus();
  }

 private:
  std::string separator_;
};

Status JoinShape(ShapeScope& s) {
  PartialShape joined = PartialShape::Scalar();
  for (int i = 0; i < s.num_inputs(); ++i) {
    const PartialShape& part = s.input(i);
    if (part.rank() == 0) continue;
    if (joined.rank() == 0) {
      joined = part;
    } else if (!joined.Compatible(part)) {
      return InvalidArgument("Input shapes do not match: ", joined.ToString(), " vs. ",
                             part.ToString());
    }
  }
  s.set_output(0, std::move(joined));
  return OkStatus();
}

OP(StringJoin) {
  return {
      .doc =
          "Joins the strings of all inputs element by element. A scalar is joined to every "
          "element.",
      .inputs = {{"inputs", Repeat("N", "string")}},
      .outputs = {{"output", "string"}},
      .attrs = {{"N", Ints{.min = 0}}, {"separator", ""}},
      .shape = JoinShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2}}, {}, {{2}}}}}},
  };
}
KERNEL_ANY_TYPE(StringJoin, StringJoinKernel);

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Diag: makes a tensor of twice its input's rank, with the input on the diagonal; DiagPart: returns
// the diagonal of such a tensor.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"
#include "kernels/array/strided_copy.h"

namespace penstock {
namespace {

class DiagKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& diagonal = ctx.input(0);
    if (diagonal.rank() < 1) return InvalidArgument("Input must be at least rank 1, got 0");
    const auto half = diagonal.shape().dims();
    Dims dims(half.begin(), half.end());
    dims.insert(dims.end(), half.begin(), half.end());
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    Zero(*output, ctx.threads());
    StridedCopy copy;
    copy.Add(diagonal.num_elements(), 1, diagonal.num_elements() + 1);
    CopyStrided(diagonal.dtype(), copy, diagonal.raw_data(), output->mutable_raw_data(),
                ctx.threads());
    return OkStatus();
  }
};

Status DiagShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape half, s.WithRankAtLeast(0, 1));
  ASSIGN_OR_RETURN(PartialShape shape, JoinShapes(half, half));
  s.set_output(0, std::move(shape));
  return OkStatus();
}

// Returns the first half of the dimensions, merged with the second half. InvalidArgument if the
// halves differ, or if the rank is odd or zero.
StatusOr<PartialShape> FirstHalf(const PartialShape& shape) {
  if (!shape.known_rank()) return PartialShape();
  const int rank = shape.rank();
  if (rank == 0 || rank % 2 != 0) {
    return InvalidArgument("The rank of the tensor should be even and positive, got shape ",
                           shape.ToString());
  }
  const PartialShape first = SubShape(shape, 0, rank / 2);
  const PartialShape second = SubShape(shape, rank / 2, rank);
  if (!first.Compatible(second)) {
    return InvalidArgument("Invalid shape ", shape.ToString(), ": its first half, ",
                           first.ToString(), ", and its second half do not match.");
  }
  return first.Merge(second);
}

class DiagPartKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    ASSIGN_OR_RETURN(const PartialShape half, FirstHalf(input.shape()));
    Tensor* diagonal;
    RETURN_IF_ERROR(ctx.Allocate(0, half.ToShape(), &diagonal));
    StridedCopy copy;
    copy.Add(diagonal->num_elements(), diagonal->num_elements() + 1, 1);
    CopyStrided(input.dtype(), copy, input.raw_data(), diagonal->mutable_raw_data(), ctx.threads());
    return OkStatus();
  }
};

Status DiagPartShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape half, FirstHalf(s.input(0)));
  s.set_output(0, std::move(half));
  return OkStatus();
}

OP(Diag) {
  return {
      .doc =
          "Returns a tensor of shape diagonal.shape + diagonal.shape that has the input on "
          "its diagonal and zeros elsewhere.",
      .inputs = {{"diagonal", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kNumber}},
      .shape = DiagShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {Call("DiagPart", {g.dy()})};
      },
  };
}

OP(DiagPart) {
  return {
      .doc = "Returns the diagonal of a tensor whose shape consists of the same shape twice.",
      .inputs = {{"input", "T"}},
      .outputs = {{"diagonal", "T"}},
      .types = {{"T", kNumber}},
      .shape = DiagPartShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {Call("Diag", {g.dy()})};
      },
      .examples = {{.inputs = {{{{2, 3, 2, 3}}}}}},
  };
}
KERNEL_ANY_TYPE(Diag, DiagKernel);
KERNEL_ANY_TYPE(DiagPart, DiagPartKernel);

}  // namespace
}  // namespace penstock

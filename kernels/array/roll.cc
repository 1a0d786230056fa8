// SPDX-License-Identifier: Apache-2.0
//
// Roll: shifts elements along dimensions; elements shifted off one end re-enter at the other.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"
#include "kernels/array/strided_copy.h"

namespace penstock {
namespace {

// Returns the elements of a vector, or a scalar as a vector of one.
StatusOr<Dims> ScalarOrVector(const Tensor& tensor, string_view name) {
  return IntVector(tensor.rank() == 0 ? tensor.Reshaped(Shape{1}) : tensor, name);
}

class RollKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    if (input.rank() < 1) return InvalidArgument("input must be 1-D or higher");
    ASSIGN_OR_RETURN(const Dims by, ScalarOrVector(ctx.input(1), "shift"));
    ASSIGN_OR_RETURN(const Dims axes, ScalarOrVector(ctx.input(2), "axis"));
    if (!(ctx.input(1).shape() == ctx.input(2).shape())) {
      return InvalidArgument("shift and axis must have the same size: shapes ",
                             ctx.input(1).shape().ToString(), " and ",
                             ctx.input(2).shape().ToString());
    }
    Dims shifts(input.rank(), 0);
    for (size_t i = 0; i < axes.size(); ++i) {
      ASSIGN_OR_RETURN(const int axis, NormalAxis(axes[i], input.rank(), "axis"));
      const int64_t size = input.dim(axis);
      if (size == 0) continue;
      shifts[axis] = (shifts[axis] + by[i] % size + size) % size;
    }
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, input.shape(), &output));
    if (input.num_elements() > 0) Copy(ctx, input, shifts, output);
    return OkStatus();
  }

 private:
  // Each rolled dimension has two sections: elements that are shifted, and elements that re-enter.
  // Copies one box for each combination of sections.
  static void Copy(KernelContext& ctx, const Tensor& input, const Dims& shifts, Tensor* output) {
    const Dims strides = DenseStrides(input.shape().dims());
    std::vector<int> rolled;
    for (int d = 0; d < input.rank(); ++d) {
      if (shifts[d] != 0) rolled.push_back(d);
    }
    for (uint64_t choice = 0; choice < uint64_t{1} << rolled.size(); ++choice) {
      Dims counts(input.shape().dims().begin(), input.shape().dims().end());
      int64_t from = 0, to = 0;
      for (size_t i = 0; i < rolled.size(); ++i) {
        const int d = rolled[i];
        const int64_t stays = input.dim(d) - shifts[d];
        const bool round = choice >> i & 1;
        counts[d] = round ? shifts[d] : stays;
        (round ? from : to) += (round ? stays : shifts[d]) * strides[d];
      }
      StridedCopy copy;
      for (int d = 0; d < input.rank(); ++d) copy.Add(counts[d], strides[d], strides[d]);
      CopyStrided(input.dtype(), copy, ElementAt(input.raw_data(), input.dtype(), from),
                  ElementAt(output->mutable_raw_data(), input.dtype(), to), ctx.threads());
    }
  }
};

Status RollShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape shape, s.WithRankAtLeast(0, 1));
  s.set_output(0, std::move(shape));
  return OkStatus();
}

}  // namespace

OP(Roll) {
  return {
      .doc =
          "Moves element i along each axis to i + shift; elements that leave one end enter "
          "at the other.",
      .inputs = {{"input", "T"}, {"shift", "Tshift"}, {"axis", "Taxis"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAllTypes}, {"Tshift", kIndex}, {"Taxis", kIndex}},
      .shape = RollShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {Call("Roll", {g.dy(), -g.x(1), g.x(2)}), Gradient(), Gradient()};
      },
      .examples = {{.inputs = {{{{2, 3}}}, {{{3}, {1, -1, 3}}}, {{{3}, {0, 1, 1}}}}},
                   {.inputs = {{{{4}}}, {{{}, {-7}}}, {{{}, {-1}}}}}},
  };
}
KERNEL_ANY_TYPE(Roll, RollKernel);

}  // namespace penstock

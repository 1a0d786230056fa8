// SPDX-License-Identifier: Apache-2.0
//
// MirrorPad: pads by reflection, with the border element repeated (SYMMETRIC) or not (REFLECT);
// MirrorPadGrad: its gradient, which adds each element of the padding to the element from which it
// was copied.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "core/tensor/type_lists.h"
#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"
#include "kernels/array/paddings.h"
#include "kernels/array/strided_add.h"
#include "kernels/array/strided_copy.h"

namespace penstock {
namespace {

// Sets the distance from the border at which the mirror image starts: 0 repeats the border element,
// 1 leaves it out.
Status MirrorOffset(const KernelInit& node, int64_t* offset) {
  std::string mode;
  RETURN_IF_ERROR(node.Attr("mode", &mode));
  *offset = mode == "REFLECT" ? 1 : 0;
  return OkStatus();
}

Status CheckMirror(const Paddings& pads, const Dims& inner, int64_t offset) {
  for (size_t i = 0; i < inner.size(); ++i) {
    if (pads.before(i) > inner[i] - offset || pads.after(i) > inner[i] - offset) {
      if (pads.before(i) == 0 && pads.after(i) == 0) continue;
      return InvalidArgument("paddings must be ", offset == 1 ? "less than" : "no greater than",
                             " the dimension size: ", pads.before(i), ", ", pads.after(i),
                             offset == 1 ? " greater than or equal to " : " greater than ",
                             inner[i]);
    }
  }
  return OkStatus();
}

// One of the two reflections (before and after) along dimension d of a padded tensor. Dimensions
// before d are taken in their inner size, those after d in their padded size.
struct Reflection {
  StridedCopy box;  // from the inner elements to the padding
  int64_t from, to;
};

// Returns the reflections along dimension d: the one before the inner elements, and the one after.
std::pair<Reflection, Reflection> Reflections(const Paddings& pads, const Dims& inner,
                                              const Dims& padded, int d, int64_t offset) {
  const Dims strides = DenseStrides(padded);
  StridedCopy others;
  int64_t corner = 0;
  for (int i = 0; i < static_cast<int>(inner.size()); ++i) {
    if (i < d) {
      others.Add(inner[i], strides[i], strides[i]);
      corner += pads.before(i) * strides[i];
    } else if (i > d) {
      others.Add(padded[i], strides[i], strides[i]);
    }
  }
  const auto reflect = [&](int64_t count, int64_t from, int64_t to) {
    Reflection reflection{others, corner + from * strides[d], corner + to * strides[d]};
    reflection.box.Add(count, -strides[d], strides[d]);
    return reflection;
  };
  const int64_t before = pads.before(d), end = before + inner[d];
  return {reflect(before, before + offset + before - 1, 0),
          reflect(pads.after(d), end - 1 - offset, end)};
}

class MirrorPadKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return MirrorOffset(node, &offset_); }
  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    ASSIGN_OR_RETURN(const Paddings pads, Paddings::Of(ctx.input(1), input.rank()));
    const Dims inner(input.shape().dims().begin(), input.shape().dims().end());
    RETURN_IF_ERROR(CheckMirror(pads, inner, offset_));
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(pads.Padded(inner)));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    CopyInner(pads, input, *output, ctx.threads());
    const Dims padded(shape.dims().begin(), shape.dims().end());
    for (int d = input.rank() - 1; d >= 0; --d) {
      const auto [before, after] = Reflections(pads, inner, padded, d, offset_);
      for (const Reflection& r : {before, after}) {
        void* data = output->mutable_raw_data();
        CopyStrided(input.dtype(), r.box, ElementAt(data, input.dtype(), r.from),
                    ElementAt(data, input.dtype(), r.to), ctx.threads());
      }
    }
    return OkStatus();
  }

 private:
  int64_t offset_ = 0;
};

// Returns the inner sizes, given the padded ones. InvalidArgument if a padded size is smaller than
// its paddings.
StatusOr<Dims> WithoutPadding(const Paddings& pads, absl::Span<const int64_t> padded) {
  Dims inner;
  for (size_t i = 0; i < padded.size(); ++i) {
    const int64_t both = AddDims(pads.before(i), pads.after(i));
    if (both < 0 || (padded[i] >= 0 && both > padded[i])) {
      return InvalidArgument("paddings of dimension ", i, ", ", pads.before(i), " and ",
                             pads.after(i), ", leave nothing of its ", padded[i]);
    }
    inner.push_back(padded[i] < 0 ? padded[i] : padded[i] - both);
  }
  return inner;
}

template <class T>
class MirrorPadGradKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return MirrorOffset(node, &offset_); }
  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    ASSIGN_OR_RETURN(const Paddings pads, Paddings::Of(ctx.input(1), input.rank()));
    ASSIGN_OR_RETURN(const Dims inner, WithoutPadding(pads, input.shape().dims()));
    RETURN_IF_ERROR(CheckMirror(pads, inner, offset_));
    ASSIGN_OR_RETURN(Tensor folded, ctx.Temporary(input.dtype(), input.shape()));
    CopyElements(input.dtype(), input.raw_data(), folded.mutable_raw_data(), input.num_elements());
    const Dims padded(input.shape().dims().begin(), input.shape().dims().end());
    for (int d = 0; d < input.rank(); ++d) {
      const auto [before, after] = Reflections(pads, inner, padded, d, offset_);
      for (Reflection r : {before, after}) {
        for (StridedCopy::Dim& dim : r.box.dims) std::swap(dim.from, dim.to);
        T* data = folded.mutable_data<T>();
        AddStrided<T>(r.box, data + r.to, data + r.from);
      }
    }
    return CopyOut(ctx, pads, inner, folded);
  }

 private:
  static Status CopyOut(KernelContext& ctx, const Paddings& pads, const Dims& inner,
                        const Tensor& folded) {
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape(inner), &output));
    const Dims from = DenseStrides(folded.shape().dims()), to = DenseStrides(inner);
    StridedCopy copy;
    int64_t corner = 0;
    for (size_t i = 0; i < inner.size(); ++i) {
      copy.Add(inner[i], from[i], to[i]);
      corner += pads.before(i) * from[i];
    }
    CopyStrided(folded.dtype(), copy, folded.data<T>() + corner, output->mutable_raw_data(),
                ctx.threads());
    return OkStatus();
  }

  int64_t offset_ = 0;
};

Status MirrorPadGradShape(ShapeScope& s) {
  const PartialShape& input = s.input(0);
  if (!input.known_rank()) return OkStatus();
  if (s.constant(1) == nullptr) {
    s.set_output(0, PartialShape::UnknownOfRank(input.rank()));
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const Paddings pads, Paddings::Of(*s.constant(1), input.rank()));
  ASSIGN_OR_RETURN(const Dims inner, WithoutPadding(pads, input.dims()));
  return SetOutput(s, 0, inner);
}

OP(MirrorPad) {
  return {
      .doc = "Pads the input with its own reflection.",
      .inputs = {{"input", "T"}, {"paddings", "Tpaddings"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAllTypes}, {"Tpaddings", kIndex, DType::kInt32}},
      .attrs = {{"mode", OneOf{{"REFLECT", "SYMMETRIC"}}}},
      .shape = PaddedShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {Call("MirrorPadGrad", {g.dy(), g.x(1)}, {{"mode", g.attr<std::string>("mode")}}),
                Gradient()};
      },
      .examples = {{.inputs = {{{{3, 4}}}, {{{2, 2}, {1, 2, 0, 3}}}},
                    .attrs = {{"mode", "REFLECT"}}},
                   {.inputs = {{{{3, 4}}}, {{{2, 2}, {1, 2, 0, 3}}}},
                    .attrs = {{"mode", "SYMMETRIC"}}}},
  };
}

OP(MirrorPadGrad) {
  return {
      .doc =
          "The gradient of MirrorPad: adds each element of the padding to the element from which "
          "MirrorPad copied it.",
      .inputs = {{"input", "T"}, {"paddings", "Tpaddings"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kNumber}, {"Tpaddings", kIndex, DType::kInt32}},
      .attrs = {{"mode", OneOf{{"REFLECT", "SYMMETRIC"}}}},
      .shape = MirrorPadGradShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {Call("MirrorPad", {g.dy(), g.x(1)}, {{"mode", g.attr<std::string>("mode")}}),
                Gradient()};
      },
      .examples = {{.inputs = {{{{6, 7}}}, {{{2, 2}, {1, 2, 0, 3}}}},
                    .attrs = {{"mode", "REFLECT"}}}},
  };
}

KERNEL_ANY_TYPE(MirrorPad, MirrorPadKernel);
KERNEL(MirrorPadGrad, MirrorPadGradKernel, NUMBER_TYPES);

}  // namespace
}  // namespace penstock

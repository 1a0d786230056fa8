// SPDX-License-Identifier: Apache-2.0
//
// Empty, InplaceUpdate, InplaceAdd, InplaceSub, DeepCopy: tensors that are filled row by row.
//
// "In place" affects only the cost: the input's buffer is overwritten if no other tensor shares it,
// and copied otherwise. So other readers of the input never see the update.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "core/tensor/type_lists.h"
#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"
#include "kernels/state/update_functors.h"

namespace penstock {
namespace {

Status CheckRows(const Tensor& x, const Tensor& i, const Tensor& v) {
  if (i.rank() != 1) return InvalidArgument("i must be a vector. ", i.shape().ToString());
  if (x.rank() != v.rank()) {
    return InvalidArgument("x and v shape doesn't match (ranks differ): ", x.shape().ToString(),
                           " vs. ", v.shape().ToString());
  }
  if (x.rank() == 0) return InvalidArgument("x must be at least a vector, is a scalar");
  for (int dim = 1; dim < x.rank(); ++dim) {
    if (x.dim(dim) == v.dim(dim)) continue;
    return InvalidArgument("x and v shape doesn't match at index ", dim, " : ",
                           x.shape().ToString(), " vs. ", v.shape().ToString());
  }
  if (i.dim(0) == v.dim(0)) return OkStatus();
  return InvalidArgument("i and x shape doesn't match at index 0: ", i.shape().ToString(), " vs. ",
                         v.shape().ToString());
}

// Applies the rows of `v` to the rows of `x` that `i` selects, one after the other. Indices are
// taken modulo the number of rows.
class InplaceKernel : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor &i = ctx.input(1), &v = ctx.input(2);
    RETURN_IF_ERROR(CheckRows(ctx.input(0), i, v));
    Tensor x = ctx.TakeInput(0);
    if (v.num_elements() > 0 && x.num_elements() > 0) {
      // Copies x if another tensor shares its buffer, or if another library owns the buffer.
      if (!x.unique() || x.buffer()->allocator() == nullptr) {
        ASSIGN_OR_RETURN(x, x.TryClone());
      }
      const int64_t rows = x.dim(0), row = x.num_elements() / rows;
      for (int64_t k = 0; k < i.dim(0); ++k) {
        const int64_t to = (i.data<int32_t>()[k] % rows + rows) % rows;
        ApplyRow(ElementAt(v.raw_data(), v.dtype(), k * row),
                 ElementAt(x.mutable_raw_data(), x.dtype(), to * row), row, x.dtype());
      }
    }
    ctx.SetOutput(0, std::move(x));
    return OkStatus();
  }

 private:
  virtual void ApplyRow(const void* from, void* to, int64_t n, DType dtype) const = 0;
};

class InplaceUpdateKernel final : public InplaceKernel {
  void ApplyRow(const void* from, void* to, int64_t n, DType dtype) const override {
    CopyElements(dtype, from, to, n);
  }
};

template <class Fn, class T>
class InplaceArithmeticKernel : public InplaceKernel {
  void ApplyRow(const void* from, void* to, int64_t n, DType) const override {
    for (int64_t k = 0; k < n; ++k)
      Fn::Apply(static_cast<T*>(to)[k], static_cast<const T*>(from)[k]);
  }
};
template <class T>
using InplaceAddKernel = InplaceArithmeticKernel<AddTo, T>;
template <class T>
using InplaceSubKernel = InplaceArithmeticKernel<SubtractFrom, T>;

// Elements are zero even if `init` is false, because a step must not see the memory of other steps.
class EmptyKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    if (ctx.input(0).rank() != 1) {
      return InvalidArgument("shape must be a vector of int32, got shape ",
                             ctx.input(0).shape().ToString());
    }
    ASSIGN_OR_RETURN(const Shape shape, ShapeVector(ctx.input(0), "shape"));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    Zero(*output, ctx.threads());
    return OkStatus();
  }
};

class DeepCopyKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(Tensor copy, ctx.input(0).TryClone());
    ctx.SetOutput(0, std::move(copy));
    return OkStatus();
  }
};

Status EmptyShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(0, 1).status());
  ASSIGN_OR_RETURN(PartialShape shape, ShapeInput(s, 0));
  s.set_output(0, std::move(shape));
  return OkStatus();
}

OpDef InplaceOp(const char* doc, const DTypes& types) {
  return {
      .doc = StrCat(doc,
                    " Indices are taken modulo the number of rows; repeated indices are applied in "
                    "order. Other readers of x do not see the change."),
      .inputs = {{"x", "T"}, {"i", "int32"}, {"v", "T"}},
      .outputs = {{"y", "T"}},
      .types = {{"T", types}},
      .shape = SameShape,
      .examples = {{.inputs = {{{{3, 2}}}, {{{2}, {2, 0}}}, {{{2, 2}}}}}},
      .reuses = Reuse::kFirst,
  };
}

OP(InplaceUpdate) {
  return InplaceOp("Returns x with its rows `i` replaced by the rows of v.", kAnyType);
}
KERNEL_ANY_TYPE(InplaceUpdate, InplaceUpdateKernel);
OP(InplaceAdd) { return InplaceOp("Returns x with the rows of v added to its rows `i`.", kNumber); }
KERNEL(InplaceAdd, InplaceAddKernel, NUMBER_TYPES);
OP(InplaceSub) {
  return InplaceOp("Returns x with the rows of v subtracted from its rows `i`.", kNumber);
}
KERNEL(InplaceSub, InplaceSubKernel, NUMBER_TYPES);

OP(Empty) {
  return {
      .doc = "Returns a tensor of zeros (or empty strings), whether `init` is set or not.",
      .inputs = {{"shape", "int32"}},
      .outputs = {{"output", "dtype"}},
      .types = {{"dtype", kAnyType}},
      .attrs = {{"init", AttrValue(false)}},
      .shape = EmptyShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2}, {2, 3}}}}, .attrs = {{"dtype", DType::kFloat}}}},
      .stateful = true,
  };
}
KERNEL_ANY_TYPE(Empty, EmptyKernel);

OP(DeepCopy) {
  return {
      .doc = "Returns a copy of x in separate memory.",
      .inputs = {{"x", "T"}},
      .outputs = {{"y", "T"}},
      .types = {{"T", kAnyType}},
      .shape = SameShape,
      .examples = {{.inputs = {{{{2, 3}}}}}},
      .stateful = true,
  };
}
KERNEL_ANY_TYPE(DeepCopy, DeepCopyKernel);

}  // namespace
}  // namespace penstock

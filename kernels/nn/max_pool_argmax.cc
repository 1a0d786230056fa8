// SPDX-License-Identifier: Apache-2.0
//
// MaxPoolWithArgmax, which also returns the index of each maximum, and its gradients, which use
// these indices.
#include <cstdint>
#include <limits>
#include <vector>

#include "core/op/registry.h"
#include "kernels/nn/pool.h"

namespace penstock {
namespace {

#define REAL_TYPES                                                                               \
  float, double, int32_t, uint8_t, int16_t, int8_t, int64_t, uint16_t, half, bfloat16, uint32_t, \
      uint64_t

class ArgmaxKernel : public PoolKernel {
 protected:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("include_batch_in_index", &count_batch_));
    RETURN_IF_ERROR(node.Attr("Targmax", &index_type_));
    return PoolKernel::Init(node);
  }
  bool count_batch_ = false;
  DType index_type_ = DType::kInt64;
};

template <class T>
class MaxPoolWithArgmax final : public ArgmaxKernel {
  Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    ASSIGN_OR_RETURN(const PoolGeometry g, Geometry(ctx, x.shape(), 0));
    const int64_t image = g.in_pixels() * g.channels;
    const int64_t last = count_batch_ ? x.num_elements() : image;
    if (index_type_ == DType::kInt32 && last > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("an input of shape ", x.shape().ToString(),
                             " has more elements than Targmax int32 counts");
    }
    Tensor *y, *where;
    RETURN_IF_ERROR(ctx.Allocate(0, g.output(), &y));
    RETURN_IF_ERROR(ctx.Allocate(1, g.output(), &where));
    if (index_type_ == DType::kInt32) {
      Find(ctx, g, x.data<T>(), y->mutable_data<T>(), where->mutable_data<int32_t>());
    } else {
      Find(ctx, g, x.data<T>(), y->mutable_data<T>(), where->mutable_data<int64_t>());
    }
    return OkStatus();
  }

  template <class Index>
  void Find(KernelContext& ctx, const PoolGeometry& g, const T* x, T* y, Index* where) const {
    const int64_t image = g.in_pixels() * g.channels;
    ctx.threads().ParallelFor(g.batch, g.ImageNanos(), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const int64_t base = count_batch_ ? 0 : b * image;
        int64_t window = -1;
        ForEachPair(g, b, [&](int64_t in, int64_t out) {
          // The first pixel of the window remains the maximum if it is NaN, or if no pixel is
          // larger.
          const bool first = out != window;
          window = out;
          for (int64_t c = 0; c < g.channels; ++c) {
            if (!first && !(x[in + c] > y[out + c])) continue;
            y[out + c] = x[in + c];
            where[out + c] = static_cast<Index>(in + c - base);
          }
        });
      }
    });
  }
};

// Sets *places to the index into the whole batch of each maximum. `argmax` has indices into the
// flat image or, if `count_batch`, into the batch. InvalidArgument if one is out of range.
Status CheckArgmax(const Tensor& argmax, const PoolGeometry& g, bool count_batch,
                   std::vector<int64_t>* places) {
  const int64_t image = g.in_pixels() * g.channels, out = g.out_pixels() * g.channels;
  const int64_t limit = count_batch ? g.batch * image : image;
  places->resize(argmax.num_elements());
  for (int64_t i = 0; i < argmax.num_elements(); ++i) {
    const int64_t k =
        argmax.dtype() == DType::kInt32 ? argmax.data<int32_t>()[i] : argmax.data<int64_t>()[i];
    if (k < 0 || k >= limit) {
      return InvalidArgument("argmax[", i, "] is ", k, ", must be in [0, ", limit, ")");
    }
    (*places)[i] = count_batch ? k : i / out * image + k;
  }
  return OkStatus();
}

// Inputs: the images, a gradient, argmax. MaxPoolGradWithArgmax adds the gradient at the indices of
// the maxima; with kCollect, MaxPoolGradGradWithArgmax collects the gradient from these indices.
template <class T, bool kCollect>
class ArgmaxGradientKernel : public ArgmaxKernel {
  Status Compute(KernelContext& ctx) final {
    const Tensor& x = ctx.input(0);
    ASSIGN_OR_RETURN(const PoolGeometry g, Geometry(ctx, x.shape(), 0));
    RETURN_IF_ERROR(ExpectShape("grad", ctx.input(1), kCollect ? x.shape() : g.output()));
    RETURN_IF_ERROR(ExpectShape("argmax", ctx.input(2), g.output()));
    std::vector<int64_t> places;
    RETURN_IF_ERROR(CheckArgmax(ctx.input(2), g, count_batch_, &places));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, kCollect ? g.output() : x.shape(), &out));
    const T* grad = ctx.input(1).template data<T>();
    T* result = out->template mutable_data<T>();
    if constexpr (kCollect) {
      for (size_t i = 0; i < places.size(); ++i) result[i] = grad[places[i]];
    } else {
      std::fill_n(result, x.num_elements(), T(0));
      for (size_t i = 0; i < places.size(); ++i) result[places[i]] += grad[i];
    }
    return OkStatus();
  }
};
template <class T>
class MaxPoolGradWithArgmax final : public ArgmaxGradientKernel<T, false> {};
template <class T>
class MaxPoolGradGradWithArgmax final : public ArgmaxGradientKernel<T, true> {};

Status ArgmaxShape(ShapeScope& s) {
  RETURN_IF_ERROR(PoolShape(s));
  s.set_output(1, s.output(0));
  return OkStatus();
}

std::vector<AttrDef> ArgmaxAttrs() {
  return {{"ksize", IntList{4}},
          {"strides", IntList{4}},
          {"padding", OneOf{{"SAME", "VALID"}}},
          {"include_batch_in_index", false}};
}
std::vector<TypeAttrDef> ArgmaxTypes(DType default_index) {
  return {{"T", kReal}, {"Targmax", kIndex, default_index}};
}
std::vector<Example> GradientExamples(const Dims& grad) {
  return {{.inputs = {{{{1, 3, 4, 2}}},
                      {{grad}},
                      {{{1, 2, 4, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 23, 12, 13, 14, 15}}}},
           .attrs = ExampleWindow()}};
}

}  // namespace

OP(MaxPoolWithArgmax) {
  return {
      .doc =
          "MaxPool that also returns the position of each maximum (the first of equal "
          "ones): a flat index into its image, or into the batch if include_batch_in_index.",
      .inputs = {{"input", "T"}},
      .outputs = {{"output", "T"}, {"argmax", "Targmax"}},
      .types = ArgmaxTypes(DType::kInt64),
      .attrs = ArgmaxAttrs(),
      .shape = ArgmaxShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {Call("MaxPoolGradWithArgmax", {g.x(), g.dy(0), g.y(1)}, WindowAttributes(g))};
      },
      .examples = {{.inputs = {{{{1, 3, 4, 2}}}}, .attrs = ExampleWindow()}},
  };
}
KERNEL(MaxPoolWithArgmax, MaxPoolWithArgmax, REAL_TYPES);

OP(MaxPoolGradWithArgmax) {
  return {
      .doc = "The gradient of MaxPoolWithArgmax: `grad` flows to the positions of the maxima.",
      .inputs = {{"input", "T"}, {"grad", "T"}, {"argmax", "Targmax"}},
      .outputs = {{"output", "T"}},
      .types = ArgmaxTypes(DType::kInvalid),
      .attrs = ArgmaxAttrs(),
      .shape = SameShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {Gradient(),
                Call("MaxPoolGradGradWithArgmax", {g.x(0), g.dy(), g.x(2)}, WindowAttributes(g)),
                Gradient()};
      },
      .examples = GradientExamples({1, 2, 4, 2}),
  };
}
KERNEL(MaxPoolGradWithArgmax, MaxPoolGradWithArgmax, REAL_TYPES);

OP(MaxPoolGradGradWithArgmax) {
  return {
      .doc =
          "The gradient of MaxPoolGradWithArgmax: collects `grad` from the positions of the "
          "maxima.",
      .inputs = {{"input", "T"}, {"grad", "T"}, {"argmax", "Targmax"}},
      .outputs = {{"output", "T"}},
      .types = ArgmaxTypes(DType::kInvalid),
      .attrs = ArgmaxAttrs(),
      .shape = PoolShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {Gradient(),
                Call("MaxPoolGradWithArgmax", {g.x(0), g.dy(), g.x(2)}, WindowAttributes(g)),
                Gradient()};
      },
      .examples = GradientExamples({1, 3, 4, 2}),
  };
}
KERNEL(MaxPoolGradGradWithArgmax, MaxPoolGradGradWithArgmax, REAL_TYPES);

}  // namespace penstock

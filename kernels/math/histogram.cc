// SPDX-License-Identifier: Apache-2.0
//
// Bincount, DenseBincount, HistogramFixedWidth: count the elements in each bin; Bucketize: returns
// the bin of each element.
#include <algorithm>

#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "core/tensor/type_lists.h"
#include "kernels/array/arguments.h"
#include "kernels/engine/functor.h"
#include "kernels/math/add.h"
#include "kernels/math/forms.h"

namespace penstock {
namespace {

#define COUNTED_TYPES int32_t, int64_t, float, double
const DTypes kCounted = TypesOf<COUNTED_TYPES>();

// Adds to bins[v], for each of the `n` values v below `size`, its weight (null: one; `binary`:
// bins[v] becomes one). InvalidArgument if a value is negative.
template <class T, class V>
Status CountInto(const V* values, const T* weights, int64_t n, int64_t size, bool binary, T* bins) {
  for (int64_t i = 0; i < n; ++i) {
    if (values[i] < 0) {
      return InvalidArgument("Input arr must be non-negative! Element ", i, " is ", values[i]);
    }
    if (values[i] >= size) continue;
    T& bin = bins[values[i]];
    bin = binary ? T(1) : AddFn()(bin, weights == nullptr ? T(1) : weights[i]);
  }
  return OkStatus();
}

// Bincount counts a tensor of any shape; DenseBincount a scalar, a vector, or each row of a matrix.
template <class T, bool kDense>
class BincountKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    if constexpr (kDense) return node.Attr("binary_output", &binary_);
    return OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor &values = ctx.input(0), &weights = ctx.input(2);
    if (ctx.input(1).rank() != 0) {
      return InvalidArgument("size must be a scalar, has shape ", ctx.input(1).shape().ToString());
    }
    ASSIGN_OR_RETURN(const int64_t size, IntScalar(ctx.input(1), "size"));
    if (size < 0) return InvalidArgument("size (", size, ") must be non-negative");
    if (kDense && values.rank() > 2) {
      return InvalidArgument("input must have rank 2 at most, has shape ",
                             values.shape().ToString());
    }
    const bool same = kDense ? weights.shape() == values.shape()
                             : weights.num_elements() == values.num_elements();
    if (weights.num_elements() != 0 && !same) {
      return InvalidArgument("Input indices and weights must have the same size: shapes ",
                             values.shape().ToString(), " and ", weights.shape().ToString());
    }
    const int64_t rows = kDense && values.rank() == 2 ? values.dim(0) : 1;
    ASSIGN_OR_RETURN(const Shape shape,
                     kDense&& values.rank() == 2 ? Shape::Make({rows, size}) : Shape::Make({size}));
    Tensor* bins;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &bins));
    std::fill_n(bins->mutable_data<T>(), shape.num_elements(), T(0));
    if (values.num_elements() == 0) return OkStatus();
    return values.dtype() == DType::kInt32 ? Count<int32_t>(values, weights, rows, size, bins)
                                           : Count<int64_t>(values, weights, rows, size, bins);
  }

 private:
  template <class V>
  Status Count(const Tensor& values, const Tensor& weights, int64_t rows, int64_t size,
               Tensor* bins) {
    const int64_t n = values.num_elements() / rows;
    for (int64_t row = 0; row < rows; ++row) {
      const T* w = weights.num_elements() == 0 ? nullptr : weights.data<T>() + row * n;
      RETURN_IF_ERROR(CountInto(values.data<V>() + row * n, w, n, size, binary_,
                                bins->mutable_data<T>() + row * size));
    }
    return OkStatus();
  }

  bool binary_ = false;
};

template <class T>
using Bincount = BincountKernel<T, false>;
template <class T>
using DenseBincount = BincountKernel<T, true>;

Status BincountShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(1, 0).status());
  std::vector<int64_t> size;
  const bool known = s.ConstantInts(1, &size) && size.size() == 1;
  if (known && size[0] < 0) return InvalidArgument("size (", size[0], ") must be non-negative");
  const int64_t bins = known ? size[0] : PartialShape::kUnknown;
  const PartialShape& values = s.input(0);
  if (!s.attrs().contains("binary_output")) {
    s.set_output(0, PartialShape{bins});
  } else if (values.known_rank()) {
    if (values.rank() > 2) {
      return InvalidArgument("input must have rank 2 at most, has shape ", values.ToString());
    }
    s.set_output(0, values.rank() == 2 ? PartialShape{values.dim(0), bins} : PartialShape{bins});
  }
  return OkStatus();
}

// Counts the values in bins of equal width from range[0] to range[1]. Values outside of the range
// count in the first or the last bin.
template <class T>
class HistogramKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor &values = ctx.input(0), &range = ctx.input(1);
    if (range.rank() != 1 || range.dim(0) != 2) {
      return InvalidArgument("value_range should be a vector of 2 elements, has shape ",
                             range.shape().ToString());
    }
    const T low = range.data<T>()[0], high = range.data<T>()[1];
    if (!(low < high)) {
      return InvalidArgument(
          "value_range should satisfy value_range[0] < value_range[1], but got '[", low, ", ", high,
          "]'");
    }
    if (ctx.input(2).rank() != 0) {
      return InvalidArgument("nbins should be a scalar, has shape ",
                             ctx.input(2).shape().ToString());
    }
    ASSIGN_OR_RETURN(const int64_t bins, IntScalar(ctx.input(2), "nbins"));
    if (bins <= 0) {
      return InvalidArgument("nbins should be a positive number, but got '", bins, "'");
    }
    for (const T v : values.flat<T>()) {
      if (v != v) return InvalidArgument("Histogram values must not contain NaN");
    }
    Tensor* counts;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape{bins}, &counts));
    if (counts->dtype() == DType::kInt32) {
      Count(values, low, high, counts->mutable_flat<int32_t>());
    } else {
      Count(values, low, high, counts->mutable_flat<int64_t>());
    }
    return OkStatus();
  }

 private:
  template <class C>
  static void Count(const Tensor& values, T low, T high, absl::Span<C> counts) {
    std::fill(counts.begin(), counts.end(), C(0));
    const double step =
        (static_cast<double>(high) - static_cast<double>(low)) / static_cast<double>(counts.size());
    const double last = static_cast<double>(counts.size() - 1);
    for (const T v : values.flat<T>()) {
      const double bin = (static_cast<double>(std::clamp(v, low, high)) - low) / step;
      // Does not use std::clamp, because it would keep the NaN that results from infinite ranges.
      ++counts[static_cast<size_t>(std::min(std::max(0.0, bin), last))];
    }
  }
};

Status HistogramShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(1, 1).status());
  RETURN_IF_ERROR(s.WithRank(2, 0).status());
  std::vector<int64_t> bins;
  const bool known = s.ConstantInts(2, &bins) && bins.size() == 1 && bins[0] > 0;
  s.set_output(0, PartialShape{known ? bins[0] : PartialShape::kUnknown});
  return OkStatus();
}

// Returns the number of boundaries at or below each element; for NaN, all of them.
template <class T>
class BucketizeKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("boundaries", &boundaries_));
    if (std::is_sorted(boundaries_.begin(), boundaries_.end())) return OkStatus();
    return InvalidArgument("Expected sorted boundaries");
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, input.shape(), &output));
    const T* x = input.data<T>();
    int32_t* y = output->mutable_data<int32_t>();
    ctx.threads().ParallelFor(input.num_elements(), 10, [=, this](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto at = std::upper_bound(boundaries_.begin(), boundaries_.end(), x[i]);
        y[i] = static_cast<int32_t>(at - boundaries_.begin());
      }
    });
    return OkStatus();
  }

 private:
  std::vector<float> boundaries_;
};

}  // namespace

OP(Bincount) {
  return {
      .doc =
          "Counts how often each integer below `size` occurs in arr; with weights, sums "
          "their weights instead.",
      .inputs = {{"arr", "int32"}, {"size", "int32"}, {"weights", "T"}},
      .outputs = {{"bins", "T"}},
      .types = {{"T", kCounted}},
      .shape = BincountShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2, 2}, {1, 0, 1, 7}}}, {{{}, {3}}}, {{{2, 2}}}}},
                   {.inputs = {{{{2}, {1, 0}}}, {{{}, {3}}}, {{{0}}}}}},
  };
}
KERNEL(Bincount, Bincount, COUNTED_TYPES);

OP(DenseBincount) {
  return {
      .doc =
          "Counts how often each integer below `size` occurs in each row of input. With "
          "weights, sums their weights instead; with binary_output, returns 1 for each "
          "integer that occurs.",
      .inputs = {{"input", "Tidx"}, {"size", "Tidx"}, {"weights", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"Tidx", kIndex}, {"T", kCounted}},
      .attrs = {{"binary_output", AttrValue(false)}},
      .shape = BincountShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2, 2}, {1, 0, 1, 7}}}, {{{}, {3}}}, {{{2, 2}}}}},
                   {.inputs = {{{{3}, {1, 0, 1}}}, {{{}, {3}}}, {{{0}}}},
                    .attrs = {{"binary_output", true}}}},
  };
}
KERNEL(DenseBincount, DenseBincount, COUNTED_TYPES);

OP(HistogramFixedWidth) {
  return {
      .doc =
          "Counts the values in each of nbins equal intervals of value_range. Values "
          "outside the range count in the first or last interval.",
      .inputs = {{"values", "T"}, {"value_range", "T"}, {"nbins", "int32"}},
      .outputs = {{"out", "dtype"}},
      .types = {{"T", kCounted}, {"dtype", kIndex, DType::kInt32}},
      .shape = HistogramShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2, 3}}}, {{{2}, {0, 4}}}, {{{}, {3}}}}}},
  };
}
KERNEL(HistogramFixedWidth, HistogramKernel, COUNTED_TYPES);

OP(Bucketize) {
  return {
      .doc =
          "Returns, for each element, the index of its bucket: the number of boundaries "
          "that are not greater than it.",
      .inputs = {{"input", "T"}},
      .outputs = {{"output", "int32"}},
      .types = {{"T", kCounted}},
      .attrs = {{"boundaries", FloatList{}}},
      .shape = SameShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2, 3}}}},
                    .attrs = {{"boundaries", std::vector<float>{0.3f, 2}}}}},
  };
}
KERNEL(Bucketize, BucketizeKernel, COUNTED_TYPES);

}  // namespace penstock

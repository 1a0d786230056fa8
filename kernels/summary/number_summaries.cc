// SPDX-License-Identifier: Apache-2.0
//
// ScalarSummary, HistogramSummary: summaries of numbers.
#include <cmath>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "core/tensor/type_lists.h"
#include "kernels/summary/arguments.h"

namespace penstock {
namespace {

template <class T>
class ScalarSummaryKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor &tags = ctx.input(0), &values = ctx.input(1);
    if (tags.shape() != values.shape()) {
      const std::string first =
          tags.num_elements() == 1 ? StrCat(" (tag '", tags.flat<std::string>()[0], "')") : "";
      return InvalidArgument("tags and values are not the same shape: ", tags.shape().ToString(),
                             " != ", values.shape().ToString(), first);
    }
    SummaryBuilder summary;
    for (int64_t i = 0; i < tags.num_elements(); ++i) {
      summary.AddScalar(tags.data<std::string>()[i], static_cast<float>(values.data<T>()[i]));
    }
    return OutputSummary(ctx, summary);
  }
};

template <class T>
class HistogramSummaryKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const std::string tag, TagInput(ctx, "tags"));
    Histogram histogram;
    for (const T value : ctx.input(1).flat<T>()) {
      const auto number = static_cast<double>(value);
      if (std::isnan(number)) {
        return InvalidArgument("Nan in summary histogram for: ", ctx.node_name());
      }
      if (std::isinf(number)) {
        return InvalidArgument("Infinity in Histogram for: ", ctx.node_name());
      }
      histogram.Add(number);
    }
    SummaryBuilder summary;
    summary.AddHistogram(tag, histogram);
    return OutputSummary(ctx, summary);
  }
};

OP(ScalarSummary) {
  return {
      .doc = "Makes a summary with one number per tag.",
      .inputs = {{"tags", "string"}, {"values", "T"}},
      .outputs = {{"summary", "string"}},
      .types = {{"T", kReal}},
      .shape = ScalarShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2}}}, {{{2}}}}}},
  };
}

OP(HistogramSummary) {
  return {
      .doc = "Makes a summary with a histogram of the values.",
      .inputs = {{"tag", "string"}, {"values", "T"}},
      .outputs = {{"summary", "string"}},
      .types = {{"T", kReal, DType::kFloat}},
      .shape = ScalarShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{}}, {{{2, 3}}}}}},
  };
}
KERNEL(ScalarSummary, ScalarSummaryKernel, REAL_TYPES);
KERNEL(HistogramSummary, HistogramSummaryKernel, REAL_TYPES);

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// DataFormatVecPermute and DataFormatDimMap: convert the sizes and the axes of images from one
// order of dimensions (NHWC, NCDHW, ...) to another.
#include <algorithm>
#include <string>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"

namespace penstock {
namespace {

struct Formats {
  std::string from, to;

  static StatusOr<Formats> Of(const KernelInit& node) {
    Formats formats;
    RETURN_IF_ERROR(node.Attr("src_format", &formats.from));
    RETURN_IF_ERROR(node.Attr("dst_format", &formats.to));
    if (formats.from.size() != 4 && formats.from.size() != 5) {
      return InvalidArgument("Source format must be of length 4 or 5, received src_format = ",
                             formats.from);
    }
    if (formats.to.size() != 4 && formats.to.size() != 5) {
      return InvalidArgument("Destination format must be of length 4 or 5, received dst_format = ",
                             formats.to);
    }
    std::string letters = formats.from;
    std::sort(letters.begin(), letters.end());
    const bool twice = std::adjacent_find(letters.begin(), letters.end()) != letters.end();
    if (twice || !std::is_permutation(letters.begin(), letters.end(), formats.to.begin(),
                                      formats.to.end())) {
      return InvalidArgument("Destination and source format must determine a permutation, got ",
                             formats.from, " and ", formats.to);
    }
    return formats;
  }
};

std::string SpatialOnly(std::string format) {
  std::erase_if(format, [](char letter) { return letter == 'N' || letter == 'C'; });
  return format;
}

template <class T>
class VecPermuteKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    ASSIGN_OR_RETURN(formats_, Formats::Of(node));
    spatial_ = {SpatialOnly(formats_.from), SpatialOnly(formats_.to)};
    return OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    if (x.rank() != 1 && x.rank() != 2) {
      return InvalidArgument("input must be a vector or 2D tensor, but got shape ",
                             x.shape().ToString());
    }
    const int64_t all = static_cast<int64_t>(formats_.from.size()),
                  spatial = static_cast<int64_t>(spatial_.from.size()), rows = x.dim(0);
    if (rows != all && rows != spatial) {
      return InvalidArgument(x.rank() == 1 ? "1D" : "First dimension of 2D",
                             " input must be of size ", spatial, " or ", all, ", but got shape ",
                             x.shape().ToString());
    }
    if (x.rank() == 2 && x.dim(1) != 2) {
      return InvalidArgument("Second dimension of 2D input must be of size 2, but got shape ",
                             x.shape().ToString());
    }
    const Formats& formats = rows == all ? formats_ : spatial_;
    const int64_t row = x.rank() == 1 ? 1 : 2;
    Tensor* y;
    RETURN_IF_ERROR(ctx.Allocate(0, x.shape(), &y));
    for (int64_t i = 0; i < rows; ++i) {
      const auto from = static_cast<int64_t>(formats.from.find(formats.to[i]));
      std::copy_n(x.data<T>() + from * row, row, y->mutable_data<T>() + i * row);
    }
    return OkStatus();
  }

 private:
  Formats formats_, spatial_;
};

template <class T>
class DimMapKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    ASSIGN_OR_RETURN(formats_, Formats::Of(node));
    return OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    const T rank = static_cast<T>(formats_.from.size());
    Tensor* y;
    RETURN_IF_ERROR(ctx.Allocate(0, ctx.input(0).shape(), &y));
    T* to = y->mutable_data<T>();
    for (const T axis : ctx.input(0).flat<T>()) {
      const T normal = static_cast<T>((axis % rank + rank) % rank);
      *to++ = static_cast<T>(formats_.to.find(formats_.from[normal]));
    }
    return OkStatus();
  }

 private:
  Formats formats_;
};

OpDef FormatOp(std::string doc, const Example& example) {
  return {
      .doc = std::move(doc),
      .inputs = {{"x", "T"}},
      .outputs = {{"y", "T"}},
      .types = {{"T", kIndex, DType::kInt32}},
      .attrs = {{"src_format", "NHWC"}, {"dst_format", "NCHW"}},
      .shape = SameShape,
      .gradient = NoGradient,
      .examples = {example},
  };
}

OP(DataFormatVecPermute) {
  return FormatOp(
      "Permutes a vector with one number for each dimension (or a matrix with two) from "
      "the order of dimensions in src_format to the order in dst_format. x may omit the "
      "dimensions N and C.",
      {.inputs = {{{{4}}}}});
}
KERNEL(DataFormatVecPermute, VecPermuteKernel, int32_t, int64_t);

OP(DataFormatDimMap) {
  return FormatOp(
      "Maps each dimension number in x from src_format to dst_format. Negative numbers "
      "count from the end; numbers are taken modulo the rank.",
      {.inputs = {{{{3}, {0, 3, -2}}}}});
}
KERNEL(DataFormatDimMap, DimMapKernel, int32_t, int64_t);

}  // namespace
}  // namespace penstock

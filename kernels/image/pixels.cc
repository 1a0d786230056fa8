// SPDX-License-Identifier: Apache-2.0
#include "kernels/image/pixels.h"

#include <algorithm>

#include "kernels/engine/float16_blocks.h"

namespace penstock {
namespace {

template <class T>
void Convert(const Tensor& from, int64_t first, float* to, int64_t n) {
  std::transform(from.data<T>() + first, from.data<T>() + first + n, to,
                 [](T x) { return static_cast<float>(x); });
}

const char* Address(const void* base, DType dtype, int64_t first) {
  return static_cast<const char*>(base) + first * static_cast<int64_t>(SizeOf(dtype));
}

}  // namespace

void ToFloats(const Tensor& from, int64_t first, float* to, int64_t n) {
  switch (from.dtype()) {
    case DType::kFloat:
      return Convert<float>(from, first, to, n);
    case DType::kDouble:
      return Convert<double>(from, first, to, n);
    case DType::kInt8:
      return Convert<int8_t>(from, first, to, n);
    case DType::kUint8:
      return Convert<uint8_t>(from, first, to, n);
    case DType::kInt16:
      return Convert<int16_t>(from, first, to, n);
    case DType::kUint16:
      return Convert<uint16_t>(from, first, to, n);
    case DType::kInt32:
      return Convert<int32_t>(from, first, to, n);
    case DType::kInt64:
      return Convert<int64_t>(from, first, to, n);
    default:
      CHECK(IsFloat16(from.dtype()), Name(from.dtype()));
      Float16ToFloat(from.dtype(), Address(from.raw_data(), from.dtype(), first), to, n);
  }
}

void FromFloats(const float* from, Tensor* to, int64_t first, int64_t n) {
  if (to->dtype() == DType::kFloat) {
    std::copy_n(from, n, to->mutable_data<float>() + first);
  } else if (to->dtype() == DType::kDouble) {
    std::copy_n(from, n, to->mutable_data<double>() + first);
  } else {
    CHECK(IsFloat16(to->dtype()), Name(to->dtype()));
    FloatToFloat16(to->dtype(), from,
                   const_cast<char*>(Address(to->raw_data(), to->dtype(), first)), n);
  }
}

StatusOr<ImageBatch> ImageBatch::Of(const char* what, const Shape& shape) {
  if (shape.rank() != 4) {
    return InvalidArgument(what, " must be 4-dimensional, has shape ", shape.ToString());
  }
  const ImageBatch b{shape.dim(0), shape.dim(1), shape.dim(2), shape.dim(3)};
  constexpr int64_t kMax = int64_t{1} << 24;  // indices are computed in float
  if (b.height < 1 || b.width < 1 || b.channels < 1 || b.height > kMax || b.width > kMax) {
    return InvalidArgument(what, " must have between 1 and ", kMax,
                           " rows and columns and at least a channel, has shape ",
                           shape.ToString());
  }
  return b;
}

StatusOr<GradientImages> GradientImages::Of(const KernelContext& ctx) {
  const Shape &grads = ctx.input(0).shape(), &original = ctx.input(1).shape();
  GradientImages images;
  ASSIGN_OR_RETURN(images.from, ImageBatch::Of("grads", grads));
  ASSIGN_OR_RETURN(images.to, ImageBatch::Of("original_image", original));
  if (images.from.batch == images.to.batch && images.from.channels == images.to.channels) {
    return images;
  }
  return InvalidArgument("grads ", grads.ToString(), " and original_image ", original.ToString(),
                         " must have the same batch and channels");
}

StatusOr<std::vector<int64_t>> SizeInput(const char* what, const Tensor& size) {
  if (size.dtype() != DType::kInt32 || size.rank() != 1 || size.dim(0) != 2) {
    return InvalidArgument(what, " must be a vector of height and width, is ", size.ToString());
  }
  const auto v = size.flat<int32_t>();
  if (v[0] <= 0 || v[1] <= 0) {
    return InvalidArgument("output dimensions must be positive: ", what, " is ", v[0], " x ", v[1]);
  }
  return std::vector<int64_t>{v[0], v[1]};
}

Status SizedShape(ShapeScope& s, int i) {
  ASSIGN_OR_RETURN(PartialShape out, s.WithRank(0, 4));
  if (!out.known_rank()) out = PartialShape::UnknownOfRank(4);
  std::vector<int64_t> size;
  const bool known = s.ConstantInts(i, &size) && size.size() == 2;
  for (int d : {0, 1}) {
    if (known && size[d] <= 0) return InvalidArgument("size must be positive, is ", size[d]);
    out.set_dim(1 + d, known ? size[d] : PartialShape::kUnknown);
  }
  s.set_output(0, out);
  return OkStatus();
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Where: the coordinates of the elements that are not zero.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/elements.h"
#include "kernels/array/types.h"

namespace penstock {
namespace {

template <class Bits>
bool NonZeroBits(const char* element, Bits sign) {
  Bits bits;
  memcpy(&bits, element, sizeof bits);
  return (bits & static_cast<Bits>(~sign)) != 0;
}

// Returns whether an element is not zero, without regard to its type: zero has all bits clear,
// except the sign bit of floating-point numbers.
bool NonZero(DType dtype, const char* element) {
  switch (dtype) {
    case DType::kHalf:
    case DType::kBfloat16:
      return NonZeroBits<uint16_t>(element, 0x8000u);
    case DType::kFloat:
      return NonZeroBits<uint32_t>(element, uint32_t{1} << 31);
    case DType::kDouble:
      return NonZeroBits<uint64_t>(element, uint64_t{1} << 63);
    case DType::kComplex64:
      return NonZero(DType::kFloat, element) || NonZero(DType::kFloat, element + 4);
    case DType::kComplex128:
      return NonZero(DType::kDouble, element) || NonZero(DType::kDouble, element + 8);
    default:
      break;
  }
  switch (SizeOf(dtype)) {
    case 1:
      return *element != 0;
    case 2:
      return NonZeroBits<uint16_t>(element, 0);
    case 4:
      return NonZeroBits<uint32_t>(element, 0);
    default:
      return NonZeroBits<uint64_t>(element, 0);
  }
}

class WhereKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    const DType dtype = input.dtype();
    const int64_t size = static_cast<int64_t>(SizeOf(dtype));
    const char* data = static_cast<const char*>(input.raw_data());
    int64_t count = 0;
    for (int64_t i = 0; i < input.num_elements(); ++i) count += NonZero(dtype, data + i * size);
    const int rank = input.rank();
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make({count, rank}));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    int64_t* out = output->mutable_data<int64_t>();
    Dims place(rank, 0);
    for (int64_t i = 0; i < input.num_elements(); ++i) {
      if (NonZero(dtype, data + i * size)) out = std::copy(place.begin(), place.end(), out);
      for (int d = rank - 1; d >= 0 && ++place[d] == input.dim(d); --d) place[d] = 0;
    }
    return OkStatus();
  }
};

Status WhereShape(ShapeScope& s) {
  s.set_output(0, PartialShape({PartialShape::kUnknown, s.input(0).rank()}));
  return OkStatus();
}

OP(Where) {
  return {
      .doc =
          "Returns the coordinates of the elements that are true, or not zero, in row-major "
          "order.",
      .inputs = {{"input", "T"}},
      .outputs = {{"index", "int64"}},
      .types = {{"T", With(kNumber, {DType::kBool}), DType::kBool}},
      .shape = WhereShape,
      .gradient = NoGradient,
  };
}
KERNEL_ANY_TYPE(Where, WhereKernel);

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// DecodePaddedRaw: reinterprets the bytes of strings as numbers, after truncating them or padding
// them with zeros to equal length.
#include <algorithm>
#include <cstring>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"

namespace penstock {
namespace {

class DecodePaddedRawKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    return node.Attr("little_endian", &little_endian_);
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    ASSIGN_OR_RETURN(const int64_t length, IntScalar(ctx.input(1), "fixed_length"));
    const DType dtype = ctx.output_type(0).dtype;
    const auto element = static_cast<int64_t>(SizeOf(dtype));
    if (length <= 0) {
      return InvalidArgument("fixed_length (", length, ") must be greater than zero.");
    }
    if (length % element != 0) {
      return InvalidArgument("fixed_length (", length,
                             ") must be a multiple of the size of out_type (", element, ")");
    }
    Dims dims(input.shape().dims().begin(), input.shape().dims().end());
    dims.push_back(length / element);
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    char* to = static_cast<char*>(output->mutable_raw_data());
    for (const std::string& text : input.flat<std::string>()) {
      const auto size = std::min(static_cast<int64_t>(text.size()), length);
      std::memcpy(to, text.data(), size);
      std::memset(to + size, 0, length - size);
      for (char* p = to; !little_endian_ && p < to + length; p += element)
        std::reverse(p, p + element);
      to += length;
    }
    return OkStatus();
  }

 private:
  bool little_endian_ = true;
};

Status DecodePaddedRawShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(1, 0).status());
  PartialShape shape = s.input(0);
  if (!shape.known_rank()) return UnknownShape(s);
  std::vector<int64_t> length;
  const DType dtype = s.attr<EdgeType>("out_type").dtype;
  const bool known = s.ConstantInts(1, &length) && length.size() == 1 && length[0] > 0;
  shape.AddDim(known ? length[0] / static_cast<int64_t>(SizeOf(dtype)) : PartialShape::kUnknown);
  s.set_output(0, std::move(shape));
  return OkStatus();
}

OP(DecodePaddedRaw) {
  return {
      .doc =
          "Converts the bytes of each string to numbers, in an added last dimension. Strings are "
          "first cut, or padded with zeros, to fixed_length bytes.",
      .inputs = {{"input_bytes", "string"}, {"fixed_length", "int32"}},
      .outputs = {{"output", "out_type"}},
      .types = {{"out_type",
                 {DType::kHalf, DType::kFloat, DType::kDouble, DType::kInt32, DType::kUint16,
                  DType::kUint8, DType::kInt16, DType::kInt8, DType::kInt64, DType::kBfloat16}}},
      .attrs = {{"little_endian", AttrValue(true)}},
      .shape = DecodePaddedRawShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{3}}}, {{.values = {8}}}}}},
  };
}
KERNEL_ANY_TYPE(DecodePaddedRaw, DecodePaddedRawKernel);

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// EncodeBase64, DecodeBase64 (with the URL-safe alphabet), DecodeRaw.
#include <algorithm>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/string/strings.h"

namespace penstock {
namespace {

class EncodeBase64Kernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("pad", &pad_); }
  Status Compute(KernelContext& ctx) override {
    return MapStrings<std::string>(ctx, [this](const std::string& bytes, std::string* text) {
      *text = absl::WebSafeBase64Escape(bytes);
      while (pad_ && text->size() % 4 != 0) *text += '=';
      return OkStatus();
    });
  }

 private:
  bool pad_ = false;
};

class DecodeBase64Kernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override { return MapStrings<std::string>(ctx, Decode); }

 private:
  static bool InAlphabet(char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_'; }

  // Decodes text with or without padding. InvalidArgument if it has a wrong length or character.
  static Status Decode(const std::string& text, std::string* bytes) {
    string_view digits = text;
    for (int i = 0; i < 2 && text.size() % 4 == 0 && !digits.empty() && digits.back() == '='; ++i) {
      digits.remove_suffix(1);
    }
    if (digits.size() % 4 == 1) {
      return InvalidArgument("Base64 string length cannot be 1 modulo 4.");
    }
    if (!std::all_of(digits.begin(), digits.end(), InAlphabet) ||
        !absl::WebSafeBase64Unescape(digits, bytes)) {
      return InvalidArgument("Invalid character found in base64.");
    }
    return OkStatus();
  }
};

// Reinterprets the bytes of strings of equal length as numbers, in a new last dimension.
class DecodeRawKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    return node.Attr("little_endian", &little_endian_);
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    const auto strings = input.flat<std::string>();
    const DType dtype = ctx.output_type(0).dtype;
    const size_t element = SizeOf(dtype), size = strings.empty() ? 0 : strings[0].size();
    for (size_t i = 0; i < strings.size(); ++i) {
      if (strings[i].size() != size) {
        return InvalidArgument(
            "DecodeRaw requires input strings to all be the same size, but "
            "element ",
            i, " has size ", size, " != ", strings[i].size());
      }
    }
    if (size % element != 0) {
      return InvalidArgument("Input to DecodeRaw has length ", size, " that is not a multiple of ",
                             element, ", the size of ", Name(dtype));
    }
    Dims dims(input.shape().dims().begin(), input.shape().dims().end());
    dims.push_back(static_cast<int64_t>(size / element));
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    char* to = static_cast<char*>(output->mutable_raw_data());
    for (size_t i = 0; i < strings.size() && size > 0; ++i) {
      std::memcpy(to + i * size, strings[i].data(), size);
    }
    if (dtype == DType::kBool) {
      // Every byte becomes 0 or 1, the only values of a bool.
      for (int64_t i = 0; i < shape.num_elements(); ++i) to[i] = to[i] != 0;
    }
    if (!little_endian_) {
      const size_t number = IsComplex(dtype) ? element / 2 : element;
      for (char* p = to; p < to + output->bytes(); p += number) std::reverse(p, p + number);
    }
    return OkStatus();
  }

 private:
  bool little_endian_ = true;
};

Status DecodeRawShape(ShapeScope& s) {
  PartialShape shape = s.input(0);
  if (shape.known_rank()) shape.AddDim(PartialShape::kUnknown);
  s.set_output(0, std::move(shape));
  return OkStatus();
}

}  // namespace

OP(EncodeBase64) {
  return {
      .doc = "Encodes each string in the URL-safe alphabet of base64.",
      .inputs = {{"input", "string"}},
      .outputs = {{"output", "string"}},
      .attrs = {{"pad", AttrValue(false)}},
      .shape = SameShape,
      .gradient = NoGradient,
  };
}
KERNEL_ANY_TYPE(EncodeBase64, EncodeBase64Kernel);

OP(DecodeBase64) {
  return {
      .doc = "Decodes each string from the URL-safe alphabet of base64.",
      .inputs = {{"input", "string"}},
      .outputs = {{"output", "string"}},
      .shape = SameShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{0}}}}}},
  };
}
KERNEL_ANY_TYPE(DecodeBase64, DecodeBase64Kernel);

OP(DecodeRaw) {
  return {
      .doc = "Converts the bytes of each string to numbers, in an added last dimension.",
      .inputs = {{"bytes", "string"}},
      .outputs = {{"output", "out_type"}},
      .types = {{"out_type",
                 {DType::kHalf, DType::kFloat, DType::kDouble, DType::kInt32, DType::kUint16,
                  DType::kUint8, DType::kInt16, DType::kInt8, DType::kInt64, DType::kComplex64,
                  DType::kComplex128, DType::kBool, DType::kBfloat16}}},
      .attrs = {{"little_endian", AttrValue(true)}},
      .shape = DecodeRawShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{0}}}}}},
  };
}
KERNEL_ANY_TYPE(DecodeRaw, DecodeRawKernel);

}  // namespace penstock

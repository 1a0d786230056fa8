// SPDX-License-Identifier: Apache-2.0
//
// AsString: formats numbers as text, by the rules of printf.
#include <cinttypes>
#include <complex>
#include <cstdio>
#include <memory>

#include "absl/strings/str_format.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "core/tensor/type_lists.h"

namespace penstock {
namespace {

template <class... Args>
std::string Print(const std::string& format, Args... args) {
  const int size = std::snprintf(nullptr, 0, format.c_str(), args...);
  CHECK(size >= 0);
  std::string text(static_cast<size_t>(size), '\0');
  std::snprintf(text.data(), text.size() + 1, format.c_str(), args...);
  return text;
}

class AsStringKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    DType dtype;
    int64_t precision, width;
    bool scientific, shortest;
    std::string fill;
    RETURN_IF_ERROR(node.Attr("T", &dtype));
    RETURN_IF_ERROR(node.Attr("precision", &precision));
    RETURN_IF_ERROR(node.Attr("scientific", &scientific));
    RETURN_IF_ERROR(node.Attr("shortest", &shortest));
    RETURN_IF_ERROR(node.Attr("width", &width));
    RETURN_IF_ERROR(node.Attr("fill", &fill));
    const bool floats = IsFloating(dtype) || IsComplex(dtype);
    if ((scientific || shortest) && !floats && dtype != DType::kString) {
      return InvalidArgument("scientific and shortest format not supported for datatype ",
                             Name(dtype));
    }
    if (scientific && shortest) {
      return InvalidArgument("Cannot select both scientific and shortest notation");
    }
    if (precision >= 0 && IsInteger(dtype)) {
      return InvalidArgument("precision not supported for datatype ", Name(dtype));
    }
    if (fill.size() > 1 ||
        (fill.size() == 1 && string_view(" +-0#").find(fill[0]) == string_view::npos)) {
      return InvalidArgument("Fill argument not supported: \"", fill, "\"");
    }
    // The maximum of width and precision, which come from an untrusted graph and determine the size
    // of the results.
    constexpr int64_t kWidthMax = 1 << 20;
    if (width > kWidthMax || precision > kWidthMax) {
      return InvalidArgument("width ", width, " and precision ", precision, " must be at most ",
                             kWidthMax);
    }
    format_ = StrCat("%", fill);
    if (width > -1) StrAppend(&format_, width);
    if (precision > -1) StrAppend(&format_, ".", precision);
    if (dtype == DType::kString) {
      if (width > -1) padded_ = absl::ParsedFormat<'s'>::New(format_ + "s");
    } else if (floats) {
      format_ += scientific ? "e" : shortest ? "g" : "f";
    } else {
      const bool is_signed = dtype == DType::kInt8 || dtype == DType::kInt16 ||
                             dtype == DType::kInt32 || dtype == DType::kInt64;
      format_ += is_signed ? PRId64 : PRIu64;
    }
    return OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, input.shape(), &output));
    std::string* out = output->mutable_data<std::string>();
    switch (input.dtype()) {
#define CASE(T)                                                                           \
  case kDTypeOf<T>:                                                                       \
    for (int64_t i = 0; i < input.num_elements(); ++i) out[i] = Text(input.data<T>()[i]); \
    return OkStatus()
      CASE(float);
      CASE(double);
      CASE(half);
      CASE(bfloat16);
      CASE(int8_t);
      CASE(int16_t);
      CASE(int32_t);
      CASE(int64_t);
      CASE(uint8_t);
      CASE(uint16_t);
      CASE(uint32_t);
      CASE(uint64_t);
      CASE(bool);
      CASE(std::string);
      CASE(std::complex<float>);
      CASE(std::complex<double>);
#undef CASE
      default:
        return InvalidArgument("AsString of type ", Name(input.dtype()));
    }
  }

 private:
  std::string Text(bool x) const { return x ? "true" : "false"; }
  std::string Text(const std::string& x) const {
    return padded_ == nullptr ? x : absl::StrFormat(*padded_, x);
  }
  template <class F>
  std::string Text(const std::complex<F>& x) const {
    return StrCat("(", Text(x.real()), ",", Text(x.imag()), ")");
  }
  template <class T>
  std::string Text(T x) const {
    if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
      return Print(format_, static_cast<int64_t>(x));
    } else if constexpr (std::is_integral_v<T>) {
      return Print(format_, static_cast<uint64_t>(x));
    } else {
      return Print(format_, static_cast<double>(x));
    }
  }

  std::string format_;
  // The format of strings that are padded or truncated. Unlike in printf, a zero byte does not end
  // a string.
  std::unique_ptr<absl::ParsedFormat<'s'>> padded_;
};

DTypes Printable() { return TypesOf<NUMBER_TYPES, bool, std::string>(); }

}  // namespace

OP(AsString) {
  return {
      .doc =
          "Converts each element to a string. `precision`, `width` and `fill` are as in "
          "printf; floats are printed as %f, with `scientific` as %e, with `shortest` as "
          "%g.",
      .inputs = {{"input", "T"}},
      .outputs = {{"output", "string"}},
      .types = {{"T", Printable()}},
      .attrs = {{"precision", -1},
                {"scientific", AttrValue(false)},
                {"shortest", AttrValue(false)},
                {"width", -1},
                {"fill", ""}},
      .shape = SameShape,
      .gradient = NoGradient,
  };
}
KERNEL_ANY_TYPE(AsString, AsStringKernel);

}  // namespace penstock

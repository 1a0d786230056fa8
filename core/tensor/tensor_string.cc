// SPDX-License-Identifier: Apache-2.0
//
// Tensor::ToString.
#include <algorithm>
#include <complex>

#include "absl/strings/escaping.h"
#include "core/tensor/resource_handle.h"
#include "core/tensor/tensor.h"
#include "core/tensor/variant.h"

namespace penstock {
namespace {

std::string Element(const std::string& s) { return StrCat("\"", absl::CEscape(s), "\""); }
std::string Element(const ResourceHandle& h) {
  return StrCat("<", h.type, " ", h.container, "/", h.name, " on ", h.device, ">");
}
std::string Element(const Variant& v) {
  return v.value == nullptr ? "<nothing>" : StrCat("<", v.value->ToString(), ">");
}
std::string Element(bool b) { return b ? "true" : "false"; }
std::string Element(half h) { return StrCat(static_cast<float>(h)); }
std::string Element(bfloat16 b) { return StrCat(static_cast<float>(b)); }
template <class T>
std::string Element(std::complex<T> c) {
  return StrCat("(", c.real(), ",", c.imag(), ")");
}
template <class Base, int kTag>
std::string Element(Quantized<Base, kTag> q) {
  return StrCat(static_cast<int>(q.value));
}
template <class T>
requires(std::is_arithmetic_v<T>) std::string Element(T value) {
  if constexpr (sizeof(T) == 1) return StrCat(static_cast<int>(value));  // not as a character
  return StrCat(value);
}

template <class T>
void AppendElements(const Tensor& tensor, int64_t count, std::string* out) {
  for (int64_t i = 0; i < count; ++i) StrAppend(out, " ", Element(tensor.data<T>()[i]));
}

void AppendElementsOfAnyType(const Tensor& tensor, int64_t count, std::string* out) {
  switch (tensor.dtype()) {
#define PENSTOCK_CASE(Enum, T) \
  case DType::Enum:            \
    return AppendElements<T>(tensor, count, out);
    PENSTOCK_CASE(kFloat, float)
    PENSTOCK_CASE(kDouble, double)
    PENSTOCK_CASE(kInt32, int32_t)
    PENSTOCK_CASE(kUint8, uint8_t)
    PENSTOCK_CASE(kInt16, int16_t)
    PENSTOCK_CASE(kInt8, int8_t)
    PENSTOCK_CASE(kString, std::string)
    PENSTOCK_CASE(kComplex64, std::complex<float>)
    PENSTOCK_CASE(kInt64, int64_t)
    PENSTOCK_CASE(kBool, bool)
    PENSTOCK_CASE(kQint8, qint8)
    PENSTOCK_CASE(kQuint8, quint8)
    PENSTOCK_CASE(kQint32, qint32)
    PENSTOCK_CASE(kBfloat16, bfloat16)
    PENSTOCK_CASE(kQint16, qint16)
    PENSTOCK_CASE(kQuint16, quint16)
    PENSTOCK_CASE(kUint16, uint16_t)
    PENSTOCK_CASE(kComplex128, std::complex<double>)
    PENSTOCK_CASE(kHalf, half)
    PENSTOCK_CASE(kResource, ResourceHandle)
    PENSTOCK_CASE(kVariant, Variant)
    PENSTOCK_CASE(kUint32, uint32_t)
    PENSTOCK_CASE(kUint64, uint64_t)
#undef PENSTOCK_CASE
    case DType::kInvalid:
      return;
  }
}

}  // namespace

std::string Tensor::ToString(int max_elements) const {
  if (!valid()) return "invalid tensor";
  std::string text = StrCat(Name(dtype_), shape_.ToString());
  if (buffer_->allocator() != nullptr && !buffer_->allocator()->host_accessible()) {
    return StrCat(text, " on ", buffer_->allocator()->name());
  }
  const int64_t count = std::min<int64_t>(num_elements(), max_elements);
  AppendElementsOfAnyType(*this, count, &text);
  if (count < num_elements()) text += " ...";
  return text;
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "kernels/flow/summarize.h"

#include <complex>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <type_traits>

#include "absl/strings/escaping.h"
#include "core/tensor/resource_handle.h"

namespace penstock {
namespace {

// Returns the number with digits10 digits (6 for float) if parsing these gives the same number,
// else with enough digits to distinguish it from its neighbours.
template <class T>
std::string Decimal(T value) {
  constexpr int kDigits = std::numeric_limits<T>::digits10;
  char text[40];
  std::snprintf(text, sizeof(text), "%.*g", kDigits, static_cast<double>(value));
  if (static_cast<T>(std::strtod(text, nullptr)) == value || value != value) return text;
  std::snprintf(text, sizeof(text), "%.*g", std::numeric_limits<T>::max_digits10,
                static_cast<double>(value));
  return text;
}

template <class T>
std::string ElementText(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return absl::CEscape(value);
  } else if constexpr (std::is_same_v<T, ResourceHandle>) {
    return StrCat("<", value.type, " ", value.name, ">");
  } else if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
    return Decimal(static_cast<float>(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    return Decimal(value);
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? "1" : "0";
  } else if constexpr (std::is_integral_v<T>) {
    return StrCat(+value);  // prints bytes as numbers
  } else if constexpr (requires { value.real(); }) {
    return StrCat("(", Decimal(value.real()), ",", Decimal(value.imag()), ")");
  } else {
    return StrCat(+value.value);  // a quantized type
  }
}

template <class T>
class Summary {
 public:
  Summary(const Tensor& tensor, int64_t limit)
      : shape_(tensor.shape()), data_(tensor.data<T>()), limit_(limit) {}

  std::string Text() {
    if (shape_.rank() == 0) {
      if (limit_ == 0) return "...";
      return ElementText(data_[0]);
    }
    AddDimension(0);
    return std::move(text_);
  }

 private:
  // Adds the text of a dimension, in brackets unless it is the outermost dimension. Leaves out
  // brackets that would be empty because the limit of elements has been reached.
  void AddDimension(int dim) {
    const int64_t size = shape_.dim(dim);
    const bool innermost = dim + 1 == shape_.rank();
    for (int64_t i = 0; i < size; ++i) {
      if (next_ >= limit_) {
        if (innermost) text_ += "...";
        return;
      }
      if (innermost) {
        StrAppend(&text_, i > 0 ? " " : "", ElementText(data_[next_++]));
      } else {
        text_ += "[";
        AddDimension(dim + 1);
        text_ += "]";
      }
    }
  }

  const Shape& shape_;
  const T* const data_;
  const int64_t limit_;
  int64_t next_ = 0;
  std::string text_;
};

template <class... Ts>
std::string SummarizeAs(const Tensor& tensor, int64_t limit) {
  std::string text = "?";
  const bool known =
      ((tensor.dtype() == kDTypeOf<Ts> ? (text = Summary<Ts>(tensor, limit).Text(), true)
                                       : false) ||
       ...);
  return known ? text : StrCat("<", Name(tensor.dtype()), ">");
}

}  // namespace

std::string Summarize(const Tensor& tensor, int64_t elements_max) {
  const int64_t limit = elements_max < 0 ? tensor.num_elements() : elements_max;
  return SummarizeAs<float, double, int32_t, uint8_t, int16_t, int8_t, std::string,
                     std::complex<float>, int64_t, bool, qint8, quint8, qint32, bfloat16, qint16,
                     quint16, uint16_t, std::complex<double>, half, ResourceHandle, uint32_t,
                     uint64_t>(tensor, limit);
}

}  // namespace penstock

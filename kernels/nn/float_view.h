// SPDX-License-Identifier: Apache-2.0
//
// Views of tensors of any floating type as arrays of one type to compute in, so that loops are
// compiled only for float and double. half and bfloat16 are converted to float and back, other
// types are used in place.
#pragma once

#include <type_traits>
#include <vector>

#include "core/tensor/tensor.h"
#include "kernels/engine/float16_blocks.h"

namespace penstock {

template <class T>
using FloatOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

// Gives read access to a tensor as an array of F. REQUIRES: the tensor's dtype is that of F, or a
// 16-bit float if F is float. Borrows the tensor.
template <class F>
class FloatInput {
 public:
  explicit FloatInput(const Tensor& tensor) {
    if (std::is_same_v<F, float> && IsFloat16(tensor.dtype())) {
      converted_.resize(tensor.num_elements());
      Float16ToFloat(tensor.dtype(), tensor.raw_data(), reinterpret_cast<float*>(converted_.data()),
                     tensor.num_elements());
      data_ = converted_.data();
    } else {
      data_ = tensor.data<F>();
    }
  }
  FloatInput(const FloatInput&) = delete;
  FloatInput& operator=(const FloatInput&) = delete;
  const F* data() const { return data_; }
  operator const F*() const { return data_; }  // NOLINT: used like an array

 private:
  std::vector<F> converted_;
  const F* data_;
};

// Gives write access to a tensor as an array of F. The array starts with the tensor's elements, or
// with zeros if the tensor is of 16-bit floats. The destructor writes a converted array to the
// tensor.
template <class F>
class FloatOutput {
 public:
  explicit FloatOutput(Tensor* tensor) : tensor_(tensor) {
    if (std::is_same_v<F, float> && IsFloat16(tensor->dtype())) {
      converted_.resize(tensor->num_elements());
      data_ = converted_.data();
    } else {
      data_ = tensor->mutable_data<F>();
    }
  }
  ~FloatOutput() {
    if (converted_.empty()) return;
    FloatToFloat16(tensor_->dtype(), reinterpret_cast<const float*>(converted_.data()),
                   tensor_->mutable_raw_data(), tensor_->num_elements());
  }
  FloatOutput(const FloatOutput&) = delete;
  FloatOutput& operator=(const FloatOutput&) = delete;
  F* data() { return data_; }
  operator F*() { return data_; }  // NOLINT: used like an array

 private:
  Tensor* tensor_;
  std::vector<F> converted_;
  F* data_;
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Slices: a part of a tensor, as a set of equally long runs of its elements: rows along dimension
// 0, slices along the first few dimensions. What a sparse update says that it has changed, and how
// a StateLog carries it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock {

class Slices {
 public:
  // Slice k holds the elements [k * length, (k + 1) * length). REQUIRES length > 0 if there are
  // any. Numbers may repeat, in any order.
  Slices(int64_t length, std::vector<int64_t> numbers);
  // The rows of `indices`, an int32 or int64 tensor.
  static Slices Rows(const Tensor& indices, int64_t length);
  static Slices All() { return Slices(); }
  static Slices None() { return Slices(0, {}); }
  // Reads the values of a record: `numbers`, an int64 vector, and the elements of each in a row of
  // `elements`, a matrix. InvalidArgument if they do not fit.
  static StatusOr<Slices> Of(const Tensor& numbers, const Tensor& elements);

  // Adds the slices of `other`. Slices of different lengths become all of the tensor.
  void Add(const Slices& other);

  bool all() const { return all_; }
  int64_t length() const { return length_; }
  const std::vector<int64_t>& numbers() const { return numbers_; }  // sorted, without repetition
  Tensor Numbers() const { return Tensor::Vector(numbers_); }

 private:
  Slices() : all_(true) {}
  bool all_ = false;
  int64_t length_ = 0;
  std::vector<int64_t> numbers_;
};

// A matrix with a row for each slice, in the memory of `from`. ResourceExhausted without memory.
// REQUIRES !slices.all(), and that `from` has them.
StatusOr<Tensor> GatherSlices(const Tensor& from, const Slices& slices);
// Writes them back. InvalidArgument where `to` has no such slices or another type; `to` is
// unchanged then. `elements` must be in the memory of `to`, or in the host's if that is the CPU's.
Status ScatterSlices(const Slices& slices, const Tensor& elements, Tensor* to);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Slices: some elements of a tensor, as a set of runs of equal length: rows along dimension 0, or
// slices along the first few dimensions. Sparse updates report their changes in this form, and a
// StateLog records them in it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock {

class Slices {
 public:
  // Slice k consists of the elements [k * length, (k + 1) * length). REQUIRES: length > 0 if there
  // are any slices. Numbers may repeat, in any order.
  Slices(int64_t length, std::vector<int64_t> numbers);
  // Returns the rows with the numbers `indices`, an int32 or int64 tensor; each has `length`
  // elements. If `length` is 0, returns None().
  static Slices Rows(const Tensor& indices, int64_t length);
  static Slices All() { return Slices(); }
  static Slices None() { return Slices(0, {}); }
  // Reads the values of a record: `numbers`, an int64 vector, and `elements`, a matrix with one
  // slice per row. InvalidArgument if they do not fit.
  static StatusOr<Slices> Of(const Tensor& numbers, const Tensor& elements);

  // Adds the slices of `other`. If the lengths differ, the result is the complete tensor.
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

// Copies slices of `from` to a matrix with a row for each slice, in the memory of `from`.
// ResourceExhausted if there is not enough memory. REQUIRES: !slices.all(), and `from` has the
// slices.
StatusOr<Tensor> GatherSlices(const Tensor& from, const Slices& slices);
// Copies row k of the matrix `elements` to the k-th slice of `to`. InvalidArgument, with `to`
// unchanged, if `to` does not have these slices or has another type. `elements` must be in the
// memory of `to`, or in host memory if `to` is on the CPU.
Status ScatterSlices(const Slices& slices, const Tensor& elements, Tensor* to);

}  // namespace penstock

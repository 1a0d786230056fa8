// SPDX-License-Identifier: Apache-2.0
//
// Slices: a set of elements of a tensor, as runs of equal length: rows along dimension 0, or slices
// along the first few dimensions. Sparse updates report which elements they change as Slices, and
// the records of a StateLog hold the changed slices.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock {

class Slices {
 public:
  // Slice number k consists of the elements [k * length, (k + 1) * length) of the flat tensor.
  // `numbers` may be in any order and may repeat. REQUIRES: length > 0, unless `numbers` is empty.
  Slices(int64_t length, std::vector<int64_t> numbers);
  // Returns the rows whose numbers `indices` lists, an int32 or int64 tensor. Each row has `length`
  // elements; if `length` is 0, returns None().
  static Slices Rows(const Tensor& indices, int64_t length);
  static Slices All() { return Slices(); }
  static Slices None() { return Slices(0, {}); }
  // Returns the slices of a log record: `numbers`, a sorted int64 vector, and `elements`, a matrix
  // with one row for each slice. InvalidArgument if the two do not have this form.
  static StatusOr<Slices> Of(const Tensor& numbers, const Tensor& elements);

  // Adds the slices of `other`. If both have slices and their lengths differ, the result is All().
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

// Copies the slices out of `from`, into a matrix with one row for each slice, in the same memory
// (host or device). ResourceExhausted if there is not enough memory. REQUIRES: !slices.all(), and
// every slice lies within `from`.
StatusOr<Tensor> GatherSlices(const Tensor& from, const Slices& slices);
// Copies row k of the matrix `elements` to the k-th slice of `to`. InvalidArgument if a slice does
// not lie within `to`, or the types differ; `to` is then unchanged. `elements` must be in the same
// memory as `to` (host or device).
Status ScatterSlices(const Slices& slices, const Tensor& elements, Tensor* to);

}  // namespace penstock

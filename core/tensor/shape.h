// SPDX-License-Identifier: Apache-2.0
//
// Shape: the dimensions of a tensor. PartialShape: a shape in which some dimensions, or the rank,
// may be unknown before a step runs.
//
// Both can be copied, compared and printed ("[2,3]", "[2,?]", "?"). Invariants of a Shape: every
// dimension is >= 0, there are at most kMaxRank of them, and their product fits in int64 (so
// num_elements never overflows). Use Make for untrusted dimensions: it returns errors. The other
// constructors CHECK.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "core/base/check.h"
#include "core/base/status.h"

namespace penstock {

inline constexpr int kMaxRank = 254;
using Dims = absl::InlinedVector<int64_t, 4>;

// Returns the product of `dims`; InvalidArgument if a dimension is negative, or if the product of
// the nonzero dimensions overflows int64, so that any subset of the dimensions can be multiplied
// without overflow. All size arithmetic on untrusted numbers uses this function.
StatusOr<int64_t> CheckedProduct(absl::Span<const int64_t> dims);

class Shape {
 public:
  Shape() = default;  // scalar
  Shape(std::initializer_list<int64_t> dims) : Shape(absl::Span<const int64_t>(dims)) {}
  explicit Shape(absl::Span<const int64_t> dims);
  static StatusOr<Shape> Make(absl::Span<const int64_t> dims);

  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t dim(int i) const { return dims_[i]; }
  int64_t num_elements() const { return num_elements_; }
  absl::Span<const int64_t> dims() const { return dims_; }

  // These functions CHECK that the result keeps the invariants, so use Make for untrusted numbers.
  void set_dim(int i, int64_t size);
  void AddDim(int64_t size);
  void InsertDim(int i, int64_t size);
  void RemoveDim(int i);

  bool operator==(const Shape& other) const { return dims_ == other.dims_; }
  std::string ToString() const;  // "[2,3]"

 private:
  void Recount();
  Dims dims_;
  int64_t num_elements_ = 1;
};

class PartialShape {
 public:
  static constexpr int64_t kUnknown = -1;

  PartialShape() = default;          // unknown rank
  PartialShape(const Shape& shape);  // NOLINT: every shape is a partial shape
  PartialShape(std::initializer_list<int64_t> dims)
      : PartialShape(absl::Span<const int64_t>(dims)) {}
  explicit PartialShape(absl::Span<const int64_t> dims);  // entries >= -1
  static StatusOr<PartialShape> Make(absl::Span<const int64_t> dims);
  static PartialShape UnknownOfRank(int rank);
  static PartialShape Scalar() { return PartialShape(Shape()); }

  bool known_rank() const { return known_rank_; }
  int rank() const { return known_rank_ ? static_cast<int>(dims_.size()) : -1; }
  int64_t dim(int i) const { return dims_[i]; }  // -1 if unknown
  // `size` -1 makes the dimension unknown.
  void set_dim(int i, int64_t size) { dims_[i] = size; }
  void AddDim(int64_t size) {
    known_rank_ = true;
    dims_.push_back(size);
  }
  absl::Span<const int64_t> dims() const { return dims_; }

  // Returns true if exactly one Shape matches. False if all dimensions are known but their product
  // overflows, which shape inference may produce: no Shape has these dimensions.
  bool fully_known() const;
  // Returns the Shape that matches. REQUIRES: fully_known().
  Shape ToShape() const;
  // Returns true if some Shape matches both.
  bool Compatible(const PartialShape& other) const;
  // Returns the shape with the dimensions that are known in this shape or in `other`;
  // InvalidArgument if the two contradict each other.
  StatusOr<PartialShape> Merge(const PartialShape& other) const;

  bool operator==(const PartialShape&) const = default;
  std::string ToString() const;  // "?", "[2,?]"

 private:
  bool known_rank_ = false;
  Dims dims_;
};

}  // namespace penstock

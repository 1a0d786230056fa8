// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/shape.h"

#include <utility>

#include "absl/strings/str_join.h"

namespace penstock {
namespace {

std::string Format(absl::Span<const int64_t> dims) {
  return StrCat("[",
                absl::StrJoin(dims, ",",
                              [](std::string* out, int64_t dim) {
                                absl::StrAppend(out, dim < 0 ? "?" : StrCat(dim));
                              }),
                "]");
}

Status CheckRank(size_t rank) {
  if (rank <= kMaxRank) return OkStatus();
  return InvalidArgument("a shape of ", rank, " dimensions; at most ", kMaxRank, " are possible");
}

}  // namespace

StatusOr<int64_t> CheckedProduct(absl::Span<const int64_t> dims) {
  // The product of the nonzero dimensions must fit, too. Otherwise code that multiplies some of the
  // dimensions could overflow.
  int64_t nonzero = 1;
  bool zero = false;
  for (int64_t dim : dims) {
    if (dim < 0)
      return InvalidArgument("Dimension ", dim, " must be >= 0: shape ", Format(dims),
                             " has the negative dimension ", dim);
    if (dim == 0) {
      zero = true;
    } else if (__builtin_mul_overflow(nonzero, dim, &nonzero)) {
      return InvalidArgument("shape ", Format(dims), " has more elements than an int64 can count");
    }
  }
  return zero ? 0 : nonzero;
}

Shape::Shape(absl::Span<const int64_t> dims) : dims_(dims.begin(), dims.end()) { Recount(); }

StatusOr<Shape> Shape::Make(absl::Span<const int64_t> dims) {
  RETURN_IF_ERROR(CheckRank(dims.size()));
  Shape shape;
  ASSIGN_OR_RETURN(shape.num_elements_, CheckedProduct(dims));
  shape.dims_.assign(dims.begin(), dims.end());
  return shape;
}

void Shape::Recount() {
  CHECK_OK(CheckRank(dims_.size()));
  const StatusOr<int64_t> product = CheckedProduct(dims_);
  CHECK_OK(product.status());
  num_elements_ = *product;
}

void Shape::set_dim(int i, int64_t size) {
  dims_[i] = size;
  Recount();
}

void Shape::AddDim(int64_t size) {
  dims_.push_back(size);
  Recount();
}

void Shape::InsertDim(int i, int64_t size) {
  dims_.insert(dims_.begin() + i, size);
  Recount();
}

void Shape::RemoveDim(int i) {
  dims_.erase(dims_.begin() + i);
  Recount();
}

std::string Shape::ToString() const { return Format(dims_); }

PartialShape::PartialShape(const Shape& shape)
    : known_rank_(true), dims_(shape.dims().begin(), shape.dims().end()) {}

// Shape functions combine dimensions of untrusted shapes, so the result may have more elements than
// any Shape; then fully_known() returns false.
PartialShape::PartialShape(absl::Span<const int64_t> dims)
    : known_rank_(true), dims_(dims.begin(), dims.end()) {
  for (const int64_t dim : dims) CHECK(dim >= kUnknown, "dimension ", dim);
}

StatusOr<PartialShape> PartialShape::Make(absl::Span<const int64_t> dims) {
  RETURN_IF_ERROR(CheckRank(dims.size()));
  PartialShape shape = UnknownOfRank(static_cast<int>(dims.size()));
  int64_t known = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < kUnknown) {
      return InvalidArgument("dimension ", i, " of a shape is ", dims[i],
                             "; expected a size, or -1 for an unknown one");
    }
    if (dims[i] > 0 && __builtin_mul_overflow(known, dims[i], &known)) {
      return InvalidArgument("shape ", Format(dims), " has more elements than an int64 can count");
    }
    shape.dims_[i] = dims[i];
  }
  return shape;
}

PartialShape PartialShape::UnknownOfRank(int rank) {
  CHECK(rank >= 0, "rank ", rank);
  PartialShape shape;
  if (rank > kMaxRank) return shape;  // sum of untrusted ranks: no tensor has this rank
  shape.known_rank_ = true;
  shape.dims_.assign(rank, kUnknown);
  return shape;
}

bool PartialShape::fully_known() const {
  if (!known_rank_) return false;
  for (int64_t dim : dims_) {
    if (dim == kUnknown) return false;  // the common case, without formatting an error
  }
  return CheckRank(dims_.size()).ok() && CheckedProduct(dims_).ok();
}

Shape PartialShape::ToShape() const {
  CHECK(fully_known(), "shape ", ToString());
  return Shape(dims_);
}

bool PartialShape::Compatible(const PartialShape& other) const { return Merge(other).ok(); }

StatusOr<PartialShape> PartialShape::Merge(const PartialShape& other) const {
  if (!known_rank_) return other;
  if (!other.known_rank_) return *this;
  bool fits = rank() == other.rank();
  PartialShape merged = *this;
  for (int i = 0; fits && i < rank(); ++i) {
    if (dim(i) == kUnknown) {
      merged.dims_[i] = other.dim(i);
    } else {
      fits = other.dim(i) == kUnknown || other.dim(i) == dim(i);
    }
  }
  if (fits) return merged;
  return InvalidArgument("shapes ", ToString(), " and ", other.ToString(),
                         " contradict each other");
}

std::string PartialShape::ToString() const { return known_rank_ ? Format(dims_) : "?"; }

}  // namespace penstock

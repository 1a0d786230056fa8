// SPDX-License-Identifier: Apache-2.0
#include "core/op/shape_scope.h"

#include <algorithm>
#include <utility>

namespace penstock {
namespace {

std::string ShapeError(const OpDef& op, int i, string_view rank, const PartialShape& shape) {
  // After a list argument, an input's position does not give its name; then only the position is
  // shown.
  const bool named =
      i < static_cast<int>(op.inputs.size()) &&
      std::none_of(op.inputs.begin(), op.inputs.begin() + i + 1,
                   [](const ArgDef& a) { return a.type.list || !a.type.count.empty(); });
  return StrCat("input ", named ? StrCat("'", op.inputs[i].name, "'") : StrCat(i),
                " must have rank ", rank, ", has shape ", shape.ToString());
}

}  // namespace

ShapeScope::ShapeScope(const OpDef& op, const Attrs& attrs, std::vector<Input> inputs,
                       int num_outputs)
    : op_(op),
      attrs_(attrs),
      inputs_(std::move(inputs)),
      outputs_(num_outputs),
      elements_(num_outputs) {}

bool ShapeScope::ConstantInts(int i, std::vector<int64_t>* values) const {
  const Tensor* tensor = inputs_[i].constant;
  if (tensor == nullptr || tensor->rank() > 1) return false;
  if (tensor->dtype() == DType::kInt32) {
    const auto flat = tensor->flat<int32_t>();
    values->assign(flat.begin(), flat.end());
    return true;
  }
  if (tensor->dtype() == DType::kInt64) {
    const auto flat = tensor->flat<int64_t>();
    values->assign(flat.begin(), flat.end());
    return true;
  }
  return false;
}

void ShapeScope::set_output_element(int i, ResourceHandle::Element element) {
  elements_[i] = std::move(element);
}

StatusOr<PartialShape> ShapeScope::WithRank(int i, int rank) const {
  const PartialShape& shape = input(i);
  if (!shape.known_rank()) return PartialShape::UnknownOfRank(rank);
  if (shape.rank() == rank) return shape;
  return InvalidArgument(ShapeError(op_, i, StrCat(rank), shape));
}

StatusOr<PartialShape> ShapeScope::WithRankAtLeast(int i, int rank) const {
  const PartialShape& shape = input(i);
  if (!shape.known_rank() || shape.rank() >= rank) return shape;
  return InvalidArgument(ShapeError(op_, i, StrCat("at least ", rank), shape));
}

Status SameShape(ShapeScope& s) {
  for (int i = 0; i < s.num_outputs(); ++i) s.set_output(i, s.input(0));
  return OkStatus();
}

Status ScalarShape(ShapeScope& s) {
  for (int i = 0; i < s.num_outputs(); ++i) s.set_output(i, PartialShape::Scalar());
  return OkStatus();
}

Status BroadcastShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape shape, Broadcast(s.input(0), s.input(1)));
  s.set_output(0, std::move(shape));
  return OkStatus();
}

Status NoOutputs(ShapeScope& s) { return OkStatus(); }

Status UnknownShape(ShapeScope& s) {
  for (int i = 0; i < s.num_outputs(); ++i) s.set_output(i, PartialShape());
  return OkStatus();
}

Status ShapeFromAttr(ShapeScope& s) {
  s.set_output(0, s.attr<PartialShape>("shape"));
  return OkStatus();
}

StatusOr<PartialShape> Broadcast(const PartialShape& a, const PartialShape& b) {
  if (!a.known_rank() || !b.known_rank()) return PartialShape();
  const int rank = std::max(a.rank(), b.rank());
  PartialShape result = PartialShape::UnknownOfRank(rank);
  for (int i = 0; i < rank; ++i) {
    // Counts from the last dimension; missing dimensions are 1.
    const int64_t x = i < a.rank() ? a.dim(a.rank() - 1 - i) : 1;
    const int64_t y = i < b.rank() ? b.dim(b.rank() - 1 - i) : 1;
    constexpr int64_t kUnknown = PartialShape::kUnknown;
    int64_t size = kUnknown;
    if (x == y || y == 1) {
      size = x;
    } else if (x == 1) {
      size = y;
    } else if (x == kUnknown || y == kUnknown) {
      size = std::max(x, y);  // one dimension is known and not 1, so the other must be equal or 1
    } else {
      return InvalidArgument("shapes ", a.ToString(), " and ", b.ToString(),
                             " cannot be broadcast together");
    }
    result.set_dim(rank - 1 - i, size);
  }
  return result;
}

}  // namespace penstock

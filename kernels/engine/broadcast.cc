// SPDX-License-Identifier: Apache-2.0
#include "kernels/engine/broadcast.h"

#include <algorithm>

namespace penstock {
namespace {

Status Incompatible(std::initializer_list<const Shape*> operands) {
  std::string shapes;
  for (const Shape* shape : operands) {
    StrAppend(&shapes, shapes.empty() ? "" : " vs. ", shape->ToString());
  }
  return InvalidArgument("Incompatible shapes: ", shapes);
}

}  // namespace

StatusOr<BroadcastPlan> BroadcastPlan::Make(std::initializer_list<const Shape*> operands) {
  CHECK(operands.size() <= kMaxOperands);
  BroadcastPlan b;
  b.num_operands_ = static_cast<int>(operands.size());
  int rank = 0;
  for (const Shape* shape : operands) rank = std::max(rank, shape->rank());

  Dims sizes(rank, 1);
  int64_t stride[kMaxOperands] = {1, 1, 1};
  // Goes from the innermost dimension outwards, so the joined dimensions are reversed at the end.
  for (int d = rank - 1; d >= 0; --d) {
    Dim dim{1, {0, 0, 0}};
    for (const Shape* shape : operands) {
      const int own = d - (rank - shape->rank());
      if (own < 0 || shape->dim(own) == 1 || shape->dim(own) == dim.size) continue;
      if (dim.size != 1) return Incompatible(operands);
      dim.size = shape->dim(own);
    }
    sizes[d] = dim.size;
    int k = 0;
    for (const Shape* shape : operands) {
      const int own = d - (rank - shape->rank());
      if (own >= 0 && shape->dim(own) != 1) {
        dim.stride[k] = stride[k];
        stride[k] *= shape->dim(own);
      }
      ++k;
    }
    if (dim.size == 1) continue;
    if (!b.dims_.empty()) {
      Dim& inner = b.dims_.back();
      bool joins = true;
      for (int i = 0; i < b.num_operands_; ++i) {
        joins &= dim.stride[i] == inner.stride[i] * inner.size;
      }
      if (joins) {
        inner.size *= dim.size;
        continue;
      }
    }
    b.dims_.push_back(dim);
  }
  std::reverse(b.dims_.begin(), b.dims_.end());
  // Shape::Make fails if the output has too many elements, which small operands can cause.
  ASSIGN_OR_RETURN(b.output_, Shape::Make(sizes));
  return b;
}

void BroadcastPlan::ForEachPanelOfRows(int64_t begin, int64_t end, int64_t column, int64_t n,
                                       absl::FunctionRef<void(const BroadcastPanel&)> fn) const {
  const int rank = this->rank();
  const Dim inner = rank > 0 ? dims_[rank - 1] : Dim{1, {0, 0, 0}};
  const Dim outer = rank > 1 ? dims_[rank - 2] : Dim{1, {0, 0, 0}};
  while (begin < end) {
    const int64_t row = begin % outer.size;
    BroadcastPanel panel;
    panel.out = begin * inner.size + column;
    panel.rows = std::min(outer.size - row, end - begin);
    panel.n = n;
    int64_t index = begin / outer.size;
    for (int i = 0; i < num_operands_; ++i) {
      panel.offset[i] = row * outer.stride[i] + column * inner.stride[i];
      panel.row_step[i] = outer.stride[i];
      panel.repeats[i] = inner.stride[i] == 0;
    }
    for (int d = rank - 3; d >= 0; --d) {
      const int64_t at = index % dims_[d].size;
      index /= dims_[d].size;
      for (int i = 0; i < num_operands_; ++i) panel.offset[i] += at * dims_[d].stride[i];
    }
    fn(panel);
    begin += panel.rows;
  }
}

void BroadcastPlan::ForEachPanel(Scheduler& threads, double cost_ns_per_element,
                                 absl::FunctionRef<void(const BroadcastPanel&)> fn) const {
  const int64_t total = output_.num_elements();
  if (total == 0) return;
  const int64_t inner = rank() > 0 ? dims_.back().size : 1;
  const int64_t rows = total / inner;
  if (total <= kBlockElements) return ForEachPanelOfRows(0, rows, 0, inner, fn);

  const int64_t width = std::min(inner, kBlockElements);
  const int64_t height = std::max<int64_t>(1, kBlockElements / inner);
  const int64_t across = (inner + width - 1) / width;
  const int64_t down = (rows + height - 1) / height;
  threads.ParallelFor(across * down, cost_ns_per_element * width * height,
                      [&](int64_t begin, int64_t end) {
                        for (int64_t i = begin; i < end; ++i) {
                          const int64_t row = i / across * height;
                          const int64_t column = i % across * width;
                          ForEachPanelOfRows(row, std::min(rows, row + height), column,
                                             std::min(width, inner - column), fn);
                        }
                      });
}

void ForEachBlock(Scheduler& threads, int64_t n, double cost_ns_per_element,
                  absl::FunctionRef<void(int64_t begin, int64_t end)> fn) {
  if (n <= kBlockElements) {
    if (n > 0) fn(0, n);
    return;
  }
  const int64_t blocks = (n + kBlockElements - 1) / kBlockElements;
  threads.ParallelFor(blocks, cost_ns_per_element * kBlockElements,
                      [&](int64_t begin, int64_t end) {
                        fn(begin * kBlockElements, std::min(n, end * kBlockElements));
                      });
}

}  // namespace penstock

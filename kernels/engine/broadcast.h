// SPDX-License-Identifier: Apache-2.0
//
// BroadcastPlan: the loops over one output and up to three operands of different shapes that
// broadcast to it (NumPy's rules). Neighbouring dimensions are joined if every operand passes
// through them with one stride.
//
// The innermost dimension has stride 1 or 0 in each operand. Most plans have one or two dimensions
// after joining. A value; cheap to make (allocates no memory for up to eight dimensions).
#pragma once

#include <cstdint>
#include <initializer_list>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "core/base/scheduler.h"
#include "core/base/status.h"
#include "core/tensor/shape.h"

namespace penstock {

// Consecutive rows of the innermost dimension: output elements [out, out + rows * n).
struct BroadcastPanel {
  int64_t out;
  int64_t offset[3];    // offset of each operand's first element
  int64_t row_step[3];  // elements from one row to the next
  bool repeats[3];      // one element of the operand serves the whole row
  int64_t rows, n;
};

class BroadcastPlan {
 public:
  static constexpr int kMaxOperands = 3;

  // Makes the plan. InvalidArgument names the shapes if they do not broadcast.
  static StatusOr<BroadcastPlan> Make(std::initializer_list<const Shape*> operands);

  const Shape& output() const { return output_; }
  int num_operands() const { return num_operands_; }
  // The joined dimensions, outermost first; a scalar output has none. REQUIRES: the output is not
  // empty.
  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t dim(int d) const { return dims_[d].size; }
  int64_t stride(int operand, int d) const { return dims_[d].stride[operand]; }

  // Splits the output into panels of a few thousand elements and calls `fn` for them on `threads`.
  // The panels, and so the results, do not depend on the number of threads.
  void ForEachPanel(Scheduler& threads, double cost_ns_per_element,
                    absl::FunctionRef<void(const BroadcastPanel&)> fn) const;

 private:
  struct Dim {
    int64_t size;
    int64_t stride[kMaxOperands];
  };
  // Calls `fn` for panels of the rows [begin, end) of the innermost dimension, columns [column,
  // column + n).
  void ForEachPanelOfRows(int64_t begin, int64_t end, int64_t column, int64_t n,
                          absl::FunctionRef<void(const BroadcastPanel&)> fn) const;

  Shape output_;
  int num_operands_ = 0;
  absl::InlinedVector<Dim, 8> dims_;
};

// Elements in a block, the unit of scheduling: large enough that scheduling costs little, small
// enough for the first-level cache.
inline constexpr int64_t kBlockElements = 4096;

// Calls fn(begin, end) for blocks that cover [0, n), cut at multiples of kBlockElements.
void ForEachBlock(Scheduler& threads, int64_t n, double cost_ns_per_element,
                  absl::FunctionRef<void(int64_t begin, int64_t end)> fn);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// BroadcastPlan: how up to three operands of different shapes walk over one output (NumPy's rules),
// with neighbouring dimensions joined where every operand goes through them in one stride.
//
// So the innermost dimension has stride 1 or 0 in each operand, and most real cases have one or two
// dimensions left. A value; cheap to make (no memory for up to eight dimensions).
#pragma once

#include <cstdint>
#include <initializer_list>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "core/base/scheduler.h"
#include "core/base/status.h"
#include "core/tensor/shape.h"

namespace penstock {

// Rows of the innermost dimension: output elements [out, out + rows * n).
struct BroadcastPanel {
  int64_t out;
  int64_t offset[3];    // of each operand's first element
  int64_t row_step[3];  // elements from one row to the next
  bool repeats[3];      // the operand has one element for the whole row
  int64_t rows, n;
};

class BroadcastPlan {
 public:
  static constexpr int kMaxOperands = 3;

  // InvalidArgument names the shapes where they do not go together.
  static StatusOr<BroadcastPlan> Make(std::initializer_list<const Shape*> operands);

  const Shape& output() const { return output_; }
  int num_operands() const { return num_operands_; }
  // The joined dimensions, outermost first; none for a scalar output. REQUIRES output not empty.
  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t dim(int d) const { return dims_[d].size; }
  int64_t stride(int operand, int d) const { return dims_[d].stride[operand]; }

  // Covers the output with panels of a few thousand elements, on `threads`. How it is cut does not
  // depend on the number of threads, so neither do results.
  void ForEachPanel(Scheduler& threads, double cost_ns_per_element,
                    absl::FunctionRef<void(const BroadcastPanel&)> fn) const;

 private:
  struct Dim {
    int64_t size;
    int64_t stride[kMaxOperands];
  };
  // Panels for the rows [begin, end) of the innermost dimension, columns [column, column + n).
  void ForEachPanelOfRows(int64_t begin, int64_t end, int64_t column, int64_t n,
                          absl::FunctionRef<void(const BroadcastPanel&)> fn) const;

  Shape output_;
  int num_operands_ = 0;
  absl::InlinedVector<Dim, 8> dims_;
};

// Elements that one piece of work covers: enough to forget the cost of handing it out, few enough
// for the first-level cache.
inline constexpr int64_t kBlockElements = 4096;

// fn(begin, end) over [0, n), cut at multiples of kBlockElements.
void ForEachBlock(Scheduler& threads, int64_t n, double cost_ns_per_element,
                  absl::FunctionRef<void(int64_t begin, int64_t end)> fn);

}  // namespace penstock

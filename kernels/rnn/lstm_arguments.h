// SPDX-License-Identifier: Apache-2.0
//
// Reads and checks the arguments that LSTMBlockCell, BlockLSTM and their gradients share.
#pragma once

#include <deque>
#include <vector>

#include "core/op/flops.h"
#include "core/op/kernel.h"
#include "core/op/op_def.h"
#include "core/op/shape_scope.h"
#include "kernels/nn/float_view.h"
#include "kernels/rnn/lstm_cell.h"

namespace penstock {

// The order of an op's inputs from x on: x, cs_prev, h_prev, w, wci, wcf, wco, b. In BlockLSTM,
// seq_len_max comes before these. In the gradients, i, cs, f, o, ci, co, (h,) cs_grad and h_grad
// come after them.
enum LstmInputs { kX, kCsPrev, kHPrev, kW, kWci, kWcf, kWco, kB, kFirstState };

// Reads forget_bias, cell_clip and use_peephole, as far as the node has these attributes.
// InvalidArgument if one of them is not finite.
Status ReadLstmAttrs(const KernelInit& node, LstmCell* cell);

// Checks inputs x to b, of which x is input `x_at`, and sets the sizes in *cell.
// InvalidArgument names the input and what was expected. x is [time, batch, inputs] if `has_time`.
Status CheckLstmInputs(const KernelContext& ctx, int x_at, bool has_time, LstmCell* cell);

// Checks the sizes. InvalidArgument if a size is so large that the product of a few sizes might not
// fit in 64 bits.
Status CheckCellSizes(const LstmCell& cell);

// Checks a shape. InvalidArgument unless `input` has shape `shape`.
Status RequireShape(const Tensor& input, const char* name, const Shape& shape);

// The inputs from `first` on as floats. Borrows the tensors of the kernel's context.
class FloatInputs {
 public:
  FloatInputs(const KernelContext& ctx, int first) {
    for (int i = first; i < ctx.num_inputs(); ++i) views_.emplace_back(ctx.input(i));
  }
  const float* operator[](int i) const { return views_[i]; }
  LstmWeights weights() const {
    return {(*this)[kW], (*this)[kWci], (*this)[kWcf], (*this)[kWco], (*this)[kB]};
  }

 private:
  std::deque<FloatInput<float>> views_;
};

// Allocates outputs and gives access to them as floats, in the order of the outputs.
class FloatOutputs {
 public:
  // Allocates the next output, of shape `shape`, filled with zeros.
  Status Add(KernelContext& ctx, const Shape& shape);
  float* operator[](int i) { return views_[i]; }
  // Returns the first seven outputs, i, cs, f, o, ci, co and h: the results of a step.
  LstmStep<float> states() {
    return {views_[0], views_[1], views_[2], views_[3], views_[4], views_[5], views_[6]};
  }

 private:
  std::deque<FloatOutput<float>> views_;
};

// Return the arguments that the LSTM ops share: the inputs x to b, and the outputs i to co (and h
// if `with_h`).
std::vector<ArgDef> LstmInputArgs();
std::vector<ArgDef> LstmStateArgs(bool with_h);

// Returns the number of operations of a matrix product with the weights in input `weights`, for as
// many rows as input `x` has: two for each row and weight.
double RowsTimesWeights(const FlopsScope& scope, int x, int weights);

// Shape function: sets all outputs to [batch, cells], or to [time, batch, cells] if x has a time
// dimension.
Status LstmStateShapes(ShapeScope& s, int x_at, bool has_time);

}  // namespace penstock

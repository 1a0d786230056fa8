// SPDX-License-Identifier: Apache-2.0
//
// The arguments that LSTMBlockCell, BlockLSTM and their gradients share, checked.
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

// The order of an op's inputs from x on: x, cs_prev, h_prev, w, wci, wcf, wco, b. BlockLSTM has
// seq_len_max in front of them; the gradients have i, cs, f, o, ci, co, (h,) cs_grad, h_grad
// behind.
enum LstmInputs { kX, kCsPrev, kHPrev, kW, kWci, kWcf, kWco, kB, kFirstState };

// Reads the attributes that the node has of forget_bias, cell_clip, use_peephole. InvalidArgument
// where one is not finite.
Status ReadLstmAttrs(const KernelInit& node, LstmCell* cell);

// Checks inputs x to b, of which x is input `x_at`, and sets the sizes in *cell.
// InvalidArgument names the input and what was expected. x is [time, batch, inputs] if `has_time`.
Status CheckLstmInputs(const KernelContext& ctx, int x_at, bool has_time, LstmCell* cell);

// InvalidArgument where a size is so large that products of a few would not fit 64 bits.
Status CheckCellSizes(const LstmCell& cell);

// InvalidArgument unless `input` has this shape.
Status RequireShape(const Tensor& input, const char* name, const Shape& shape);

// Inputs from `first` on as floats. Lives no longer than the call of the kernel.
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

// Outputs to write as floats, in their order.
class FloatOutputs {
 public:
  // Allocates output i of shape `shape`, filled with zeros.
  Status Add(KernelContext& ctx, const Shape& shape);
  float* operator[](int i) { return views_[i]; }
  // Outputs i to h.
  LstmStep<float> states() {
    return {views_[0], views_[1], views_[2], views_[3], views_[4], views_[5], views_[6]};
  }

 private:
  std::deque<FloatOutput<float>> views_;
};

// Types of inputs and outputs.
std::vector<ArgDef> LstmInputArgs();
std::vector<ArgDef> LstmStateArgs(bool with_h);

// Operations of the product of the rows of input `x` and input `weights`, or part of it.
double RowsTimesWeights(const FlopsScope& scope, int x, int weights);

// All outputs as [batch, cells], with x's time in front if it has one.
Status LstmStateShapes(ShapeScope& s, int x_at, bool has_time);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// One step of an LSTM cell, forward and backward, for LSTMBlockCell, BlockLSTM and their gradients.
// S. Hochreiter, J. Schmidhuber: Long Short-Term Memory. Neural Computation 1997; with peepholes
// after F. Gers et al.: Learning Precise Timing with LSTM Recurrent Networks. JMLR 2002.
//
//   [i, ci, f, o] = [x, h_prev] w + b       + peepholes wci cs_prev, wcf cs_prev, wco cs
//   cs = clip(sigmoid(f + forget_bias) cs_prev + sigmoid(i) tanh(ci)),   h = sigmoid(o) tanh(cs)
//
// Arrays are row-major, [batch, cells] unless said otherwise. Clipping passes gradients unchanged,
// as in TensorFlow. Functions split the batch over `threads`.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/base/scheduler.h"

namespace penstock {

struct LstmCell {
  int64_t batch = 0, inputs = 0, cells = 0;
  float forget_bias = 0, clip = 0;  // if clip > 0, cs is clipped to [-clip, clip]
  bool peephole = false;
  // True: the columns of w and b are i, f, ci, o instead of i, ci, f, o.
  bool forget_gate_second = false;

  int64_t state() const { return batch * cells; }
  int64_t joined() const { return inputs + cells; }  // columns of [x, h_prev]
  // Return the first column of the candidate, forget gate or output gate in a row of gates, [4 *
  // cells].
  int64_t candidate_at() const { return forget_gate_second ? 2 * cells : cells; }
  int64_t forget_at() const { return forget_gate_second ? cells : 2 * cells; }
  int64_t output_at() const { return 3 * cells; }
};

constexpr double kCellNanos = 40;  // the time of one cell's activations

// Calls fn(row) for each row of the batch, split over `threads`.
template <class Fn>
void ForEachRow(Scheduler& threads, const LstmCell& cell, const Fn& fn) {
  const double nanos = kCellNanos * static_cast<double>(cell.cells);
  threads.ParallelFor(cell.batch, nanos, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) fn(row);
  });
}

inline float LogisticSigmoid(float x) { return 1 / (1 + std::exp(-x)); }

// w: [inputs + cells, 4 * cells]; peepholes: [cells], only read if the cell has peepholes; b: [4 *
// cells].
struct LstmWeights {
  const float *w, *wci, *wcf, *wco, *b;
};

// The results of a step. F is float for outputs, and const float for inputs.
template <class F>
struct LstmStep {
  F *i, *cs, *f, *o, *ci, *co, *h;

  // Returns the same arrays, advanced by `elements`.
  LstmStep operator+(int64_t elements) const {
    return {i + elements,  cs + elements, f + elements, o + elements,
            ci + elements, co + elements, h + elements};
  }
};

// Copies [x, h_prev] into rows of `joined`, [batch, inputs + cells].
void JoinInputs(const LstmCell& cell, const float* x, const float* h_prev, float* joined);

// Computes one step. `joined` [batch, inputs + cells] and `gates` [batch, 4 * cells] are scratch
// memory.
void LstmForward(Scheduler& threads, const LstmCell& cell, const LstmWeights& weights,
                 const float* x, const float* cs_prev, const float* h_prev, float* joined,
                 float* gates, const LstmStep<float>& step);

// The gradients of the peepholes, [cells], to which each step adds.
struct PeepholeGradients {
  float *wci, *wcf, *wco;
};

// From the gradients of cs and h, computes those of cs_prev and of the gates before their
// activations, `dgates` [batch, 4 * cells].
void LstmBackward(Scheduler& threads, const LstmCell& cell, const LstmWeights& weights,
                  const float* cs_prev, const LstmStep<const float>& step, const float* cs_grad,
                  const float* h_grad, float* dgates, float* cs_prev_grad,
                  const PeepholeGradients& peepholes);

}  // namespace penstock

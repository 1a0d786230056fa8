// SPDX-License-Identifier: Apache-2.0
#include "kernels/rnn/lstm_cell.h"

#include <algorithm>
#include <cmath>

#include "kernels/math/gemm.h"

namespace penstock {
void JoinInputs(const LstmCell& cell, const float* x, const float* h_prev, float* joined) {
  for (int64_t row = 0; row < cell.batch; ++row) {
    joined = std::copy_n(x + row * cell.inputs, cell.inputs, joined);
    joined = std::copy_n(h_prev + row * cell.cells, cell.cells, joined);
  }
}

void LstmForward(Scheduler& threads, const LstmCell& cell, const LstmWeights& weights,
                 const float* x, const float* cs_prev, const float* h_prev, float* joined,
                 float* gates, const LstmStep<float>& step) {
  JoinInputs(cell, x, h_prev, joined);
  const Product product = {.m = cell.batch, .n = 4 * cell.cells, .k = cell.joined()};
  Multiply(threads, product, joined, weights.w, gates);
  ForEachRow(threads, cell, [&](int64_t r) {
    const float *row = gates + 4 * r * cell.cells, *b = weights.b;
    for (int64_t c = 0; c < cell.cells; ++c) {
      const int64_t at = r * cell.cells + c;
      const int64_t candidate = cell.candidate_at() + c, forget = cell.forget_at() + c;
      const int64_t output = cell.output_at() + c;
      float i = row[c] + b[c], f = row[forget] + b[forget], o = row[output] + b[output];
      if (cell.peephole) {
        i += weights.wci[c] * cs_prev[at];
        f += weights.wcf[c] * cs_prev[at];
      }
      step.i[at] = LogisticSigmoid(i);
      step.f[at] = LogisticSigmoid(f + cell.forget_bias);
      step.ci[at] = std::tanh(row[candidate] + b[candidate]);
      float cs = step.ci[at] * step.i[at] + cs_prev[at] * step.f[at];
      if (cell.clip > 0) cs = std::clamp(cs, -cell.clip, cell.clip);
      if (cell.peephole) o += weights.wco[c] * cs;
      step.cs[at] = cs;
      step.o[at] = LogisticSigmoid(o);
      step.co[at] = std::tanh(cs);
      step.h[at] = step.o[at] * step.co[at];
    }
  });
}

namespace {

void AddPeepholes(const LstmCell& cell, const float* cs_prev, const float* cs, const float* dgates,
                  const PeepholeGradients& sums) {
  for (int64_t row = 0; row < cell.batch; ++row) {
    const float* d = dgates + 4 * row * cell.cells;
    for (int64_t c = 0; c < cell.cells; ++c) {
      const int64_t at = row * cell.cells + c;
      sums.wci[c] += d[c] * cs_prev[at];
      sums.wcf[c] += d[cell.forget_at() + c] * cs_prev[at];
      sums.wco[c] += d[cell.output_at() + c] * cs[at];
    }
  }
}

}  // namespace

void LstmBackward(Scheduler& threads, const LstmCell& cell, const LstmWeights& weights,
                  const float* cs_prev, const LstmStep<const float>& step, const float* cs_grad,
                  const float* h_grad, float* dgates, float* cs_prev_grad,
                  const PeepholeGradients& peepholes) {
  ForEachRow(threads, cell, [&](int64_t row) {
    float* d = dgates + 4 * row * cell.cells;
    for (int64_t c = 0; c < cell.cells; ++c) {
      const int64_t at = row * cell.cells + c;
      const float i = step.i[at], f = step.f[at], o = step.o[at], ci = step.ci[at];
      const float co = step.co[at];
      const float d_o = o * (1 - o) * h_grad[at] * co;
      float d_cs = (1 - co * co) * h_grad[at] * o + cs_grad[at];
      if (cell.peephole) d_cs += d_o * weights.wco[c];
      const float d_i = i * (1 - i) * d_cs * ci;
      const float d_f = f * (1 - f) * d_cs * cs_prev[at];
      d[c] = d_i;
      d[cell.candidate_at() + c] = (1 - ci * ci) * d_cs * i;
      d[cell.forget_at() + c] = d_f;
      d[cell.output_at() + c] = d_o;
      float before = d_cs * f;
      if (cell.peephole) before += d_i * weights.wci[c] + d_f * weights.wcf[c];
      cs_prev_grad[at] = before;
    }
  });
  if (cell.peephole) AddPeepholes(cell, cs_prev, step.cs, dgates, peepholes);
}

}  // namespace penstock

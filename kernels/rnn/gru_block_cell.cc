// SPDX-License-Identifier: Apache-2.0
//
// GRUBlockCell and GRUBlockCellGrad: one step of a gated recurrent unit as one op.
// K. Cho et al.: Learning Phrase Representations using RNN Encoder-Decoder. EMNLP 2014.
//
//   [r, u] = sigmoid([x, h_prev] w_ru + b_ru),   c = tanh([x, r h_prev] w_c + b_c)
//   h = u h_prev + (1 - u) c
#include <cmath>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/math/gemm.h"
#include "kernels/rnn/lstm_arguments.h"
#include "kernels/rnn/lstm_cell.h"

namespace penstock {
namespace {

enum Inputs { kGruX, kGruHPrev, kWRu, kWC, kBRu, kBC, kR, kU, kC, kDH };

// Returns the sizes of the inputs that GRUBlockCell and its gradient have. InvalidArgument names an
// input with a wrong shape.
StatusOr<LstmCell> CheckGruInputs(const KernelContext& ctx) {
  const Tensor &x = ctx.input(kGruX), &h_prev = ctx.input(kGruHPrev);
  if (x.rank() != 2) return InvalidArgument("x must have rank 2, has ", x.shape().ToString());
  if (h_prev.rank() != 2) {
    return InvalidArgument("h_prev must have rank 2, has shape ", h_prev.shape().ToString());
  }
  const LstmCell cell = {.batch = x.dim(0), .inputs = x.dim(1), .cells = h_prev.dim(1)};
  RETURN_IF_ERROR(CheckCellSizes(cell));
  const int64_t n = cell.cells, joined = cell.joined();
  RETURN_IF_ERROR(RequireShape(h_prev, "h_prev", Shape({cell.batch, n})));
  RETURN_IF_ERROR(RequireShape(ctx.input(kWRu), "w_ru", Shape({joined, 2 * n})));
  RETURN_IF_ERROR(RequireShape(ctx.input(kWC), "w_c", Shape({joined, n})));
  RETURN_IF_ERROR(RequireShape(ctx.input(kBRu), "b_ru", Shape({2 * n})));
  RETURN_IF_ERROR(RequireShape(ctx.input(kBC), "b_c", Shape({n})));
  return cell;
}

const float* Floats(const KernelContext& ctx, int i) { return ctx.input(i).data<float>(); }

class GruBlockCellKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const LstmCell cell, CheckGruInputs(ctx));
    const int64_t n = cell.cells, batch = cell.batch;
    State state;
    for (float** to : {&state.r, &state.u, &state.c, &state.h}) {
      Tensor* output;
      RETURN_IF_ERROR(ctx.Allocate(state.outputs++, Shape({batch, n}), &output));
      *to = output->mutable_data<float>();
    }
    ASSIGN_OR_RETURN(Tensor joined, ctx.Temporary(DType::kFloat, Shape({batch, cell.joined()})));
    ASSIGN_OR_RETURN(Tensor gates, ctx.Temporary(DType::kFloat, Shape({batch, 2 * n})));
    float *const rows = joined.mutable_data<float>(), *const sums = gates.mutable_data<float>();
    const float* const x = Floats(ctx, kGruX);

    JoinInputs(cell, x, Floats(ctx, kGruHPrev), rows);
    Multiply(ctx.threads(), {.m = batch, .n = 2 * n, .k = cell.joined()}, rows, Floats(ctx, kWRu),
             sums);
    Gates(ctx, cell, sums, state);
    JoinInputs(cell, x, state.h, rows);
    Multiply(ctx.threads(), {.m = batch, .n = n, .k = cell.joined()}, rows, Floats(ctx, kWC),
             state.c);
    NewState(ctx, cell, state);
    return OkStatus();
  }

 private:
  struct State {
    float *r = nullptr, *u = nullptr, *c = nullptr, *h = nullptr;
    int outputs = 0;
  };

  // Computes r and u, and writes the product r h_prev to the memory of h.
  static void Gates(KernelContext& ctx, const LstmCell& cell, const float* sums,
                    const State& state) {
    const float *const b = Floats(ctx, kBRu), *const h_prev = Floats(ctx, kGruHPrev);
    ForEachRow(ctx.threads(), cell, [&](int64_t row) {
      const float *const reset = sums + row * 2 * cell.cells, *const update = reset + cell.cells;
      for (int64_t i = 0; i < cell.cells; ++i) {
        const int64_t at = row * cell.cells + i;
        state.r[at] = LogisticSigmoid(reset[i] + b[i]);
        state.u[at] = LogisticSigmoid(update[i] + b[cell.cells + i]);
        state.h[at] = h_prev[at] * state.r[at];
      }
    });
  }
  // Computes c and h. Before the call, c holds the sums of its inputs.
  static void NewState(KernelContext& ctx, const LstmCell& cell, const State& state) {
    const float *const b = Floats(ctx, kBC), *const h_prev = Floats(ctx, kGruHPrev);
    ForEachRow(ctx.threads(), cell, [&](int64_t row) {
      for (int64_t i = 0; i < cell.cells; ++i) {
        const int64_t at = row * cell.cells + i;
        const float u = state.u[at];
        state.c[at] = std::tanh(state.c[at] + b[i]);
        state.h[at] = u * h_prev[at] + (1 - u) * state.c[at];
      }
    });
  }
};

class GruBlockCellGradKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const LstmCell cell, CheckGruInputs(ctx));
    const int64_t n = cell.cells, batch = cell.batch, joined = cell.joined();
    const char* const names[] = {"r", "u", "c", "d_h"};
    for (int i = kR; i <= kDH; ++i) {
      RETURN_IF_ERROR(RequireShape(ctx.input(i), names[i - kR], Shape({batch, n})));
    }
    float* out[4];  // the gradients of x, h_prev, c_bar and r_bar_u_bar
    const int64_t columns[] = {cell.inputs, n, n, 2 * n};
    for (int i = 0; i < 4; ++i) {
      Tensor* output;
      RETURN_IF_ERROR(ctx.Allocate(i, Shape({batch, columns[i]}), &output));
      out[i] = output->mutable_data<float>();
    }
    ASSIGN_OR_RETURN(Tensor candidate, ctx.Temporary(DType::kFloat, Shape({batch, joined})));
    ASSIGN_OR_RETURN(Tensor gates, ctx.Temporary(DType::kFloat, Shape({batch, joined})));
    float* const d_candidate = candidate.mutable_data<float>();  // the gradient of [x, r h_prev]
    float* const d_gates = gates.mutable_data<float>();          // the gradient of [x, h_prev]
    CandidateGradient(ctx, cell, out[2]);
    Multiply(ctx.threads(), {.m = batch, .n = joined, .k = n, .b = Side::kTransposed}, out[2],
             Floats(ctx, kWC), d_candidate);
    GateGradients(ctx, cell, d_candidate, out[3]);
    Multiply(ctx.threads(), {.m = batch, .n = joined, .k = 2 * n, .b = Side::kTransposed}, out[3],
             Floats(ctx, kWRu), d_gates);
    InputGradients(ctx, cell, d_candidate, d_gates, out[0], out[1]);
    return OkStatus();
  }

 private:
  static void CandidateGradient(KernelContext& ctx, const LstmCell& cell, float* to) {
    const float *const d_h = Floats(ctx, kDH), *const u = Floats(ctx, kU),
                       *const c = Floats(ctx, kC);
    ForEachRow(ctx.threads(), cell, [&](int64_t row) {
      for (int64_t at = row * cell.cells; at < (row + 1) * cell.cells; ++at) {
        to[at] = d_h[at] * (1 - u[at]) * (1 - c[at] * c[at]);
      }
    });
  }
  static void GateGradients(KernelContext& ctx, const LstmCell& cell, const float* d_candidate,
                            float* to) {
    const float *const h_prev = Floats(ctx, kGruHPrev), *const r = Floats(ctx, kR),
                       *const u = Floats(ctx, kU), *const c = Floats(ctx, kC),
                       *const d_h = Floats(ctx, kDH);
    ForEachRow(ctx.threads(), cell, [&](int64_t row) {
      const float* const d_reset_h = d_candidate + row * cell.joined() + cell.inputs;
      float *const reset = to + row * 2 * cell.cells, *const update = reset + cell.cells;
      for (int64_t i = 0; i < cell.cells; ++i) {
        const int64_t at = row * cell.cells + i;
        reset[i] = d_reset_h[i] * h_prev[at] * r[at] * (1 - r[at]);
        update[i] = d_h[at] * (h_prev[at] - c[at]) * u[at] * (1 - u[at]);
      }
    });
  }
  static void InputGradients(KernelContext& ctx, const LstmCell& cell, const float* d_candidate,
                             const float* d_gates, float* d_x, float* d_h_prev) {
    const float *const r = Floats(ctx, kR), *const u = Floats(ctx, kU),
                       *const d_h = Floats(ctx, kDH);
    ForEachRow(ctx.threads(), cell, [&](int64_t row) {
      const float *const from_c = d_candidate + row * cell.joined(), *const from_ru =
                                                                         d_gates +
                                                                         row * cell.joined();
      for (int64_t i = 0; i < cell.inputs; ++i) {
        d_x[row * cell.inputs + i] = from_ru[i] + from_c[i];
      }
      for (int64_t i = 0; i < cell.cells; ++i) {
        const int64_t at = row * cell.cells + i, h = cell.inputs + i;
        d_h_prev[at] = from_ru[h] + from_c[h] * r[at] + d_h[at] * u[at];
      }
    });
  }
};

double GruFlops(const FlopsScope& s) {
  return RowsTimesWeights(s, kGruX, kWRu) + RowsTimesWeights(s, kGruX, kWC);
}

Status GruShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape x, s.WithRank(kGruX, 2));
  ASSIGN_OR_RETURN(const PartialShape h_prev, s.WithRank(kGruHPrev, 2));
  const auto dim = [](const PartialShape& shape, int i) {
    return shape.known_rank() ? shape.dim(i) : PartialShape::kUnknown;
  };
  for (int i = 0; i < 4; ++i) s.set_output(i, PartialShape({dim(x, 0), dim(h_prev, 1)}));
  return OkStatus();
}

Status GruGradShape(ShapeScope& s) {
  RETURN_IF_ERROR(GruShape(s));
  const PartialShape state = s.output(1);
  s.set_output(0, s.input(kGruX));
  const int64_t gates = state.dim(1) < 0 ? PartialShape::kUnknown : 2 * state.dim(1);
  s.set_output(3, PartialShape({state.dim(0), gates}));
  return OkStatus();
}

// Returns the gradients that flow through output h. The other outputs exist only for the gradient
// op.
std::vector<Gradient> GruGradient(const GradientScope& g) {
  std::vector<NodeInput> inputs;
  for (int i = 0; i < 6; ++i) inputs.push_back(g.x(i));
  for (int i = 0; i < 3; ++i) inputs.push_back(g.y(i));
  inputs.push_back(g.dy(3));
  const Outputs d = CallN("GRUBlockCellGrad", inputs);
  const Output axis = g.Const<int32_t>(1), x = g.x(kGruX), h_prev = g.x(kGruHPrev);
  const Output d_w_ru = MatMul(ConcatV2({x, h_prev}, axis), d[3], true);
  const Output d_w_c = MatMul(ConcatV2({x, h_prev * g.y(0)}, axis), d[2], true);
  return {d[0], d[1], d_w_ru, d_w_c, Call("BiasAddGrad", {d[3]}), Call("BiasAddGrad", {d[2]})};
}

const std::vector<ExampleTensor> kState = {{{2, 3}}};

std::vector<std::vector<ExampleTensor>> GruInputs() {
  return {{{{2, 2}}}, kState, {{{5, 6}}}, {{{5, 3}}}, {{{6}}}, {{{3}}}};
}
std::vector<ArgDef> GruInputArgs() {
  return {{"x", "T"}, {"h_prev", "T"}, {"w_ru", "T"}, {"w_c", "T"}, {"b_ru", "T"}, {"b_c", "T"}};
}

}  // namespace

OP(GRUBlockCell) {
  return {
      .doc =
          "One step of a gated recurrent unit: reset gate r, update gate u, candidate c, new "
          "state h. Gradients flow through h.",
      .inputs = GruInputArgs(),
      .outputs = {{"r", "T"}, {"u", "T"}, {"c", "T"}, {"h", "T"}},
      .types = {{"T", {DType::kFloat}}},
      .shape = GruShape,
      .gradient = GruGradient,
      .examples = {{.inputs = GruInputs(), .check_gradient = false}},
      .flops = GruFlops,
  };
}
KERNEL_ANY_TYPE(GRUBlockCell, GruBlockCellKernel);

OP(GRUBlockCellGrad) {
  std::vector<ArgDef> inputs = GruInputArgs();
  for (const char* name : {"r", "u", "c", "d_h"}) inputs.push_back({name, "T"});
  std::vector<std::vector<ExampleTensor>> example = GruInputs();
  example.insert(example.end(), 4, kState);
  return {
      .doc =
          "The gradients of GRUBlockCell for x, for h_prev, and for the candidate and the "
          "gates before their activations.",
      .inputs = inputs,
      .outputs = {{"d_x", "T"}, {"d_h_prev", "T"}, {"d_c_bar", "T"}, {"d_r_bar_u_bar", "T"}},
      .types = {{"T", {DType::kFloat}}},
      .shape = GruGradShape,
      .examples = {{.inputs = example}},
      .flops = GruFlops,
  };
}
KERNEL_ANY_TYPE(GRUBlockCellGrad, GruBlockCellGradKernel);

}  // namespace penstock

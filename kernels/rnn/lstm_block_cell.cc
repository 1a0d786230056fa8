// SPDX-License-Identifier: Apache-2.0
//
// LSTMBlockCell and LSTMBlockCellGrad: one step of an LSTM as one op.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "kernels/rnn/lstm_arguments.h"

namespace penstock {
namespace {

class LstmBlockCellKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return ReadLstmAttrs(node, &attrs_); }

  Status Compute(KernelContext& ctx) override {
    LstmCell cell = attrs_;
    RETURN_IF_ERROR(CheckLstmInputs(ctx, kX, false, &cell));
    const Shape joined({cell.batch, cell.joined()}), gates({cell.batch, 4 * cell.cells});
    ASSIGN_OR_RETURN(Tensor joined_inputs, ctx.Temporary(DType::kFloat, joined));
    ASSIGN_OR_RETURN(Tensor gate_sums, ctx.Temporary(DType::kFloat, gates));
    FloatOutputs out;
    for (int i = 0; i < ctx.num_outputs(); ++i) {
      RETURN_IF_ERROR(out.Add(ctx, Shape({cell.batch, cell.cells})));
    }
    const FloatInputs in(ctx, kX);
    LstmForward(ctx.threads(), cell, in.weights(), in[kX], in[kCsPrev], in[kHPrev],
                joined_inputs.mutable_data<float>(), gate_sums.mutable_data<float>(), out.states());
    return OkStatus();
  }

 private:
  LstmCell attrs_;
};

class LstmBlockCellGradKernel final : public Kernel {
  enum { kI = kFirstState, kCs, kF, kO, kCi, kCo, kCsGrad, kHGrad, kEnd };

 public:
  Status Init(const KernelInit& node) override { return ReadLstmAttrs(node, &attrs_); }

  Status Compute(KernelContext& ctx) override {
    LstmCell cell = attrs_;
    RETURN_IF_ERROR(CheckLstmInputs(ctx, kX, false, &cell));
    const Shape state({cell.batch, cell.cells}), peephole({cell.cells});
    const char* const names[] = {"i", "cs", "f", "o", "ci", "co", "cs_grad", "h_grad"};
    for (int i = kI; i < kEnd; ++i) {
      RETURN_IF_ERROR(RequireShape(ctx.input(i), names[i - kI], state));
    }
    FloatOutputs out;
    for (const Shape& shape :
         {state, Shape({cell.batch, 4 * cell.cells}), peephole, peephole, peephole}) {
      RETURN_IF_ERROR(out.Add(ctx, shape));
    }
    const FloatInputs in(ctx, kX);
    const LstmStep<const float> step = {in[kI], in[kCs], in[kF], in[kO], in[kCi], in[kCo], nullptr};
    LstmBackward(ctx.threads(), cell, in.weights(), in[kCsPrev], step, in[kCsGrad], in[kHGrad],
                 out[1], out[0], {out[2], out[3], out[4]});
    return OkStatus();
  }

 private:
  LstmCell attrs_;
};

Status CellShape(ShapeScope& s) { return LstmStateShapes(s, kX, false); }

Status CellGradShape(ShapeScope& s) {
  RETURN_IF_ERROR(LstmStateShapes(s, kX, false));
  const PartialShape state = s.output(0);
  if (!state.known_rank()) return OkStatus();
  const int64_t cells = state.dim(1);
  const int64_t gates = cells < 0 ? PartialShape::kUnknown : 4 * cells;
  s.set_output(1, PartialShape({state.dim(0), gates}));
  for (int i = 2; i < s.num_outputs(); ++i) s.set_output(i, PartialShape({cells}));
  return OkStatus();
}

// Returns the gradients that flow through outputs cs and h. The other outputs exist only for the
// gradient op.
std::vector<Gradient> CellGradient(const GradientScope& g) {
  std::vector<NodeInput> inputs;
  for (int i = 0; i < g.num_inputs(); ++i) inputs.push_back(g.x(i));
  for (int i = 0; i < 6; ++i) inputs.push_back(g.y(i));
  inputs.push_back(g.dy(1));
  inputs.push_back(g.dy(6));
  const Outputs d =
      CallN("LSTMBlockCellGrad", inputs, {{"use_peephole", g.attr<bool>("use_peephole")}});
  const Output axis = g.Const<int32_t>(1), x = g.x(kX), h_prev = g.x(kHPrev);
  const Output joined = MatMul(d[1], g.x(kW), false, true);
  const auto columns = [&](Output like, Output begin) {
    return Call("Slice", {joined, begin, ShapeOf(like)});
  };
  const Output inputs_count = Gather(ShapeOf(x), axis, g.Const<int32_t>(0));
  const Output dx = columns(x, g.Const(Tensor::Vector<int32_t>({0, 0})));
  const Output dh_prev = columns(h_prev, Pack({g.Const<int32_t>(0), inputs_count}));
  const Output dw = MatMul(ConcatV2({x, h_prev}, axis), d[1], true);
  return {dx, d[0], dh_prev, dw, d[2], d[3], d[4], Call("BiasAddGrad", {d[1]})};
}

const std::vector<ExampleTensor> kState = {{{2, 3}}}, kPeephole = {{{3}}};

std::vector<std::vector<ExampleTensor>> CellInputs() {
  return {{{{2, 2}}}, kState, kState, {{{5, 12}}}, kPeephole, kPeephole, kPeephole, {{{12}}}};
}

}  // namespace

OP(LSTMBlockCell) {
  return {
      .doc =
          "One step of an LSTM cell. The columns of w and b are those of the input gate, the "
          "candidate, the forget gate and the output gate. Gradients flow through cs and h.",
      .inputs = LstmInputArgs(),
      .outputs = LstmStateArgs(true),
      .types = {{"T", {DType::kHalf, DType::kFloat}}},
      .attrs = {{"forget_bias", 1.0f}, {"cell_clip", 3.0f}, {"use_peephole", false}},
      .shape = CellShape,
      .gradient = CellGradient,
      .examples = {{.inputs = CellInputs(), .check_gradient = false},
                   {.inputs = CellInputs(),
                    .attrs = {{"use_peephole", true}},
                    .check_gradient = false}},
      .flops = [](const FlopsScope& s) { return RowsTimesWeights(s, kX, kW); },
  };
}
KERNEL_ANY_TYPE(LSTMBlockCell, LstmBlockCellKernel);

OP(LSTMBlockCellGrad) {
  std::vector<ArgDef> inputs = LstmInputArgs();
  for (const ArgDef& arg : LstmStateArgs(false)) inputs.push_back(arg);
  inputs.push_back({"cs_grad", "T"});
  inputs.push_back({"h_grad", "T"});
  std::vector<std::vector<ExampleTensor>> example = CellInputs();
  example.insert(example.end(), 8, kState);
  return {
      .doc =
          "The gradients of LSTMBlockCell for cs_prev, for the gates before their "
          "activations (dicfo, in the order of w's columns), and for the peepholes.",
      .inputs = inputs,
      .outputs = {{"cs_prev_grad", "T"},
                  {"dicfo", "T"},
                  {"wci_grad", "T"},
                  {"wcf_grad", "T"},
                  {"wco_grad", "T"}},
      .types = {{"T", {DType::kHalf, DType::kFloat}}},
      .attrs = {{"use_peephole", Bools()}},
      .shape = CellGradShape,
      .examples = {{.inputs = example, .attrs = {{"use_peephole", true}}},
                   {.inputs = example, .attrs = {{"use_peephole", false}}}},
  };
}
KERNEL_ANY_TYPE(LSTMBlockCellGrad, LstmBlockCellGradKernel);

}  // namespace penstock

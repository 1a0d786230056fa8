// SPDX-License-Identifier: Apache-2.0
//
// BlockLSTM, BlockLSTMV2 and their gradients: an LSTM over a whole sequence as one op.
#include <algorithm>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "kernels/math/gemm.h"
#include "kernels/rnn/lstm_arguments.h"

namespace penstock {
namespace {

constexpr int kXInput = 1;  // input 0 is seq_len_max

// Returns input 0: the number of steps that are computed. InvalidArgument unless it is a scalar
// from 0 to `time`.
StatusOr<int64_t> StepsInput(const KernelContext& ctx, int64_t time) {
  const Tensor& length = ctx.input(0);
  if (length.rank() != 0) {
    return InvalidArgument("seq_len_max must be a scalar, has shape ", length.shape().ToString());
  }
  const int64_t steps = length.scalar<int64_t>();
  if (steps >= 0 && steps <= time) return steps;
  return InvalidArgument("seq_len_max must be between 0 and ", time, ", x's steps, is ", steps);
}

template <bool kForgetGateSecond>
class BlockLstmKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    attrs_.forget_gate_second = kForgetGateSecond;
    return ReadLstmAttrs(node, &attrs_);
  }

  Status Compute(KernelContext& ctx) override {
    LstmCell cell = attrs_;
    RETURN_IF_ERROR(CheckLstmInputs(ctx, kXInput, true, &cell));
    const int64_t time = ctx.input(kXInput + kX).dim(0);
    ASSIGN_OR_RETURN(const int64_t steps, StepsInput(ctx, time));
    const Shape joined({cell.batch, cell.joined()}), gates({cell.batch, 4 * cell.cells});
    ASSIGN_OR_RETURN(Tensor joined_inputs, ctx.Temporary(DType::kFloat, joined));
    ASSIGN_OR_RETURN(Tensor gate_sums, ctx.Temporary(DType::kFloat, gates));
    ASSIGN_OR_RETURN(const Shape states, Shape::Make(Dims{time, cell.batch, cell.cells}));
    FloatOutputs out;
    for (int i = 0; i < ctx.num_outputs(); ++i) {
      RETURN_IF_ERROR(out.Add(ctx, states));
    }
    const FloatInputs in(ctx, kXInput);
    const float *cs_prev = in[kCsPrev], *h_prev = in[kHPrev];
    for (int64_t t = 0; t < steps; ++t) {
      const LstmStep<float> step = out.states() + t * cell.state();
      LstmForward(ctx.threads(), cell, in.weights(), in[kX] + t * cell.batch * cell.inputs, cs_prev,
                  h_prev, joined_inputs.mutable_data<float>(), gate_sums.mutable_data<float>(),
                  step);
      cs_prev = step.cs;
      h_prev = step.h;
    }
    return OkStatus();
  }

 private:
  LstmCell attrs_;
};

// Scratch memory for backpropagation through one step.
struct Scratch {
  Tensor joined, d_joined, d_gates, d_w, d_cs, d_h;

  static StatusOr<Scratch> Make(KernelContext& ctx, const LstmCell& cell) {
    Scratch s;
    const auto make = [&](Dims dims) { return ctx.Temporary(DType::kFloat, Shape(dims)); };
    ASSIGN_OR_RETURN(s.joined, make({cell.batch, cell.joined()}));
    ASSIGN_OR_RETURN(s.d_joined, make({cell.batch, cell.joined()}));
    ASSIGN_OR_RETURN(s.d_gates, make({cell.batch, 4 * cell.cells}));
    ASSIGN_OR_RETURN(s.d_w, make({cell.joined(), 4 * cell.cells}));
    ASSIGN_OR_RETURN(s.d_cs, make({cell.batch, cell.cells}));
    ASSIGN_OR_RETURN(s.d_h, make({cell.batch, cell.cells}));
    return s;
  }
};

// Backpropagation through the steps, from the last one to the first.
template <bool kForgetGateSecond>
class BlockLstmGradKernel final : public Kernel {
  enum { kI = kFirstState, kCs, kF, kO, kCi, kCo, kH, kCsGrad, kHGrad, kEnd };
  enum Outputs { kDx, kDCsPrev, kDHPrev, kDw, kDWci, kDWcf, kDWco, kDb };

 public:
  Status Init(const KernelInit& node) override {
    attrs_.forget_gate_second = kForgetGateSecond;
    return ReadLstmAttrs(node, &attrs_);
  }

  Status Compute(KernelContext& ctx) override {
    LstmCell cell = attrs_;
    RETURN_IF_ERROR(CheckLstmInputs(ctx, kXInput, true, &cell));
    const int64_t time = ctx.input(kXInput + kX).dim(0);
    ASSIGN_OR_RETURN(const int64_t steps, StepsInput(ctx, time));
    ASSIGN_OR_RETURN(const Shape states, Shape::Make(Dims{time, cell.batch, cell.cells}));
    const char* const names[] = {"i", "cs", "f", "o", "ci", "co", "h", "cs_grad", "h_grad"};
    for (int i = kI; i < kEnd; ++i) {
      RETURN_IF_ERROR(RequireShape(ctx.input(kXInput + i), names[i - kI], states));
    }
    FloatOutputs out;  // each has the shape of the input whose gradient it is
    for (int i = 0; i < ctx.num_outputs(); ++i) {
      RETURN_IF_ERROR(out.Add(ctx, ctx.input(kXInput + i).shape()));
    }
    ASSIGN_OR_RETURN(Scratch scratch, Scratch::Make(ctx, cell));
    const FloatInputs in(ctx, kXInput);
    for (int64_t t = steps - 1; t >= 0; --t)
      BackwardStep(ctx.threads(), cell, in, t, &scratch, out);
    return OkStatus();
  }

 private:
  // Goes back through step t. Outputs cs_prev_grad and h_prev_grad hold the gradients from step t +
  // 1, and get those of the state before step t.
  static void BackwardStep(Scheduler& threads, const LstmCell& cell, const FloatInputs& in,
                           int64_t t, Scratch* scratch, FloatOutputs& out) {
    const int64_t at = t * cell.state();
    const float* cs_prev = t == 0 ? in[kCsPrev] : in[kCs] + at - cell.state();
    const float* h_prev = t == 0 ? in[kHPrev] : in[kH] + at - cell.state();
    float *d_cs = scratch->d_cs.mutable_data<float>(), *d_h = scratch->d_h.mutable_data<float>();
    for (int64_t i = 0; i < cell.state(); ++i) {
      d_cs[i] = in[kCsGrad][at + i] + out[kDCsPrev][i];
      d_h[i] = in[kHGrad][at + i] + out[kDHPrev][i];
    }
    const LstmStep<const float> states = {in[kI],  in[kCs], in[kF], in[kO],
                                          in[kCi], in[kCo], in[kH]};
    float* d_gates = scratch->d_gates.mutable_data<float>();
    LstmBackward(threads, cell, in.weights(), cs_prev, states + at, d_cs, d_h, d_gates,
                 out[kDCsPrev], {out[kDWci], out[kDWcf], out[kDWco]});
    ProductGradients(threads, cell, in, t, h_prev, scratch, out);
  }

  // Computes the gradients of x, h_prev, w and b from those of the gates.
  static void ProductGradients(Scheduler& threads, const LstmCell& cell, const FloatInputs& in,
                               int64_t t, const float* h_prev, Scratch* scratch,
                               FloatOutputs& out) {
    const int64_t gates = 4 * cell.cells, joined = cell.joined(), row_x = t * cell.batch;
    const float* d_gates = scratch->d_gates.data<float>();
    float* d_joined = scratch->d_joined.mutable_data<float>();
    Multiply(threads, {.m = cell.batch, .n = joined, .k = gates, .b = Side::kTransposed}, d_gates,
             in[kW], d_joined);
    for (int64_t row = 0; row < cell.batch; ++row) {
      const float* from = d_joined + row * joined;
      std::copy_n(from, cell.inputs, out[kDx] + (row_x + row) * cell.inputs);
      std::copy_n(from + cell.inputs, cell.cells, out[kDHPrev] + row * cell.cells);
      for (int64_t i = 0; i < gates; ++i) out[kDb][i] += d_gates[row * gates + i];
    }
    float* joined_inputs = scratch->joined.mutable_data<float>();
    JoinInputs(cell, in[kX] + row_x * cell.inputs, h_prev, joined_inputs);
    float* d_w = scratch->d_w.mutable_data<float>();
    Multiply(threads, {.m = joined, .n = gates, .k = cell.batch, .a = Side::kTransposed},
             joined_inputs, d_gates, d_w);
    for (int64_t i = 0; i < joined * gates; ++i) out[kDw][i] += d_w[i];
  }

  LstmCell attrs_;
};

Status BlockShape(ShapeScope& s) { return LstmStateShapes(s, kXInput, true); }

Status BlockGradShape(ShapeScope& s) {
  for (int i = 0; i < s.num_outputs(); ++i) s.set_output(i, s.input(kXInput + i));
  return OkStatus();
}

// Returns the gradients that flow through outputs cs and h. Other outputs exist only for the
// gradient op.
std::vector<Gradient> BlockGradient(const GradientScope& g, const char* op) {
  std::vector<NodeInput> inputs;
  for (int i = 0; i < g.num_inputs(); ++i) inputs.push_back(g.x(i));
  for (int i = 0; i < g.num_outputs(); ++i) inputs.push_back(g.y(i));
  inputs.push_back(g.dy(1));
  inputs.push_back(g.dy(6));
  std::vector<Gradient> gradients = {Gradient()};
  for (const Output& d : CallN(op, inputs, {{"use_peephole", g.attr<bool>("use_peephole")}})) {
    gradients.push_back(d);
  }
  gradients.resize(g.num_inputs());
  return gradients;
}

const std::vector<ExampleTensor> kState = {{{2, 3}}}, kPeephole = {{{3}}};

// Returns example inputs: 3 steps, batch 2, 2 inputs, 3 cells.
std::vector<std::vector<ExampleTensor>> BlockInputs() {
  return {{{{}, {3}}}, {{{3, 2, 2}}}, kState,    kState,  {{{5, 12}}},
          kPeephole,   kPeephole,     kPeephole, {{{12}}}};
}

OpDef BlockOp(const char* doc, std::vector<AttrDef> attrs, GradientFn gradient) {
  std::vector<ArgDef> inputs = LstmInputArgs();
  inputs.insert(inputs.begin(), {"seq_len_max", "int64"});
  return {
      .doc = doc,
      .inputs = inputs,
      .outputs = LstmStateArgs(true),
      .types = {{"T", {DType::kHalf, DType::kFloat}}},
      .attrs = std::move(attrs),
      .shape = BlockShape,
      .gradient = std::move(gradient),
      .examples = {{.inputs = BlockInputs(), .check_gradient = false},
                   {.inputs = BlockInputs(),
                    .attrs = {{"use_peephole", true}, {"cell_clip", 0.5f}},
                    .check_gradient = false}},
      .flops = [](const FlopsScope& s) { return RowsTimesWeights(s, kXInput + kX, kXInput + kW); },
  };
}

OpDef BlockGradOp(const char* doc) {
  std::vector<ArgDef> inputs = LstmInputArgs();
  inputs.insert(inputs.begin(), {"seq_len_max", "int64"});
  for (const ArgDef& arg : LstmStateArgs(true)) inputs.push_back(arg);
  inputs.push_back({"cs_grad", "T"});
  inputs.push_back({"h_grad", "T"});
  std::vector<std::vector<ExampleTensor>> example = BlockInputs();
  example.insert(example.end(), 9, {{{3, 2, 3}}});
  std::vector<ArgDef> outputs;
  for (const ArgDef& arg : LstmInputArgs()) outputs.push_back({arg.name + "_grad", "T"});
  return {
      .doc = doc,
      .inputs = inputs,
      .outputs = outputs,
      .types = {{"T", {DType::kHalf, DType::kFloat}}},
      .attrs = {{"use_peephole", Bools()}},
      .shape = BlockGradShape,
      .examples = {{.inputs = example, .attrs = {{"use_peephole", true}}},
                   {.inputs = example, .attrs = {{"use_peephole", false}}}},
      .flops =
          [](const FlopsScope& s) { return 2 * RowsTimesWeights(s, kXInput + kX, kXInput + kW); },
  };
}

}  // namespace

OP(BlockLSTM) {
  return BlockOp(
      "Runs LSTMBlockCell on the first seq_len_max steps of x [time, batch, inputs], one after the "
      "other. The outputs of later steps are zero.",
      {{"forget_bias", 1.0f}, {"cell_clip", 3.0f}, {"use_peephole", false}},
      [](const GradientScope& g) { return BlockGradient(g, "BlockLSTMGrad"); });
}
KERNEL_ANY_TYPE(BlockLSTM, BlockLstmKernel<false>);

OP(BlockLSTMV2) {
  return BlockOp(
      "The same as BlockLSTM, without forget_bias. The columns of w and b are those of "
      "the input gate, the forget gate, the candidate and the output gate, in this "
      "order.",
      {{"cell_clip", 0.0f}, {"use_peephole", false}},
      [](const GradientScope& g) { return BlockGradient(g, "BlockLSTMGradV2"); });
}
KERNEL_ANY_TYPE(BlockLSTMV2, BlockLstmKernel<true>);

OP(BlockLSTMGrad) { return BlockGradOp("The gradient of BlockLSTM for all its inputs."); }
KERNEL_ANY_TYPE(BlockLSTMGrad, BlockLstmGradKernel<false>);

OP(BlockLSTMGradV2) { return BlockGradOp("The gradient of BlockLSTMV2 for all its inputs."); }
KERNEL_ANY_TYPE(BlockLSTMGradV2, BlockLstmGradKernel<true>);

}  // namespace penstock

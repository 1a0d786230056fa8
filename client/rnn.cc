// SPDX-License-Identifier: Apache-2.0
#include "client/rnn.h"

#include <utility>

#include "client/control_flow.h"
#include "client/ops/line_scope.h"
#include "client/tensor_array.h"
#include "core/op/gradient.h"

namespace penstock::client {
namespace {

Output Int(GraphSink& graph, int32_t value) {
  return Constant(graph, Tensor::Scalar<int32_t>(value));
}
Output Ints(GraphSink& graph, const std::vector<int32_t>& values) {
  return Constant(graph, Tensor::Vector<int32_t>(values));
}

Output DimOf(Output x, int32_t dim) {
  const PartialShape& shape = x.shape();
  if (shape.known_rank() && dim < shape.rank() && shape.dim(dim) >= 0 &&
      shape.dim(dim) == static_cast<int32_t>(shape.dim(dim))) {
    return Int(*x.sink, static_cast<int32_t>(shape.dim(dim)));
  }
  return Gather(ShapeOf(x), Int(*x.sink, dim), Int(*x.sink, 0));
}

// Returns [x, h] w + b.
Output Affine(Output x, Output h, Output kernel, Output bias) {
  const Output both = ConcatV2({x, h}, Int(*x.sink, 1));
  return Call("BiasAdd", {MatMul(both, kernel), bias});
}

Outputs SplitColumns(Output x, int64_t parts) {
  return CallN("Split", {Int(*x.sink, 1), x}, {{"num_split", parts}});
}

VariableOptions Weights(const RnnCellOptions& options) { return {.dtype = options.dtype}; }

int64_t SeedOf(const RnnCellOptions& options, int64_t more) {
  return options.seed == 0 ? 0 : options.seed + more;
}

}  // namespace

LstmCell::LstmCell(Program& program, const std::string& name, int64_t inputs, int64_t units,
                   const RnnCellOptions& options, SourceLine line)
    : units_(units),
      forget_bias_(options.forget_bias),
      line_(line),
      kernel_(program, name + "/kernel", {inputs + units, 4 * units}, GlorotUniform(options.seed),
              Weights(options), line_),
      bias_(program, name + "/bias", {4 * units}, Zeros(), Weights(options), line_) {}

RnnFunction LstmCell::Read() const {
  const Output kernel = kernel_.Read(), bias = bias_.Read();
  return
      [=, forget_bias = forget_bias_, line = line_](Output input, const Outputs& state) -> RnnStep {
        const CallerLine source(input, line);
        const Output c = state[0], h = state[1];
        const Outputs gates = SplitColumns(Affine(input, h, kernel, bias), 4);
        const Output keep = Sigmoid(gates[2] + forget_bias), let_in = Sigmoid(gates[0]);
        const Output next_c = c * keep + let_in * Tanh(gates[1]);
        const Output next_h = Tanh(next_c) * Sigmoid(gates[3]);
        return {next_h, {next_c, next_h}};
      };
}

GruCell::GruCell(Program& program, const std::string& name, int64_t inputs, int64_t units,
                 const RnnCellOptions& options, SourceLine line)
    : units_(units),
      line_(line),
      gates_kernel_(program, name + "/gates/kernel", {inputs + units, 2 * units},
                    GlorotUniform(options.seed), Weights(options), line_),
      gates_bias_(program, name + "/gates/bias", {2 * units}, Ones(), Weights(options), line_),
      candidate_kernel_(program, name + "/candidate/kernel", {inputs + units, units},
                        GlorotUniform(SeedOf(options, 1)), Weights(options), line_),
      candidate_bias_(program, name + "/candidate/bias", {units}, Zeros(), Weights(options),
                      line_) {}

RnnFunction GruCell::Read() const {
  const Output gates_kernel = gates_kernel_.Read(), gates_bias = gates_bias_.Read();
  const Output kernel = candidate_kernel_.Read(), bias = candidate_bias_.Read();
  return [=, line = line_](Output input, const Outputs& state) -> RnnStep {
    const CallerLine source(input, line);
    const Output h = state[0];
    const Outputs gates = SplitColumns(Sigmoid(Affine(input, h, gates_kernel, gates_bias)), 2);
    const Output reset = gates[0], update = gates[1];
    const Output candidate = Tanh(Affine(input, reset * h, kernel, bias));
    const Output next = update * h + (1 - update) * candidate;
    return {next, {next}};
  };
}

BasicRnnCell::BasicRnnCell(Program& program, const std::string& name, int64_t inputs, int64_t units,
                           const RnnCellOptions& options, SourceLine line)
    : units_(units),
      line_(line),
      kernel_(program, name + "/kernel", {inputs + units, units}, GlorotUniform(options.seed),
              Weights(options), line_),
      bias_(program, name + "/bias", {units}, Zeros(), Weights(options), line_) {}

RnnFunction BasicRnnCell::Read() const {
  const Output kernel = kernel_.Read(), bias = bias_.Read();
  return [=, line = line_](Output input, const Outputs& state) -> RnnStep {
    const CallerLine source(input, line);
    const Output next = Tanh(Affine(input, state[0], kernel, bias));
    return {next, {next}};
  };
}

StackedCell::StackedCell(std::vector<std::shared_ptr<const RnnCell>> cells)
    : cells_(std::move(cells)) {
  CHECK(!cells_.empty(), "a stack of no cells");
}

RnnFunction StackedCell::Read() const {
  struct Layer {
    RnnFunction function;
    size_t state_size;
  };
  std::vector<Layer> layers;
  for (const auto& cell : cells_) layers.push_back({cell->Read(), cell->state_sizes().size()});
  return [layers](Output input, const Outputs& state) -> RnnStep {
    RnnStep step{.output = input};
    auto begin = state.begin();
    for (const Layer& layer : layers) {
      const RnnStep each = layer.function(step.output, Outputs(begin, begin + layer.state_size));
      step.output = each.output;
      step.state.insert(step.state.end(), each.state.begin(), each.state.end());
      begin += layer.state_size;
    }
    return step;
  };
}

std::vector<int64_t> StackedCell::state_sizes() const {
  std::vector<int64_t> sizes;
  for (const auto& cell : cells_) {
    for (const int64_t size : cell->state_sizes()) sizes.push_back(size);
  }
  return sizes;
}

Outputs ZeroState(Program& program, const RnnCell& cell, Output batch, SourceLine line) {
  const CallerLine source(program, line);
  Outputs state;
  for (const int64_t size : cell.state_sizes()) {
    const Output dims = Pack({batch, Int(program, static_cast<int32_t>(size))});
    const Output zeros = Fill(dims, Cast(Constant(program, Tensor::Scalar(0.0)), cell.dtype()));
    // If the number of rows is unknown, the reshape tells shape inference the number of columns.
    state.push_back(batch.constant() != nullptr
                        ? zeros
                        : Reshape(zeros, Ints(program, {-1, static_cast<int32_t>(size)})));
  }
  return state;
}

namespace {

// Builds one DynamicRnn; all tensors in this class are time-major.
class Unrolling {
 public:
  // `function`: the result of cell.Read().
  Unrolling(Program& program, const RnnCell& cell, RnnFunction function, Output inputs,
            const DynamicRnnOptions& options, SourceLine line)
      : program_(program),
        options_(options),
        line_(line),
        function_(std::move(function)),
        lengths_(options.lengths.valid() ? Cast(options.lengths, DType::kInt32) : Output()),
        time_(DimOf(inputs, 0)),
        inputs_(TensorArray::Unstack(program, inputs)),
        outputs_(program, time_, cell.dtype(),
                 {.element_shape = PartialShape({RowsOf(inputs), cell.output_size()})}) {
    state_ = options.initial_state.empty() ? ZeroState(program, cell, DimOf(inputs, 1))
                                           : options.initial_state;
  }

  RnnOutputs Run() {
    Output steps;
    Outputs variables = state_;
    variables.push_back(outputs_.flow());
    {
      const CallerLine source(program_, line_);
      steps = Steps();
      variables.push_back(Int(program_, 0));
    }
    const Outputs last = While(
        program_, variables,
        [&](const Outputs& v) {
          const CallerLine source(program_, line_);
          return Less(v.back(), steps);
        },
        [&](const Outputs& v) { return Body(v); },
        {.parallel_iterations = options_.parallel_iterations,
         .swap_memory = options_.swap_memory,
         .name = "while"},
        line_);
    const CallerLine source(program_, line_);
    const size_t n = state_.size();
    return {.outputs = Padded(outputs_.At(last[n]), steps),
            .state = Outputs(last.begin(), last.begin() + n)};
  }

 private:
  static int64_t RowsOf(Output inputs) {
    const PartialShape shape = inputs.shape();
    return shape.known_rank() && shape.rank() > 1 ? shape.dim(1) : PartialShape::kUnknown;
  }

  // Returns the length of the longest row, but at most the number of time steps of the input.
  Output Steps() const {
    if (!lengths_.valid()) return time_;
    const Output zero = Int(program_, 0);
    const Output longest = Call("Max", {lengths_, zero}, {{"keep_dims", false}});
    return Minimum(time_, Maximum(longest, zero));
  }

  Outputs Body(const Outputs& v) const {
    const size_t n = state_.size();
    const Output now = v.back();
    const Outputs before(v.begin(), v.begin() + n);
    const Output input = inputs_.Read(now, line_);
    RnnStep step;
    {
      const FallbackLine fallback(line_);  // for cells without a known line
      step = function_(input, before);
    }
    const CallerLine source(program_, line_);
    if (lengths_.valid()) {
      const Output goes_on = Less(now, lengths_);
      step.output = Select(goes_on, step.output, ZerosLike(step.output));
      for (size_t i = 0; i < n; ++i) step.state[i] = Select(goes_on, step.state[i], before[i]);
    }
    Outputs next = step.state;
    next.push_back(outputs_.At(v[n]).Write(now, step.output).flow());
    next.push_back(now + 1);
    return next;
  }

  // Returns the outputs of all time steps, with zeros for the time steps after the longest row.
  Output Padded(const TensorArray& outputs, Output steps) const {
    if (!lengths_.valid()) return outputs.Stack();
    const Output zero = Int(program_, 0), one = Int(program_, 1);
    const Output computed = outputs.Gather(Range(zero, steps, one));
    const Output none = Ints(program_, {0, 0});
    const Output paddings = Pack({Pack({zero, time_ - steps}), none, none});
    return Call("Pad", {computed, paddings});
  }

  Program& program_;
  const DynamicRnnOptions& options_;
  const SourceLine line_;
  const RnnFunction function_;
  const Output lengths_;
  const Output time_;
  const TensorArray inputs_, outputs_;
  Outputs state_;
};

Output SwapTimeAndBatch(Output x) {
  const int rank = x.shape().rank();
  std::vector<int32_t> order = {1, 0};
  for (int i = 2; i < rank; ++i) order.push_back(i);
  return Transpose(x, Ints(*x.sink, order));
}

}  // namespace

RnnOutputs DynamicRnn(Program& program, const RnnCell& cell, Output inputs,
                      const DynamicRnnOptions& options, SourceLine line) {
  const size_t n = cell.state_sizes().size();
  const Output failed{&program, -1, 0};
  if (!program.status().ok()) return {failed, Outputs(n, failed)};
  const auto scope = program.NameScope(options.name);
  std::optional<CallerLine> source(std::in_place, program, line);
  if (inputs.shape().rank() != 3) {
    program.Fail(InvalidArgument("rnn '", options.name, "': inputs must be [batch, time, n], are ",
                                 inputs.shape().ToString()));
  } else if (!options.initial_state.empty() && options.initial_state.size() != n) {
    program.Fail(InvalidArgument("rnn '", options.name, "': the cell's state has ", n,
                                 " tensors, initial_state ", options.initial_state.size()));
  }
  if (!program.status().ok()) return {failed, Outputs(n, failed)};
  const Output by_time = options.time_major ? inputs : SwapTimeAndBatch(inputs);
  source.reset();  // the cell's nodes have lines of their own
  RnnFunction function = cell.Read();
  source.emplace(program, line);
  Unrolling unrolling(program, cell, std::move(function), by_time, options, line);
  source.reset();
  RnnOutputs result = unrolling.Run();
  if (!options.time_major && program.status().ok()) {
    source.emplace(program, line);
    result.outputs = SwapTimeAndBatch(result.outputs);
  }
  return result;
}

}  // namespace penstock::client

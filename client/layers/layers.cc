// SPDX-License-Identifier: Apache-2.0
#include "client/layers/layers.h"

#include "client/ops/line_scope.h"
#include "core/op/gradient.h"

namespace penstock::client::layers {
namespace {

Output Ints(GraphSink& sink, const std::vector<int32_t>& values) {
  return Constant(sink, Tensor::Vector<int32_t>(values));
}

Output Activate(Output x, const std::string& activation) {
  return activation.empty() ? x : Call(activation, {x});
}

std::optional<Variable> Bias(Program& program, const std::string& name, int64_t units, bool wanted,
                             SourceLine line, DType dtype = DType::kFloat) {
  if (!wanted) return std::nullopt;
  return Variable(program, name + "/bias", Shape({units}), Zeros(), {.dtype = dtype}, line);
}

// Returns the name scope of the nodes that a call adds.
std::string ScopeOf(const std::string& name) { return name + "/"; }

}  // namespace

Dense::Dense(Program& program, const std::string& name, int64_t inputs, int64_t units,
             const DenseOptions& options, SourceLine line)
    : options_(options),
      scope_(ScopeOf(program.name_scope() + name)),
      units_(units),
      kernel_(program, name + "/kernel", {inputs, units}, options.kernel, {.dtype = options.dtype},
              line),
      bias_(Bias(program, name, units, options.bias, line, options.dtype)) {}

Output Dense::operator()(const LocatedOutput& located) const {
  const Output x = located.output();
  const CallerLine source(kernel_.program(), located.line());
  const auto scope = kernel_.program().NameScope(scope_);
  if (!x.valid()) return x;
  GraphSink& sink = *x.sink;
  const bool matrix = x.shape().known_rank() && x.shape().rank() == 2;
  const auto inputs = static_cast<int32_t>(kernel_.shape().dim(0));
  Output y = MatMul(matrix ? x : Reshape(x, Ints(sink, {-1, inputs})), kernel_);
  if (bias_) y = Call("BiasAdd", {y, *bias_});
  y = Activate(y, options_.activation);
  if (matrix) return y;
  const Output shape = ShapeOf(x);
  const Output outer =
      Call("Slice", {shape, Ints(sink, {0}),
                     ExpandDims(RankOf(x) - 1, Constant(sink, Tensor::Scalar<int32_t>(0)))});
  return Reshape(y, ConcatV2({outer, Ints(sink, {static_cast<int32_t>(units_)})},
                             Constant(sink, Tensor::Scalar<int32_t>(0))));
}

Embedding::Embedding(Program& program, const std::string& name, int64_t rows, int64_t units,
                     const PartitionedVariableOptions& options, const Initializer& initializer,
                     SourceLine line)
    : table_(program, name + "/embeddings", {rows, units}, initializer, options, line) {}

Output Dropout(const LocatedOutput& located, double rate, int64_t seed) {
  const Output x = located.output();
  const CallerLine source(located);
  if (!x.valid()) return x;
  if (!(rate >= 0 && rate < 1)) {
    x.sink->Fail(InvalidArgument("Dropout: rate=", rate, ", expected 0 <= rate < 1"));
    return {x.sink, -1, 0};
  }
  const Output random =
      Call("RandomUniform", {ShapeOf(x)}, {{"dtype", x.dtype()}, {"seed", seed}, {"seed2", 0}});
  const Output kept = Cast(GreaterEqual(random, ConstantLike(random, rate)), x.dtype());
  return x * kept * (1 / (1 - rate));
}

Conv::Conv(Program& program, const std::string& name, int64_t inputs, int64_t units, int64_t size,
           const ConvOptions& options, SourceLine line)
    : options_(options),
      scope_(ScopeOf(program.name_scope() + name)),
      kernel_(program, name + "/kernel", {size, size, inputs, units}, options.kernel, {}, line),
      bias_(Bias(program, name, units, options.bias, line)) {}

Output Conv::operator()(const LocatedOutput& located) const {
  const Output x = located.output();
  const CallerLine source(kernel_.program(), located.line());
  const auto scope = kernel_.program().NameScope(scope_);
  const std::vector<int64_t> strides = {1, options_.stride, options_.stride, 1};
  Output y = Call("Conv2D", {x, kernel_}, {{"strides", strides}, {"padding", options_.padding}});
  if (bias_) y = Call("BiasAdd", {y, *bias_});
  return Activate(y, options_.activation);
}

BatchNorm::BatchNorm(Program& program, const std::string& name, int64_t channels,
                     const BatchNormOptions& options, SourceLine line)
    : options_(options),
      scope_(ScopeOf(program.name_scope() + name)),
      channels_(channels),
      gamma_(program, name + "/gamma", {channels}, Ones(), {}, line),
      beta_(program, name + "/beta", {channels}, Zeros(), {}, line),
      mean_(program, name + "/moving_mean", {channels}, Zeros(), {.trainable = false}, line),
      variance_(program, name + "/moving_variance", {channels}, Ones(), {.trainable = false},
                line) {}

// Returns the op's outputs: the normalised values, and the mean and variance that the op has used.
Outputs BatchNorm::Normalize(Output x, bool training) const {
  GraphSink& sink = gamma_.program();
  const Output pictures = Reshape(x, Ints(sink, {-1, 1, 1, static_cast<int32_t>(channels_)}));
  const Output none = Constant(sink, Tensor::Of<float>({0}, {}));
  Outputs outputs = CallN(
      "FusedBatchNormV3",
      {pictures, gamma_, beta_, training ? none : mean_.Read(), training ? none : variance_.Read()},
      {{"epsilon", static_cast<float>(options_.epsilon)}, {"is_training", training}});
  outputs[0] = Reshape(outputs[0], ShapeOf(x));
  return outputs;
}

BatchNorm::Training BatchNorm::ForTraining(const LocatedOutput& located) const {
  const Output x = located.output();
  const CallerLine source(gamma_.program(), located.line());
  const auto scope = gamma_.program().NameScope(scope_);
  const Outputs normalized = Normalize(x, true);
  const auto moved = [&](const Variable& moving, Output batch) {
    return moving.AssignSub((moving - batch) * (1 - options_.momentum));
  };
  return {normalized[0], {moved(mean_, normalized[1]), moved(variance_, normalized[2])}};
}

Output BatchNorm::operator()(const LocatedOutput& located) const {
  const Output x = located.output();
  const CallerLine source(gamma_.program(), located.line());
  const auto scope = gamma_.program().NameScope(scope_);
  return Normalize(x, false)[0];
}

LayerNorm::LayerNorm(Program& program, const std::string& name, int64_t units, double epsilon,
                     DType dtype, SourceLine line)
    : epsilon_(epsilon),
      scope_(ScopeOf(program.name_scope() + name)),
      gamma_(program, name + "/gamma", {units}, Ones(), {.dtype = dtype}, line),
      beta_(program, name + "/beta", {units}, Zeros(), {.dtype = dtype}, line) {}

Output LayerNorm::operator()(const LocatedOutput& located) const {
  const Output x = located.output();
  Program& program = gamma_.program();
  const CallerLine source(program, located.line());
  const auto scope = program.NameScope(scope_);
  const Output last = Ints(program, {-1});
  const Output centered = x - Mean(x, last, true);
  const Output variance = Mean(Square(centered), last, true);
  return centered * Rsqrt(variance + epsilon_) * gamma_ + beta_;
}

}  // namespace penstock::client::layers

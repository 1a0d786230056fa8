// SPDX-License-Identifier: Apache-2.0
#include "client/examples/language_model_net.h"

#include <cmath>
#include <utility>
#include <vector>

#include "client/control_flow.h"
#include "client/tensor_array.h"
#include "core/op/gradient.h"

namespace penstock::examples {
namespace {

using client::TensorArray;
using client::Variable;

constexpr int64_t kCharacters = 256;

Output Int(GraphSink& graph, int32_t value) {
  return Constant(graph, Tensor::Scalar<int32_t>(value));
}
Output Ints(GraphSink& graph, const std::vector<int32_t>& values) {
  return Constant(graph, Tensor::Vector<int32_t>(values));
}

std::unique_ptr<client::RnnCell> MakeCell(client::Program& program, const LanguageModelSize& size) {
  std::vector<std::shared_ptr<const client::RnnCell>> layers;
  int64_t inputs = size.embedding;
  for (int64_t i = 0; i < size.layers; ++i) {
    const std::string name = StrCat("layer", i);
    const client::RnnCellOptions options = {.seed = size.seed + 10 * i};
    if (size.cell == "gru") {
      layers.push_back(
          std::make_shared<client::GruCell>(program, name, inputs, size.units, options));
    } else {
      layers.push_back(
          std::make_shared<client::LstmCell>(program, name, inputs, size.units, options));
    }
    inputs = size.units;
  }
  return std::make_unique<client::StackedCell>(std::move(layers));
}

}  // namespace

LanguageModel::LanguageModel(client::Program& program, const LanguageModelSize& size)
    : program_(program),
      cell_(MakeCell(program, size)),
      embedding_(std::make_unique<Variable>(program, "embedding",
                                            Shape{kCharacters, size.embedding},
                                            client::RandomUniform(-0.1, 0.1, size.seed + 1))),
      weights_(std::make_unique<Variable>(program, "softmax/weights",
                                          Shape{size.units, kCharacters},
                                          client::GlorotUniform(size.seed + 2))),
      biases_(std::make_unique<Variable>(program, "softmax/biases", Shape{kCharacters},
                                         client::Zeros())) {}

Output LanguageModel::Embed(Output characters, Output table) const {
  return Gather(table, Cast(characters, DType::kInt32), Int(program_, 0));
}

Output LanguageModel::Bits(Output inputs, Output targets, Output lengths) const {
  const client::RnnOutputs rnn =
      DynamicRnn(program_, *cell_, Embed(inputs, *embedding_), {.lengths = lengths});
  const auto units = static_cast<int32_t>(cell_->output_size());
  const Output states = Reshape(rnn.outputs, Ints(program_, {-1, units}));
  const Output logits = Call("BiasAdd", {MatMul(states, *weights_), *biases_});
  const Output labels = Reshape(Cast(targets, DType::kInt32), Ints(program_, {-1}));
  const Output nats = CallN("SparseSoftmaxCrossEntropyWithLogits", {logits, labels})[0];
  // The weights: 1 up to and including the zero that ends the text, 0 after it.
  const Output time = Gather(ShapeOf(inputs), Int(program_, 1), Int(program_, 0));
  const Output places = Range(Int(program_, 0), time, Int(program_, 1));
  const Output within = Cast(Less(places, ExpandDims(lengths, Int(program_, 1))), DType::kFloat);
  const Output weights = Reshape(within, Ints(program_, {-1}));
  return Sum(nats * weights, Int(program_, 0)) / (Sum(weights, Int(program_, 0)) * std::log(2.0));
}

Output LanguageModel::Compose(int32_t length_max, double temperature) const {
  const client::RnnFunction step = cell_->Read();
  const Output table = *embedding_, weights = *weights_, biases = *biases_;
  const TensorArray text(program_, Int(program_, 0), DType::kUint8,
                         {.element_shape = PartialShape::Scalar(), .dynamic_size = true});
  // Loop variables: the previous character, the number of characters, the text so far, the state.
  Outputs variables = {Int(program_, 0), Int(program_, 0), text.flow()};
  for (const Output& state : ZeroState(program_, *cell_, Int(program_, 1))) {
    variables.push_back(state);
  }
  const auto goes_on = [&](const Outputs& v) {
    const Output ended = LogicalAnd(Equal(v[0], Int(program_, 0)), Greater(v[1], Int(program_, 0)));
    return LogicalAnd(Less(v[1], Int(program_, length_max)), LogicalNot(ended));
  };
  const Outputs last = While(program_, variables, goes_on, [&](const Outputs& v) {
    const Output input = ExpandDims(Embed(v[0], table), Int(program_, 0));
    const client::RnnStep next = step(input, Outputs(v.begin() + 3, v.end()));
    const Output logits = Call("BiasAdd", {MatMul(next.output, weights), biases}) / temperature;
    const Output drawn =
        Call("Multinomial", {logits, Int(program_, 1)}, {{"output_dtype", DType::kInt32}});
    const Output character = Reshape(drawn, Constant(program_, Tensor(DType::kInt32, {0})));
    Outputs after = {character, v[1] + 1,
                     text.At(v[2]).Write(v[1], Cast(character, DType::kUint8)).flow()};
    after.insert(after.end(), next.state.begin(), next.state.end());
    return after;
  });
  return text.At(last[2]).Stack();
}

}  // namespace penstock::examples

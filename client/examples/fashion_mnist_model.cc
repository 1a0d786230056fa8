// SPDX-License-Identifier: Apache-2.0
#include "client/examples/fashion_mnist_model.h"

#include <memory>
#include <vector>

#include "client/embedding/partitioned_variable.h"
#include "client/initializers.h"
#include "client/variable.h"
#include "core/op/gradient.h"

namespace penstock::examples {
namespace {

using client::GlorotUniform;
using client::HeNormal;
using client::Initializer;
using client::PartitionedVariable;
using client::Program;
using client::Variable;
using client::Zeros;

constexpr int64_t kPixels = 28 * 28;
constexpr int64_t kClasses = 10;
// Matrices with fewer numbers (256 KiB of floats) are not partitioned.
constexpr int64_t kPartitionedNumbers = 64 << 10;

Output Ints(GraphSink& sink, const std::vector<int32_t>& values) {
  return Constant(sink, Tensor::Vector<int32_t>(values));
}

Output Relu(Output x) { return Call("Relu", {x}); }

// Converts bytes to floats between 0 and 1, in the given shape.
Output Pixels(Output images, const std::vector<int32_t>& shape) {
  return Reshape(Cast(images, DType::kFloat) / 255, Ints(*images.sink, shape));
}

// Makes the variable of a matrix [in, out]. A large one is spread over all parameter servers,
// because a plain variable would be on a single server.
PartitionedVariable Matrix(Program& program, const std::string& name, int64_t in, int64_t out,
                           const Initializer& weights, int ps_tasks) {
  if (ps_tasks > 1 && in * out >= kPartitionedNumbers) {
    return PartitionedVariable(program, name, {in, out}, weights, {.parts = ps_tasks});
  }
  return Variable(program, name, {in, out}, weights);
}

struct Dense {
  Dense(Program& program, const std::string& name, int64_t in, int64_t out,
        const Initializer& weights, int ps_tasks)
      : w(Matrix(program, name + "/weights", in, out, weights, ps_tasks)),
        b(program, name + "/biases", {out}, Zeros()) {}
  Output operator()(Output x) const { return Call("BiasAdd", {MatMul(x, w), b}); }
  PartitionedVariable w;
  Variable b;
};

// A layer of 3x3 filters, relu and 2x2 max pooling.
struct Conv {
  Conv(Program& program, const std::string& name, int64_t in, int64_t out, int64_t seed)
      : w(program, name + "/filters", {3, 3, in, out}, HeNormal(seed)),
        b(program, name + "/biases", {out}, Zeros()) {}
  Output operator()(Output x) const {
    const std::vector<int64_t> one = {1, 1, 1, 1}, two = {1, 2, 2, 1};
    const Output y = Call("Conv2D", {x, w}, {{"strides", one}, {"padding", "SAME"}});
    return Call("MaxPool", {Relu(Call("BiasAdd", {y, b}))},
                {{"ksize", two}, {"strides", two}, {"padding", "VALID"}});
  }
  Variable w, b;
};

struct Mlp {
  Mlp(Program& program, int64_t seed, int ps_tasks)
      : hidden1(program, "hidden1", kPixels, 512, HeNormal(seed), ps_tasks),
        hidden2(program, "hidden2", 512, 512, HeNormal(seed + 1), ps_tasks),
        logits(program, "logits", 512, kClasses, GlorotUniform(seed + 2), ps_tasks) {}
  Output operator()(Output images) const {
    return logits(Relu(hidden2(Relu(hidden1(Pixels(images, {-1, kPixels}))))));
  }
  Dense hidden1, hidden2, logits;
};

struct Convnet {
  static constexpr int64_t kFlat = 7 * 7 * 32;
  Convnet(Program& program, int64_t seed, int ps_tasks)
      : conv1(program, "conv1", 1, 16, seed),
        conv2(program, "conv2", 16, 32, seed + 1),
        hidden(program, "hidden", kFlat, 128, HeNormal(seed + 2), ps_tasks),
        logits(program, "logits", 128, kClasses, GlorotUniform(seed + 3), ps_tasks) {}
  Output operator()(Output images) const {
    const Output maps = conv2(conv1(Pixels(images, {-1, 28, 28, 1})));
    return logits(Relu(hidden(Reshape(maps, Ints(*maps.sink, {-1, kFlat})))));
  }
  Conv conv1, conv2;
  Dense hidden, logits;
};

}  // namespace

StatusOr<Model> MakeModel(Program& program, const std::string& name, int64_t seed, int ps_tasks) {
  if (name == "mlp") return Model(Mlp(program, seed, ps_tasks));
  if (name == "convnet") return Model(Convnet(program, seed, ps_tasks));
  return InvalidArgument("--model=", name, ": expected mlp or convnet");
}

Measures Measure(Output logits, Output labels) {
  const Output classes = Cast(labels, DType::kInt64);
  const Outputs entropy = CallN("SparseSoftmaxCrossEntropyWithLogits", {logits, classes});
  const Output batch = Ints(*logits.sink, {0});
  const Output guess = Call("ArgMax", {logits, Constant(*logits.sink, Tensor::Scalar<int32_t>(1))},
                            {{"output_type", DType::kInt64}});
  return {.loss = Mean(entropy[0], batch),
          .accuracy = Mean(Cast(Equal(guess, classes), DType::kFloat), batch)};
}

}  // namespace penstock::examples

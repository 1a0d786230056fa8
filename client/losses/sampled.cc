// SPDX-License-Identifier: Apache-2.0
#include "client/losses/sampled.h"

#include "client/embedding/lookup.h"
#include "client/losses/losses.h"
#include "client/ops/line_scope.h"
#include "core/op/gradient.h"

namespace penstock::client {
namespace {

Output Vector(GraphSink& sink, const std::vector<int32_t>& values) {
  return Constant(sink, Tensor::Vector<int32_t>(values));
}
Output Scalar(GraphSink& sink, int32_t value) { return Constant(sink, Tensor::Scalar(value)); }

// Returns the number of labels per example; -1 if an argument is invalid.
int64_t LabelsOf(Program& program, const ClassTable& table, Output labels) {
  const PartialShape shape = labels.shape();
  if (labels.dtype() == DType::kInt64 && shape.known_rank() && shape.rank() == 2 &&
      shape.dim(1) >= 1 && table.weights.shape().known_rank() &&
      table.weights.shape().dim(0) >= 1) {
    return shape.dim(1);
  }
  program.Fail(InvalidArgument("sampled loss: labels '", labels.name(), "' of shape ",
                               shape.ToString(), " and weights of shape ",
                               table.weights.shape().ToString(),
                               ", expected int64[batch, labels] and known numbers of labels and of "
                               "classes"));
  return -1;
}

Candidates Draw(const ClassTable& table, Output labels, int64_t count,
                const SampledOptions& options) {
  if (options.candidates.classes.valid()) return options.candidates;
  const char* const op =
      options.log_uniform ? "LogUniformCandidateSampler" : "UniformCandidateSampler";
  const Outputs drawn = CallN(op, {labels},
                              {{"num_true", count},
                               {"num_sampled", options.sampled},
                               {"unique", true},
                               {"range_max", table.weights.shape().dim(0)},
                               {"seed", options.seed}});
  return {drawn[0], drawn[1], drawn[2]};
}

// Returns `size` rows of `x` from row `begin` on; -1: all following rows.
Output Rows(Output x, Output begin, Output size, int rank) {
  GraphSink& sink = *x.sink;
  const Output zero = Scalar(sink, 0);
  Outputs begins = {begin}, sizes = {size};
  for (int d = 1; d < rank; ++d) {
    begins.push_back(zero);
    sizes.push_back(Scalar(sink, -1));
  }
  return Call("Slice", {x, Pack(begins), Pack(sizes)});
}

// Subtracts a large number from the logits of sampled classes that are labels of the example, so
// that these classes do not contribute to the loss.
Output MaskAccidentalHits(Output logits, Output labels, Output drawn, int64_t count) {
  const Outputs hits = CallN("ComputeAccidentalHits", {labels, drawn}, {{"num_true", count}});
  const Output places = Pack({Cast(hits[0], DType::kInt64), hits[1]}, 1);
  const Output much = Cast(hits[2], logits.dtype());
  const Output shape = ShapeOf(logits, DType::kInt64);
  return logits + Call("ScatterNd", {places, much, shape});
}

struct Logits {
  Output logits, labels;  // [batch, labels + sampled]; labels: 1 / n each, then zeros
};

Logits SampledLogits(const ClassTable& table, const LocatedOutput& located, Output inputs,
                     const SampledOptions& options) {
  const Output labels = located.output();
  Program& program = table.weights.program();
  const int64_t count = LabelsOf(program, table, labels);
  if (count < 0) return {{&program, -1, 0}, {&program, -1, 0}};
  const Candidates drawn = Draw(table, labels, count, options);
  const Output zero = Scalar(program, 0), rest = Scalar(program, -1);
  const Output flat = Reshape(labels, Vector(program, {-1}));
  const Output classes = StopGradient(ConcatV2({flat, drawn.classes}, zero));
  const Output weights = EmbeddingLookup(table.weights, classes);
  const Output biases = EmbeddingLookup(table.biases, classes);
  const Output number = SizeOf(flat);

  // The weights of the true classes, [batch, labels, units], and of the sampled ones, [sampled,
  // units].
  const Output true_rows = Rows(weights, zero, number, 2);
  const Output units = Gather(ShapeOf(inputs), Scalar(program, 1), zero);
  const Output by_example =
      Reshape(true_rows, Pack({rest, Scalar(program, static_cast<int32_t>(count)), units}));
  const Output true_products =
      Sum(by_example * ExpandDims(inputs, Scalar(program, 1)), Scalar(program, 2));
  const Output true_biases = Reshape(Rows(biases, zero, number, 1), ShapeOf(labels));
  const DType dtype = inputs.dtype();
  const Output true_logits =
      true_products + true_biases - Log(Cast(StopGradient(drawn.true_expected), dtype));

  Output drawn_logits =
      MatMul(inputs, Rows(weights, number, rest, 2), false, true) + Rows(biases, number, rest, 1);
  if (options.remove_accidental_hits) {
    drawn_logits = MaskAccidentalHits(drawn_logits, labels, drawn.classes, count);
  }
  drawn_logits = drawn_logits - Log(Cast(StopGradient(drawn.expected), dtype));
  const Output one = Scalar(program, 1);
  return {
      ConcatV2({true_logits, drawn_logits}, one),
      ConcatV2({OnesLike(true_logits) / static_cast<double>(count), ZerosLike(drawn_logits)}, one)};
}

}  // namespace

Output SampledSoftmax(const ClassTable& table, const LocatedOutput& labels, Output inputs,
                      const SampledOptions& options) {
  const auto scope = table.weights.program().NameScope("sampled_softmax");
  const CallerLine source(table.weights.program(), labels.line());
  const Logits l = SampledLogits(table, labels, inputs, options);
  return SoftmaxCrossEntropy(StopGradient(l.labels), l.logits, {.reduction = Reduction::kNone});
}

Output NoiseContrastive(const ClassTable& table, const LocatedOutput& labels, Output inputs,
                        const SampledOptions& options) {
  const auto scope = table.weights.program().NameScope("noise_contrastive");
  const CallerLine source(table.weights.program(), labels.line());
  const Logits l = SampledLogits(table, labels, inputs, options);
  const Output losses =
      SigmoidCrossEntropy(StopGradient(l.labels), l.logits, {.reduction = Reduction::kNone});
  return Sum(losses, Scalar(table.weights.program(), 1));
}

}  // namespace penstock::client

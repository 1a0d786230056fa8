// SPDX-License-Identifier: Apache-2.0
#include "client/metrics/metrics.h"

#include "core/op/gradient.h"

namespace penstock::client {
namespace {

Output Flat(Output x) { return Reshape(x, Constant(*x.sink, Tensor::Vector<int32_t>({-1}))); }
Output SumOfAll(Output x) { return Sum(Flat(x), Constant(*x.sink, Tensor::Scalar<int32_t>(0))); }
Output AsDouble(Output x) { return Cast(x, DType::kDouble); }
Output Positive(Output x) { return Greater(x, ConstantLike(x, 0)); }

// Sums over the stream, float64: counts are exact up to 2^53.
class Totals {
 public:
  Totals(Program& program, const std::string& name, const Shape& shape)
      : value_(program, name, shape, Zeros(), {.dtype = DType::kDouble, .local = true}) {}
  Output Add(Output batch) const { return value_.AssignAdd(batch); }
  Output Read() const { return value_.Read(); }
  Output reset() const { return value_.initializer(); }

 private:
  const Variable value_;
};

// value = numerator / denominator.
Metric Ratio(Program& program, const std::string& name, Output numerator, Output denominator) {
  const auto scope = program.NameScope(name);
  const Totals total(program, "total", {}), count(program, "count", {});
  return {.value = total.Read() / count.Read(),
          .update = program.Group({total.Add(numerator), count.Add(denominator)}, "update"),
          .reset = program.Group({total.reset(), count.reset()}, "reset")};
}

// The share of `all` that is in `some` too; both are bool, of one shape.
Metric Share(Program& program, const std::string& name, Output some, Output all) {
  return Ratio(program, name, SumOfAll(AsDouble(LogicalAnd(some, all))), SumOfAll(AsDouble(all)));
}

}  // namespace

Metric MeanOf(Program& program, const std::string& name, Output values, Output weights) {
  if (!values.valid()) return {values, values, values};
  if (!weights.valid()) {
    return Ratio(program, name, SumOfAll(AsDouble(values)), AsDouble(SizeOf(values)));
  }
  return Ratio(program, name, SumOfAll(AsDouble(values) * AsDouble(weights)),
               SumOfAll(AsDouble(weights)));
}

Metric Accuracy(Program& program, const std::string& name, Output labels, Output predictions) {
  return MeanOf(program, name, AsDouble(Equal(Cast(labels, predictions.dtype()), predictions)));
}

Metric Precision(Program& program, const std::string& name, Output labels, Output scores,
                 double threshold) {
  return Share(program, name, Positive(labels), Greater(scores, ConstantLike(scores, threshold)));
}

Metric Recall(Program& program, const std::string& name, Output labels, Output scores,
              double threshold) {
  return Share(program, name, Greater(scores, ConstantLike(scores, threshold)), Positive(labels));
}

Metric Auc(Program& program, const std::string& name, Output labels, Output scores, int buckets) {
  const auto scope = program.NameScope(name);
  if (buckets < 2) {
    program.Fail(InvalidArgument("metric '", name, "': buckets=", buckets, ", expected 2 or more"));
    return {{&program, -1, 0}, {&program, -1, 0}, {&program, -1, 0}};
  }
  // A histogram of the scores for each kind of label.
  const Output last = ConstantLike(scores, buckets - 1);
  const Output bucket =
      Minimum(Maximum(Call("Floor", {scores * buckets}), ConstantLike(scores, 0)), last);
  const Output places = Flat(Cast(bucket, DType::kInt32));
  const Output positive = Flat(AsDouble(Positive(labels)));
  const Output size = Constant(program, Tensor::Scalar<int32_t>(buckets));
  const Totals hits(program, "positives", {buckets}), misses(program, "negatives", {buckets});
  const auto histogram = [&](Output x) { return Call("UnsortedSegmentSum", {x, places, size}); };
  const Output up = hits.Add(histogram(positive)), down = misses.Add(histogram(1 - positive));

  const Output p = hits.Read(), n = misses.Read();
  const Output zero = Constant(program, Tensor::Scalar<int32_t>(0));
  // Each negative example beside the positive ones with higher scores, and half of its bucket's.
  const Output above = Call("Cumsum", {p, zero}, {{"exclusive", true}, {"reverse", true}});
  const Output won = Sum(n * (above + p * 0.5), zero);
  return {.value = won / (Sum(p, zero) * Sum(n, zero)),
          .update = program.Group({up, down}, "update"),
          .reset = program.Group({hits.reset(), misses.reset()}, "reset")};
}

}  // namespace penstock::client

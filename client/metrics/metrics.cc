// SPDX-License-Identifier: Apache-2.0
#include "client/metrics/metrics.h"

#include "client/ops/line_scope.h"
#include "core/op/gradient.h"

namespace penstock::client {
namespace {

Output Flat(Output x) { return Reshape(x, Constant(*x.sink, Tensor::Vector<int32_t>({-1}))); }
Output SumOfAll(Output x) { return Sum(Flat(x), Constant(*x.sink, Tensor::Scalar<int32_t>(0))); }
Output AsDouble(Output x) { return Cast(x, DType::kDouble); }
Output IsPositive(Output x) { return Greater(x, ConstantLike(x, 0)); }

// Sums over all batches since the reset, in float64: counts are exact up to 2^53.
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

// Returns a metric whose value is the sum of the numerators divided by the sum of the denominators.
Metric Ratio(Program& program, const std::string& name, Output numerator, Output denominator) {
  const auto scope = program.NameScope(name);
  const Totals total(program, "total", {}), count(program, "count", {});
  return {.value = total.Read() / count.Read(),
          .update = program.Group({total.Add(numerator), count.Add(denominator)}, "update"),
          .reset = program.Group({total.reset(), count.reset()}, "reset")};
}

// The number of examples with a score in each bucket, separately for labels above 0 and for other
// labels.
struct Histograms {
  Output positives, negatives;
};
Histograms CountByBucket(Output labels, Output places, Output size) {
  const Output positive = Flat(AsDouble(IsPositive(labels)));
  const auto count = [&](Output x) { return Call("UnsortedSegmentSum", {x, places, size}); };
  return {count(positive), count(1 - positive)};
}

// Returns the area under the ROC curve for counts in buckets ordered by score.
Output AreaOf(const Histograms& count, bool ascending) {
  const auto& [p, n] = count;
  const Output zero = Constant(*p.sink, Tensor::Scalar<int32_t>(0));
  // For each negative example, counts the positive ones with higher scores, and half of those in
  // its bucket.
  const Output above = Call("Cumsum", {p, zero}, {{"exclusive", true}, {"reverse", ascending}});
  return Sum(n * (above + p * 0.5), zero) / (Sum(p, zero) * Sum(n, zero));
}

// Returns a metric: the fraction of the elements that are true in `all` that are also true in
// `some`. Both are bool tensors of one shape.
Metric Share(Program& program, const std::string& name, Output some, Output all) {
  return Ratio(program, name, SumOfAll(AsDouble(LogicalAnd(some, all))), SumOfAll(AsDouble(all)));
}

}  // namespace

Metric MeanOf(Program& program, const std::string& name, const LocatedOutput& located,
              Output weights) {
  const Output values = located.output();
  const CallerLine source(program, located.line());
  if (!values.valid()) return {values, values, values};
  if (!weights.valid()) {
    return Ratio(program, name, SumOfAll(AsDouble(values)), AsDouble(SizeOf(values)));
  }
  return Ratio(program, name, SumOfAll(AsDouble(values) * AsDouble(weights)),
               SumOfAll(AsDouble(weights)));
}

Metric Accuracy(Program& program, const std::string& name, const LocatedOutput& located,
                Output predictions) {
  const Output labels = located.output();
  const CallerLine source(program, located.line());
  const Output equal = Equal(Cast(labels, predictions.dtype()), predictions);
  return MeanOf(program, name, AsDouble(equal));
}

Metric Precision(Program& program, const std::string& name, const LocatedOutput& located,
                 Output scores, double threshold) {
  const Output labels = located.output();
  const CallerLine source(program, located.line());
  return Share(program, name, IsPositive(labels), Greater(scores, ConstantLike(scores, threshold)));
}

Metric Recall(Program& program, const std::string& name, const LocatedOutput& located,
              Output scores, double threshold) {
  const Output labels = located.output();
  const CallerLine source(program, located.line());
  return Share(program, name, Greater(scores, ConstantLike(scores, threshold)), IsPositive(labels));
}

Metric Auc(Program& program, const std::string& name, const LocatedOutput& located, Output scores,
           int buckets) {
  const Output labels = located.output();
  const CallerLine source(program, located.line());
  const auto scope = program.NameScope(name);
  if (buckets < 2) {
    program.Fail(InvalidArgument("metric '", name, "': buckets=", buckets, ", expected 2 or more"));
    return {{&program, -1, 0}, {&program, -1, 0}, {&program, -1, 0}};
  }
  // One histogram of the scores for labels above 0, and one for other labels.
  const Output last = ConstantLike(scores, buckets - 1);
  const Output bucket =
      Minimum(Maximum(Call("Floor", {scores * buckets}), ConstantLike(scores, 0)), last);
  const Output places = Flat(Cast(bucket, DType::kInt32));
  const Output size = Constant(program, Tensor::Scalar<int32_t>(buckets));
  const Totals hits(program, "positives", {buckets}), misses(program, "negatives", {buckets});
  const Histograms batch = CountByBucket(labels, places, size);
  const Output up = hits.Add(batch.positives), down = misses.Add(batch.negatives);
  return {.value = AreaOf({hits.Read(), misses.Read()}, true),
          .update = program.Group({up, down}, "update"),
          .reset = program.Group({hits.reset(), misses.reset()}, "reset")};
}

Output ExactAuc(const LocatedOutput& located, Output scores) {
  const Output labels = located.output();
  const CallerLine source(located);
  if (!labels.valid() || !scores.valid()) return labels.valid() ? scores : labels;
  const Outputs sorted = CallN("TopKV2", {Flat(scores), SizeOf(scores)});
  // One bucket for each distinct score, the highest first.
  const Outputs distinct = CallN("Unique", {sorted[0]}, {{"out_idx", DType::kInt32}});
  const Output in_order =
      Gather(Flat(labels), sorted[1], Constant(*scores.sink, Tensor::Scalar<int32_t>(0)));
  return AreaOf(CountByBucket(in_order, distinct[1], SizeOf(distinct[0])), false);
}

}  // namespace penstock::client

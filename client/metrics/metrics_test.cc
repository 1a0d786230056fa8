// SPDX-License-Identifier: Apache-2.0
//
// Tests metrics over several batches against the definition computed over all examples at once.
#include "client/metrics/metrics.h"

#include <cmath>
#include <random>

#include "client/session.h"
#include "core/op/gradient.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using testing::HasSubstr;

struct Examples {
  std::vector<float> labels, scores;
};

Examples Random(int count, int seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(0, 1);
  Examples examples;
  for (int i = 0; i < count; ++i) {
    const float score = uniform(random);
    examples.scores.push_back(score);
    examples.labels.push_back(uniform(random) < 0.2 + 0.5 * score ? 1 : 0);
  }
  return examples;
}

// Computes the area under the ROC curve by comparing all pairs of a positive and a negative
// example.
double AucOf(const Examples& e) {
  double won = 0, pairs = 0;
  for (size_t i = 0; i < e.labels.size(); ++i) {
    for (size_t j = 0; j < e.labels.size(); ++j) {
      if (e.labels[i] == 0 || e.labels[j] == 1) continue;
      ++pairs;
      won += e.scores[i] > e.scores[j] ? 1 : e.scores[i] == e.scores[j] ? 0.5 : 0;
    }
  }
  return won / pairs;
}

class MetricsTest : public testing::Test {
 protected:
  Output Floats(const char* name) {
    return CallIn(program, "Placeholder", {},
                  {{"dtype", DType::kFloat}, {"shape", PartialShape({-1})}}, name);
  }
  void Start() {
    auto made = Session::New(program);
    ASSERT_TRUE(made.ok()) << made.status();
    session = *std::move(made);
  }
  void Update(const Metric& metric, const Examples& e) {
    const auto size = static_cast<int64_t>(e.labels.size());
    const Status status =
        session->Execute(metric.update, {{labels, Tensor::Of<float>({size}, e.labels)},
                                         {scores, Tensor::Of<float>({size}, e.scores)}});
    ASSERT_TRUE(status.ok()) << status;
  }
  double Value(const Metric& metric) {
    const auto value = session->Fetch(metric.value);
    EXPECT_TRUE(value.ok()) << value.status();
    return value->scalar<double>();
  }

  double Exact(Output auc, const Examples& e) {
    const auto size = static_cast<int64_t>(e.labels.size());
    const auto value = session->Fetch(auc, {{labels, Tensor::Of<float>({size}, e.labels)},
                                            {scores, Tensor::Of<float>({size}, e.scores)}});
    EXPECT_TRUE(value.ok()) << value.status();
    return value->scalar<double>();
  }

  Program program;
  Output labels = Floats("labels"), scores = Floats("scores");
  std::unique_ptr<Session> session;
};

TEST_F(MetricsTest, CountOverAllBatches) {
  const Output high = Cast(Greater(scores, ConstantLike(scores, 0.5)), DType::kFloat);
  const std::vector<Metric> metrics = {
      MeanOf(program, "mean", scores), MeanOf(program, "weighted", scores, labels),
      Accuracy(program, "accuracy", labels, high), Precision(program, "precision", labels, scores),
      Recall(program, "recall", labels, scores, 0.7)};
  Start();
  for (const int seed : {1, 2}) {  // the second round starts after a reset
    Examples all;
    for (const Metric& metric : metrics) ASSERT_TRUE(session->Execute(metric.reset).ok());
    for (const int count : {40, 1, 25}) {
      const Examples batch = Random(count, seed * 100 + count);
      for (const Metric& metric : metrics) Update(metric, batch);
      all.labels.insert(all.labels.end(), batch.labels.begin(), batch.labels.end());
      all.scores.insert(all.scores.end(), batch.scores.begin(), batch.scores.end());
    }
    double sum = 0, hits = 0, sum_of_hits = 0, equal = 0, above = 0, both = 0, recalled = 0;
    for (size_t i = 0; i < all.labels.size(); ++i) {
      const double label = all.labels[i], score = all.scores[i];
      sum += score;
      hits += label;
      sum_of_hits += label * score;
      equal += (score > 0.5) == (label > 0);
      above += score > 0.5;
      both += score > 0.5 && label > 0;
      recalled += score > 0.7f && label > 0;
    }
    EXPECT_NEAR(Value(metrics[0]), sum / 66, 1e-9);
    EXPECT_NEAR(Value(metrics[1]), sum_of_hits / hits, 1e-9);
    EXPECT_NEAR(Value(metrics[2]), equal / 66, 1e-9);
    EXPECT_NEAR(Value(metrics[3]), both / above, 1e-9);
    EXPECT_NEAR(Value(metrics[4]), recalled / hits, 1e-9);
  }
}

TEST_F(MetricsTest, AucIsTheShareOfPairsInOrder) {
  const Metric fine = Auc(program, "fine", labels, scores, 1'000'000);
  const Metric coarse = Auc(program, "coarse", labels, scores, 100);
  Start();
  ASSERT_TRUE(session->Execute(fine.reset).ok() && session->Execute(coarse.reset).ok());
  EXPECT_TRUE(std::isnan(Value(fine))) << "no example yet";
  Examples all = Random(300, 3);
  all.scores[0] = 0;
  all.scores[1] = 1;  // at the end of the last bucket
  all.scores[2] = all.scores[3] = 0.4F;
  all.labels[2] = 0;
  all.labels[3] = 1;
  for (int begin = 0; begin < 300; begin += 100) {
    const Examples batch{{all.labels.begin() + begin, all.labels.begin() + begin + 100},
                         {all.scores.begin() + begin, all.scores.begin() + begin + 100}};
    Update(fine, batch);
    Update(coarse, batch);
  }
  EXPECT_NEAR(Value(fine), AucOf(all), 1e-4);
  EXPECT_NEAR(Value(coarse), AucOf(all), 5e-3);
  EXPECT_NE(Value(coarse), Value(fine));
}

// Results of other libraries: the example of sklearn's roc_auc_score, and TensorFlow 2.21's
// tf.keras.metrics.AUC(num_thresholds=1001).
TEST_F(MetricsTest, AucIsThatOfOtherLibraries) {
  Examples many;
  for (int i = 0; i < 200; ++i) {
    many.scores.push_back(static_cast<float>(i * 37 % 101) / 100);
    many.labels.push_back((i * i + 3 * i) % 7 < 3 && i % 3 != 0 ? 1 : 0);
  }
  const Metric by_buckets = Auc(program, "auc", labels, scores);
  const Output exact = ExactAuc(labels, scores);
  Start();
  const std::pair<Examples, double> cases[] = {{{{0, 0, 1, 1}, {0.1F, 0.4F, 0.35F, 0.8F}}, 0.75},
                                               {many, 0.5056855}};
  for (const auto& [examples, expected] : cases) {
    ASSERT_TRUE(session->Execute(by_buckets.reset).ok());
    Update(by_buckets, examples);
    EXPECT_NEAR(Value(by_buckets), expected, 1e-6);
    EXPECT_NEAR(Exact(exact, examples), expected, 1e-6);
  }
}

TEST_F(MetricsTest, ExactAucTakesScoresOfAnyRange) {
  const Output exact = ExactAuc(labels, scores);
  Start();
  Examples all = Random(300, 4);
  for (float& score : all.scores)
    score = std::round(20 * score) * 1e6F - 1e7F;  // with equal scores
  EXPECT_NEAR(Exact(exact, all), AucOf(all), 1e-12);
  EXPECT_TRUE(std::isnan(Exact(exact, {{1, 1}, {0.5, 0.6}}))) << "no negative example";
}

TEST_F(MetricsTest, StateIsTheWorkersOwn) {
  Auc(program, "auc", labels, scores);
  EXPECT_TRUE(program.globals().empty());
  EXPECT_EQ(program.locals().size(), 2u);
}

TEST_F(MetricsTest, AucNeedsBuckets) {
  Auc(program, "auc", labels, scores, 1);
  EXPECT_THAT(std::string(program.status().message()), HasSubstr("metric 'auc': buckets=1"));
}

}  // namespace
}  // namespace penstock::client

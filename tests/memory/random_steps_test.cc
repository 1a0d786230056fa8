// SPDX-License-Identifier: Apache-2.0
//
// Tests that random graphs have the same results, bit for bit, with and without a memory limit, and
// take no more memory than predicted, on one thread and on several.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <random>

#include "core/graph/builder.h"
#include "core/op/gradient.h"
#include "gtest/gtest.h"
#include "tests/memory/one_device.h"

namespace penstock {
namespace {

constexpr int64_t kRows = 128, kColumns = 128;  // 64 KiB: whole pages
constexpr int kNodes = 60;
constexpr int kThreads = 4;

// A graph of nodes of several kinds, whose inputs are random earlier nodes. The result combines the
// last value and a random third of the others.
struct RandomStep {
  explicit RandomStep(uint32_t seed) : random(seed) {
    Tensor first(DType::kFloat, Shape({kRows, kColumns}));
    for (float& x : first.mutable_flat<float>()) x = static_cast<float>(random() % 1000) / 500 - 1;
    feed = {CallIn(g, "Placeholder", {},
                   {{"dtype", DType::kFloat}, {"shape", PartialShape({kRows, kColumns})}}),
            first};
    values.push_back(*feed.output);
    while (static_cast<int>(values.size()) < kNodes) values.push_back(Next());
    // Later nodes use early values again, so these have to be kept.
    Output sum = values.back();
    for (size_t i = values.size() - 1; i-- > 0;) {
      if (random() % 3 == 0) sum = Tanh(Mul(sum, values[i]));
    }
    result = sum;
    CHECK_OK(g.status());
  }
  Output Any() { return values[random() % values.size()]; }
  Output Recent() {
    return values[values.size() - 1 - random() % std::min<size_t>(values.size(), 4)];
  }
  Output Next() {
    switch (random() % 7) {
      case 0:
        return Tanh(Recent());
      case 1:
        return Call("Sub", {Recent(), Any()});
      case 2:
        return Mul(Recent(), Any());
      case 3:
        return MatMul(Recent(), Tanh(Any())) * 0.01f;
      case 4:
        return Call("Relu", {Recent()});
      case 5:
        return Reshape(Call("Sigmoid", {Recent()}),
                       Constant(g, Tensor::Vector<int32_t>({kRows, kColumns})));
      default:
        return Call("Identity", {Any()});
    }
  }
  static Output Mul(Output a, Output b) { return Call("Mul", {a, b}); }

  struct Fed {
    std::optional<Output> output;
    Tensor value;
  };
  std::mt19937 random;
  GraphBuilder g;
  std::vector<Output> values;
  Fed feed;
  Output result;
};

StatusOr<OneDevice::Ran> RunStep(const RandomStep& step, int64_t limit, int num_threads = 1) {
  return OneDevice(num_threads)
      .Run(
          step.g.graph(),
          {.feeds = {{step.feed.output->name(), step.feed.value}}, .fetches = {step.result.name()}},
          limit);
}

TEST(RandomStepsTest, ALimitChangesNoResult) {
  int fitted = 0, recomputed = 0, swapped = 0;
  for (uint32_t seed = 1; seed <= 15; ++seed) {
    SCOPED_TRACE(seed);
    const RandomStep step(seed);
    const auto free = RunStep(step, 0);
    ASSERT_TRUE(free.ok()) << free.status();
    // The last bits of a product may depend on the number of threads.
    const auto free_threaded = RunStep(step, 0, kThreads);
    ASSERT_TRUE(free_threaded.ok()) << free_threaded.status();
    const double peak = free->predicted.devices.at(0).peak_bytes;
    // Without a limit the order depends on the kernels' times, so the peak may differ by a few
    // tensors.
    EXPECT_NEAR(peak, static_cast<double>(free->peak_bytes), 4 * kRows * kColumns * sizeof(float));
    for (const double part : {0.8, 0.5, 0.3}) {
      const auto limit = static_cast<int64_t>(part * peak);
      const auto limited = RunStep(step, limit);
      if (!limited.ok()) {
        EXPECT_EQ(limited.status().code(), StatusCode::kResourceExhausted) << limited.status();
        continue;
      }
      ++fitted;
      recomputed += limited->predicted.num_recomputed;
      swapped += limited->predicted.num_swapped;
      const Tensor &a = free->fetched[0], &b = limited->fetched[0];
      EXPECT_EQ(std::memcmp(a.raw_data(), b.raw_data(), a.bytes()), 0);
      EXPECT_LE(limited->peak_bytes, limit);
      const double predicted = limited->predicted.devices[0].peak_bytes;
      EXPECT_NEAR(static_cast<double>(limited->peak_bytes), predicted, 0.1 * predicted);
      EXPECT_LE(limited->predicted.devices[0].worst_bytes, static_cast<double>(limit));
      // Several threads run nodes in other orders, and some at the same time.
      const auto threaded = RunStep(step, limit, kThreads);
      ASSERT_TRUE(threaded.ok()) << threaded.status();
      EXPECT_EQ(std::memcmp(free_threaded->fetched[0].raw_data(),
                            threaded->fetched[0].raw_data(), a.bytes()),
                0);
      EXPECT_LE(threaded->peak_bytes, limit);
    }
  }
  std::printf("%d of 45 fitted, %d nodes run again, %d tensors swapped\n", fitted, recomputed,
              swapped);
  EXPECT_GT(fitted, 20);
  EXPECT_GT(recomputed, 0);
  EXPECT_GT(swapped, 0);
}

}  // namespace
}  // namespace penstock

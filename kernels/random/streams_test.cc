// SPDX-License-Identifier: Apache-2.0
//
// Tests the streams of the random ops, number by number.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "core/base/env.h"
#include "core/base/thread_pool.h"
#include "kernels/random/fill_random.h"
#include "kernels/random/testing/draw.h"

namespace penstock {
namespace {

TEST(Streams, AgreeWithTensorFlow) {
  // The example in the documentation of tf.random.normal: the graph's seed is 5, the op's seed is
  // 1.
  const Tensor x = Draw("RandomStandardNormal", DType::kFloat, {2, 2}, 5, 1);
  const float expected[] = {-1.3768897f, -0.01258316f, -0.169515f, 1.0824056f};
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(x.data<float>()[i], expected[i], 1e-7) << i;
}

TEST(Streams, UniformNumbersAreMantissas) {
  Philox stream = Philox::FromSeeds(87, 12);
  const Tensor f = Draw("RandomUniform", DType::kFloat, {11});
  const Tensor d = Draw("RandomUniform", DType::kDouble, {11});
  const Tensor h = Draw("RandomUniform", DType::kHalf, {11});
  const Tensor b = Draw("RandomUniform", DType::kBfloat16, {11});
  for (int block = 0; block < 6; ++block) {
    const Philox::Block x = stream();
    for (int i = 0; i < 4 && block * 4 + i < 11; ++i) {
      const int at = block * 4 + i;
      EXPECT_EQ(f.data<float>()[at], std::ldexp(x[i] & 0x7fffff, -23));
      EXPECT_EQ(float(h.data<half>()[at]), std::ldexp(x[i] & 0x3ff, -10));
      EXPECT_EQ(float(b.data<bfloat16>()[at]), std::ldexp(x[i] & 0x7f, -7));
    }
    for (int i = 0; i < 2 && block * 2 + i < 11; ++i) {
      const double mantissa = std::ldexp(x[2 * i] & 0xfffff, 32) + x[2 * i + 1];
      EXPECT_EQ(d.data<double>()[block * 2 + i], std::ldexp(mantissa, -52));
    }
  }
}

TEST(Streams, ALongFillEndsWithItsStep) {
  ThreadPool threads("test", 2);
  std::vector<float> out(4'000'000, -1.0f);
  const StepContext late{.step_id = 7, .threads = &threads, .env = &Env::Real(), .deadline_ns = 1};
  const Status status =
      FillRandom(Philox::FromSeeds(1, 2), Uniform<float>(), out.data(), 4'000'000, late);
  EXPECT_EQ(status, DeadlineExceeded("step 7 did not end before its deadline"));
  EXPECT_EQ(out.back(), -1.0f) << "the last block was not begun";
}

TEST(Streams, RunsFollowEachOther) {
  for (const char* op : {"RandomUniform", "RandomStandardNormal", "TruncatedNormal"}) {
    RepeatedOp node(op, With(Seeds(5, 6), "dtype", DType::kFloat), {Ints({10})});
    const Tensor first = node.Run(), second = node.Run();
    EXPECT_TRUE(SameTensor(first, Draw(op, DType::kFloat, {10}, 5, 6)));
    EXPECT_FALSE(SameTensor(first, second));
    RepeatedOp again(op, With(Seeds(5, 6), "dtype", DType::kFloat), {Ints({10})});
    again.Run();
    EXPECT_TRUE(SameTensor(again.Run(), second)) << "the same seeds, the same sequence of steps";
  }
}

TEST(Streams, ARunSkipsAsMuchAsTensorFlowDoes) {
  RepeatedOp node("RandomUniform", With(Seeds(5, 6), "dtype", DType::kFloat), {Ints({10})});
  node.Run();
  const Tensor second = node.Run();
  Philox stream = Philox::FromSeeds(5, 6);
  stream.Skip(10 * 256);
  EXPECT_EQ(second.data<float>()[0], UnitFloat(stream()[0]));
}

TEST(Streams, WithoutSeedsDiffer) {
  const auto draw = [] {
    return OpRunner("RandomUniform").In(Ints({8})).Attr("dtype", DType::kFloat).Run1();
  };
  EXPECT_FALSE(SameTensor(*draw(), *draw()));
  RepeatedOp shuffle("RandomShuffle", {},
                     {Ints({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})});
  EXPECT_FALSE(SameTensor(shuffle.Run(), shuffle.Run()));
}

TEST(Stateless, V2AgreesWithTensorFlow) {
  const auto made = OpCall{"StatelessRandomGetKeyCounter", {Longs({5, 7})}}.Run();
  EXPECT_EQ(made[0].data<uint64_t>()[0], 7369946891771800164u);
  EXPECT_EQ(made[1].data<uint64_t>()[0], 0u);
  EXPECT_EQ(made[1].data<uint64_t>()[1], 12679354197552641790u);
  const auto draw = [&](const char* op, int count) {
    return OpCall{op, {Ints({count}), made[0], made[1], Tensor::Scalar<int32_t>(1)}};
  };
  const Tensor uniform = draw("StatelessRandomUniformV2", 3).Run1();
  EXPECT_TRUE(
      SameTensor(uniform, OpCall{"StatelessRandomUniform", {Ints({3}), Longs({5, 7})}}.Run1()));
  EXPECT_FLOAT_EQ(uniform.data<float>()[0], 0.12039494514465332f);
  OpCall more = draw("StatelessRandomUniformV2", 3);  // a longer counter than needed
  more.args[2] = Tensor::Vector<uint64_t>({0, 12679354197552641790u, 5});
  EXPECT_TRUE(SameTensor(more.Run1(), uniform));
  EXPECT_NEAR(draw("StatelessTruncatedNormalV2", 3).Run1().data<float>()[2], -0.62441009, 1e-6);
  OpCall whole = draw("StatelessRandomUniformIntV2", 4);
  whole.args.push_back(Tensor::Scalar<int32_t>(-3));
  whole.args.push_back(Tensor::Scalar<int32_t>(100));
  EXPECT_TRUE(SameTensor(whole.Run1(), Ints({66, -2, 5, 79})));
  OpCall other = draw("StatelessRandomNormalV2", 3);
  other.args[3] = Tensor::Scalar<int32_t>(2);
  other.ExpectError("alg is 2");
}

TEST(Streams, DoNotDependOnTheNumberOfThreads) {
  const auto check = [](const auto& distribution) {
    using T = typename std::decay_t<decltype(distribution)>::Result;
    std::vector<std::vector<T>> results;
    for (const int n : {1, 2, 7}) {
      ThreadPool threads("test", n);
      results.emplace_back(200003);
      const StepContext step{.threads = &threads};
      EXPECT_EQ(
          FillRandom(Philox::FromSeeds(1, 2), distribution, results.back().data(), 200003, step),
          OkStatus());
    }
    for (const auto& result : results) {
      EXPECT_EQ(std::memcmp(result.data(), results[0].data(), result.size() * sizeof(T)), 0);
    }
  };
  check(Uniform<float>());
  check(Uniform<double>());
  check(Normal<half>());
  check(Normal<double>());
  check(TruncatedNormal<float>());
  check(TruncatedNormal<double>());
  check(UniformInt<int32_t>(-5, 100));
  check(UniformInt<int64_t>(-5, 100));
}

TEST(RandomShuffle, KeepsEveryRow) {
  for (const DType dtype : kMovedTypes) {
    const Tensor x = Sample(dtype, {257, 3});
    const Tensor y = OpCall{"RandomShuffle", {x}, Seeds(1, 2)}.Run1();
    // Shuffles row indices with the same seeds, to find where each row went.
    Tensor rows(DType::kInt64, {257});
    for (int i = 0; i < 257; ++i) rows.mutable_data<int64_t>()[i] = i;
    const Tensor order = OpCall{"RandomShuffle", {rows}, Seeds(1, 2)}.Run1();
    const auto places = order.flat<int64_t>();
    EXPECT_EQ(std::set<int64_t>(places.begin(), places.end()).size(), 257);
    EXPECT_FALSE(SameTensor(order, rows));
    ExpectMoved(y, {257, 3}, x, [&](const Dims& at) { return Dims{places[at[0]], at[1]}; });
  }
  const Tensor one = Sample(DType::kFloat, {1, 5});
  EXPECT_TRUE((OpCall{"RandomShuffle", {one}}.Run1().SharesBufferWith(one)));
  EXPECT_EQ((OpCall{"RandomShuffle", {Tensor::Scalar<float>(3)}}.Run1().scalar<float>()), 3);
}

TEST(RandomShuffle, EveryOrderIsAsLikely) {
  RepeatedOp node("RandomShuffle", Seeds(11, 0), {Ints({0, 1, 2, 3})});
  std::map<std::vector<int32_t>, int> counts;
  for (int i = 0; i < 24000; ++i) {
    const Tensor y = node.Run();
    ++counts[{y.data<int32_t>(), y.data<int32_t>() + 4}];
  }
  EXPECT_EQ(counts.size(), 24);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, 1000, 5 * std::sqrt(1000.0));
}

TEST(Random, Mistakes) {
  const auto expect = [](const Tensor& shape, const char* words) {
    OpCall{"RandomUniform", {shape}, {{"dtype", DType::kFloat}}}.ExpectError(words);
  };
  expect(Ints({2, -3}), "negative dimension -3");
  expect(Tensor::Scalar<int32_t>(2), "shape must be a vector, has shape []");
  EXPECT_EQ(Draw("RandomUniform", DType::kFloat, {0, 3}).shape(), Shape({0, 3}));
  EXPECT_EQ(Draw("TruncatedNormal", DType::kDouble, {}).shape(), Shape());
}

}  // namespace
}  // namespace penstock

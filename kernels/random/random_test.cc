// SPDX-License-Identifier: Apache-2.0
//
// The random ops: their streams number by number, their distributions by bounds that a correct one
// breaks with a probability below 1e-6 (and, seeds being fixed, never).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "core/base/env.h"
#include "core/op/op_runner.h"
#include "kernels/array/op_check.h"
#include "kernels/random/fill_random.h"

namespace penstock {
namespace {

Attrs Seeds(int64_t seed, int64_t seed2) { return {{"seed", seed}, {"seed2", seed2}}; }
Attrs With(Attrs attrs, const char* name, AttrValue value) {
  attrs[name] = std::move(value);
  return attrs;
}
Tensor Draw(const char* op, DType dtype, std::vector<int64_t> shape, int64_t seed = 87,
            int64_t seed2 = 12) {
  return OpCall{op, {Longs(shape)}, With(Seeds(seed, seed2), "dtype", dtype)}.Run1();
}

// One kernel, run several times, as a graph that runs step after step.
class Node {
 public:
  Node(string_view op, Attrs attrs, std::vector<Tensor> inputs)
      : inputs_(std::move(inputs)), op_(**Registry::Global().GetOp(op)), attrs_(std::move(attrs)) {
    std::vector<std::vector<EdgeType>> args;
    for (const Tensor& input : inputs_) {
      args.push_back({{input.dtype()}});
      input_types_.push_back({input.dtype()});
    }
    CHECK_OK(InferAttrs(op_, args, std::vector<bool>(args.size()), &attrs_));
    CHECK_OK(CompleteAttrs(op_, &attrs_));
    for (const ArgDef& arg : op_.outputs) CHECK_OK(AppendArgTypes(arg, attrs_, &output_types_));
    auto kernel = Registry::Global().MakeKernel("CPU", {.name = name_,
                                                        .op = op_,
                                                        .attrs = attrs_,
                                                        .device = device_,
                                                        .input_types = input_types_,
                                                        .output_types = output_types_});
    CHECK_OK(kernel.status());
    kernel_ = *std::move(kernel);
  }
  Tensor Run() {
    std::vector<Tensor> inputs = inputs_, outputs(1);
    KernelContext ctx({.step = &step_,
                       .node_name = &name_,
                       .device_name = &device_,
                       .allocator = &CpuAllocator(),
                       .host_allocator = &CpuAllocator(),
                       .inputs = inputs.data(),
                       .outputs = outputs.data(),
                       .output_types = output_types_.data(),
                       .num_inputs = static_cast<int>(inputs.size()),
                       .num_outputs = 1});
    CHECK_OK(kernel_->Compute(ctx));
    return outputs[0];
  }

 private:
  std::vector<Tensor> inputs_;
  const std::string name_ = "node", device_ = "/job:localhost/replica:0/task:0/device:CPU:0";
  const OpDef& op_;
  Attrs attrs_;
  std::vector<EdgeType> input_types_, output_types_;
  std::unique_ptr<Kernel> kernel_;
  ThreadPool threads_{"test", 2};
  StepContext step_{.threads = &threads_, .env = &Env::Real()};
};

TEST(Streams, AgreeWithTensorFlow) {
  // The example in the documentation of tf.random.normal: global seed 5, seed 1.
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

TEST(Streams, RunsFollowEachOther) {
  for (const char* op : {"RandomUniform", "RandomStandardNormal", "TruncatedNormal"}) {
    Node node(op, With(Seeds(5, 6), "dtype", DType::kFloat), {Ints({10})});
    const Tensor first = node.Run(), second = node.Run();
    EXPECT_TRUE(SameTensor(first, Draw(op, DType::kFloat, {10}, 5, 6)));
    EXPECT_FALSE(SameTensor(first, second));
    Node again(op, With(Seeds(5, 6), "dtype", DType::kFloat), {Ints({10})});
    again.Run();
    EXPECT_TRUE(SameTensor(again.Run(), second)) << "the same seeds, the same sequence of steps";
  }
}

TEST(Streams, ARunSkipsAsMuchAsTensorFlowDoes) {
  Node node("RandomUniform", With(Seeds(5, 6), "dtype", DType::kFloat), {Ints({10})});
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
  Node shuffle("RandomShuffle", {},
               {Ints({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})});
  EXPECT_FALSE(SameTensor(shuffle.Run(), shuffle.Run()));
}

TEST(Streams, DoNotDependOnTheNumberOfThreads) {
  const auto check = [](const auto& distribution) {
    using T = typename std::decay_t<decltype(distribution)>::Result;
    std::vector<std::vector<T>> results;
    for (const int n : {1, 2, 7}) {
      ThreadPool threads("test", n);
      results.emplace_back(200003);
      FillRandom(Philox::FromSeeds(1, 2), distribution, results.back().data(), 200003, threads);
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

std::vector<double> Sorted(const Tensor& t) {
  std::vector<double> values(t.num_elements());
  for (size_t i = 0; i < values.size(); ++i) {
    switch (t.dtype()) {
      case DType::kHalf:
        values[i] = t.data<half>()[i];
        break;
      case DType::kBfloat16:
        values[i] = t.data<bfloat16>()[i];
        break;
      case DType::kFloat:
        values[i] = t.data<float>()[i];
        break;
      default:
        values[i] = t.data<double>()[i];
        break;
    }
  }
  std::sort(values.begin(), values.end());
  return values;
}

// Kolmogorov and Smirnov: the largest distance between the empirical and the exact distribution
// stays below 2.6 / sqrt(n) (two-sided p = 2e-6), and `grain`, a bound on the weight of one value
// of a type with few bits.
void ExpectDistribution(const Tensor& t, const std::function<double(double)>& cdf, double grain) {
  const std::vector<double> values = Sorted(t);
  const double n = static_cast<double>(values.size());
  double distance = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double exact = cdf(values[i]);
    distance = std::max({distance, std::abs(exact - i / n), std::abs((i + 1) / n - exact)});
  }
  EXPECT_LT(distance, 2.6 / std::sqrt(n) + grain) << Name(t.dtype());
}

double NormalCdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

const std::pair<DType, double> kTypes[] = {
    {DType::kFloat, 0}, {DType::kDouble, 0}, {DType::kHalf, 1e-3}, {DType::kBfloat16, 8e-3}};

TEST(Distributions, Uniform) {
  for (const auto& [dtype, grain] : kTypes) {
    const Tensor x = Draw("RandomUniform", dtype, {100, 1000});
    ExpectDistribution(
        x, [](double v) { return v; }, grain);
    const auto values = Sorted(x);
    EXPECT_GE(values.front(), 0);
    EXPECT_LT(values.back(), 1);
  }
}

TEST(Distributions, Normal) {
  for (const auto& [dtype, grain] : kTypes) {
    const Tensor x = Draw("RandomStandardNormal", dtype, {100, 1000});
    ExpectDistribution(x, NormalCdf, grain);
    double moments[5] = {};
    for (const double v : Sorted(x)) {
      for (int k = 1; k <= 4; ++k) moments[k] += std::pow(v, k) / 1e5;
    }
    // Five standard errors: 1, sqrt(2), sqrt(15), sqrt(96) over sqrt(n).
    EXPECT_NEAR(moments[1], 0, 5 * 1 / std::sqrt(1e5));
    EXPECT_NEAR(moments[2], 1, 5 * 1.42 / std::sqrt(1e5));
    EXPECT_NEAR(moments[3], 0, 5 * 3.88 / std::sqrt(1e5));
    EXPECT_NEAR(moments[4], 3, 5 * 9.8 / std::sqrt(1e5));
  }
}

TEST(Distributions, TruncatedNormal) {
  const double tail = NormalCdf(-2);
  for (const auto& [dtype, grain] : kTypes) {
    const Tensor x = Draw("TruncatedNormal", dtype, {100, 1000});
    ExpectDistribution(
        x, [&](double v) { return (NormalCdf(v) - tail) / (1 - 2 * tail); }, grain);
    const auto values = Sorted(x);
    EXPECT_GE(values.front(), -2);
    EXPECT_LE(values.back(), 2);
  }
}

TEST(Distributions, NeighboursAreIndependent) {
  const Tensor x = Draw("RandomStandardNormal", DType::kDouble, {100000});
  for (const int lag : {1, 2, 3, 4, 256}) {
    double sum = 0;
    for (int i = 0; i + lag < 100000; ++i) sum += x.data<double>()[i] * x.data<double>()[i + lag];
    EXPECT_NEAR(sum / 1e5, 0, 5 / std::sqrt(1e5)) << lag;
  }
}

template <class T>
void CheckInts(T low, T high) {
  const Tensor x = OpCall{"RandomUniformInt",
                          {Longs({50, 1000}), Tensor::Scalar<T>(low), Tensor::Scalar<T>(high)},
                          Seeds(3, 4)}
                       .Run1();
  // Exact where the range is small, and close enough where it is not.
  const double range = static_cast<double>(static_cast<std::make_unsigned_t<T>>(high) -
                                           static_cast<std::make_unsigned_t<T>>(low));
  double sum = 0;
  std::map<T, int> counts;
  for (const T v : x.flat<T>()) {
    ASSERT_GE(v, low);
    ASSERT_LT(v, high);
    ++counts[v];
    sum += static_cast<double>(static_cast<std::make_unsigned_t<T>>(v) -
                               static_cast<std::make_unsigned_t<T>>(low)) /
           range;
  }
  EXPECT_NEAR(sum / 5e4, 0.5 - 0.5 / range, 5 * 0.29 / std::sqrt(5e4));
  if (range == 7) {
    for (const auto& [v, count] : counts) EXPECT_NEAR(count, 5e4 / 7, 5 * std::sqrt(5e4 / 7)) << v;
  }
}

TEST(Distributions, Integers) {
  CheckInts<int32_t>(-3, 4);
  CheckInts<int64_t>(-3, 4);
  CheckInts<int32_t>(INT32_MIN, INT32_MAX);
  CheckInts<int64_t>(-(int64_t{1} << 61), int64_t{1} << 61);
  CheckInts<int64_t>(INT64_MAX - 7, INT64_MAX);
  const auto call = [](int32_t low, int32_t high) {
    return OpCall{"RandomUniformInt",
                  {Ints({2}), Tensor::Scalar<int32_t>(low), Tensor::Scalar<int32_t>(high)}};
  };
  call(3, 3).ExpectError("Need minval < maxval, got 3 >= 3");
  OpCall{"RandomUniformInt", {Ints({2}), Ints({1}), Ints({2})}}.ExpectError(
      "minval must be 0-D, got shape [1]");
}

TEST(RandomShuffle, KeepsEveryRow) {
  for (const DType dtype : kMovedTypes) {
    const Tensor x = Sample(dtype, {257, 3});
    const Tensor y = OpCall{"RandomShuffle", {x}, Seeds(1, 2)}.Run1();
    // Where each row went, from a shuffle of the row numbers with the same seeds.
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
  Node node("RandomShuffle", Seeds(11, 0), {Ints({0, 1, 2, 3})});
  std::map<std::vector<int32_t>, int> counts;
  for (int i = 0; i < 24000; ++i) {
    const Tensor y = node.Run();
    ++counts[{y.data<int32_t>(), y.data<int32_t>() + 4}];
  }
  EXPECT_EQ(counts.size(), 24);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, 1000, 5 * std::sqrt(1000.0));
}

TEST(Multinomial, FollowsTheLogits) {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor logits =
      Tensor::Of<double>({3, 4}, {std::log(1.0), std::log(2.0), std::log(3.0), std::log(4.0), 1000,
                                  1000, -inf, 1000 - 1e9, 0, 0, 0, 0});
  const int n = 40000;
  const Tensor x = OpCall{"Multinomial", {logits, Tensor::Scalar<int32_t>(n)}, Seeds(1, 2)}.Run1();
  const double expected[3][4] = {{0.1, 0.2, 0.3, 0.4}, {0.5, 0.5, 0, 0}, {0.25, 0.25, 0.25, 0.25}};
  for (int row = 0; row < 3; ++row) {
    int counts[4] = {};
    for (int i = 0; i < n; ++i) {
      const int64_t drawn = x.data<int64_t>()[row * n + i];
      ASSERT_TRUE(drawn >= 0 && drawn < 4);
      ++counts[drawn];
    }
    for (int c = 0; c < 4; ++c) {
      const double p = expected[row][c];
      EXPECT_NEAR(counts[c], n * p, 5 * std::sqrt(n * p * (1 - p))) << row << " " << c;
    }
  }
}

TEST(Multinomial, OtherTypesAndMistakes) {
  for (const Tensor& logits :
       {Tensor::Of<float>({2, 3}, {0, -1e30f, -1e30f, -1e30f, 0, -1e30f}),
        Tensor::Of<half>({2, 3},
                         {half(0), half(-6e4f), half(-6e4f), half(-6e4f), half(0), half(-6e4f)}),
        Tensor::Of<int32_t>({2, 3}, {0, -1000000, -1000000, -1000000, 0, -1000000})}) {
    const Tensor x = OpCall{"Multinomial",
                            {logits, Tensor::Scalar<int32_t>(2)},
                            With(Seeds(1, 2), "output_dtype", DType::kInt32)}
                         .Run1();
    EXPECT_TRUE(SameTensor(x, Tensor::Of<int32_t>({2, 2}, {0, 0, 1, 1})));
  }
  const auto expect = [](const Tensor& logits, int samples, const char* words) {
    OpCall{"Multinomial", {logits, Tensor::Scalar<int32_t>(samples)}}.ExpectError(words);
  };
  expect(Sample(DType::kFloat, {3}), 1, "logits should be a matrix, got shape [3]");
  expect(Sample(DType::kFloat, {3, 0}), 1, "num_classes should be positive, got 0");
  expect(Tensor::Of<float>({1, 1}, {1}), -1, "num_samples should be nonnegative, got -1");
}

TEST(RandomGamma, HasTheMomentsOfItsAlpha) {
  const std::vector<double> alphas = {0.3, 1, 2.5, 20};
  for (const DType dtype : {DType::kFloat, DType::kDouble}) {
    const Tensor alpha = dtype == DType::kDouble ? Tensor::Vector<double>(alphas)
                                                 : Tensor::Vector<float>({0.3f, 1, 2.5f, 20});
    const int n = 40000;
    const Tensor x = OpCall{"RandomGamma", {Ints({n}), alpha}, Seeds(5, 6)}.Run1();
    ASSERT_EQ(x.shape(), Shape({n, 4}));
    for (int a = 0; a < 4; ++a) {
      double mean = 0, square = 0;
      for (int i = 0; i < n; ++i) {
        const double v =
            dtype == DType::kDouble ? x.data<double>()[i * 4 + a] : x.data<float>()[i * 4 + a];
        ASSERT_GE(v, 0);
        mean += v / n;
        square += v * v / n;
      }
      const double k = alphas[a];
      // Variance k; fourth central moment 3 k^2 + 6 k.
      EXPECT_NEAR(mean, k, 5 * std::sqrt(k / n)) << k;
      EXPECT_NEAR(square - mean * mean, k, 6 * std::sqrt((2 * k * k + 6 * k) / n)) << k;
    }
  }
}

TEST(RandomGamma, ExponentialAtOneAndMistakes) {
  const Tensor x =
      OpCall{"RandomGamma", {Ints({50000}), Tensor::Scalar<double>(1)}, Seeds(5, 6)}.Run1();
  ExpectDistribution(
      x, [](double v) { return -std::expm1(-v); }, 0);
  const auto expect = [](double alpha, const char* words) {
    OpCall{"RandomGamma", {Ints({2}), Tensor::Scalar<double>(alpha)}}.ExpectError(words);
  };
  expect(-1, "alpha must be positive, got -1");
  expect(std::nan(""), "alpha must be positive, got nan");
  EXPECT_EQ((OpCall{"RandomGamma", {Ints({0}), Tensor::Scalar<float>(1)}}.Run1().shape()),
            Shape({0}));
}

TEST(Stateless, IsAFunctionOfTheSeed) {
  for (const char* op :
       {"StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal"}) {
    const auto draw = [&](int64_t a, int64_t b) {
      return OpCall{op, {Ints({1000}), Longs({a, b})}}.Run1();
    };
    EXPECT_TRUE(SameTensor(draw(1, 2), draw(1, 2)));
    EXPECT_FALSE(SameTensor(draw(1, 2), draw(2, 1)));
    EXPECT_FALSE(SameTensor(draw(1, 2), draw(1, 3)));
    EXPECT_FALSE(SameTensor(draw(0, 0), draw(int64_t{1} << 40, 0)));
    OpCall{op, {Ints({2}), Longs({1})}}.ExpectError("seed must have 2 elements");
  }
  ExpectDistribution(
      OpCall{"StatelessRandomUniform", {Ints({100000}), Ints({7, 8})}}.Run1(),
      [](double v) { return v; }, 0);
  ExpectDistribution(
      OpCall{"StatelessRandomNormal", {Ints({100000}), Ints({7, 8})}, {{"dtype", DType::kDouble}}}
          .Run1(),
      NormalCdf, 0);
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

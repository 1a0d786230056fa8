// SPDX-License-Identifier: Apache-2.0
#include "kernels/engine/elementwise.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/base/thread_pool.h"

namespace penstock {
namespace {

struct SubFn {
  template <class T>
  T operator()(T x, T y) const {
    return x - y;
  }
};
struct LessFn {
  template <class T>
  bool operator()(T x, T y) const {
    return x < y;
  }
};
struct NegFn {
  template <class T>
  T operator()(T x) const {
    return -x;
  }
};

// Runs a kernel on tensors that no other tensor shares.
class Result {
 public:
  Result(Kernel&& kernel, DType out, std::vector<Tensor>& inputs) {
    const EdgeType type{out};
    StepContext step{.threads = &threads_};
    KernelContext ctx({.step = &step,
                       .allocator = &CpuAllocator(),
                       .host_allocator = &CpuAllocator(),
                       .inputs = inputs.data(),
                       .outputs = &output,
                       .output_types = &type,
                       .num_inputs = static_cast<int>(inputs.size()),
                       .num_outputs = 1});
    CHECK_OK(kernel.Compute(ctx));
  }
  Tensor output;

 private:
  ThreadPool threads_{"test", 2};
};

using Sub = BinaryElementwise<SubFn>::Kernel<float>;
using SubHalf = BinaryElementwise<SubFn>::Kernel<half>;
using Less = BinaryElementwise<LessFn>::Kernel<float>;
using Neg = UnaryElementwise<NegFn>::Kernel<float>;

template <class T>
Tensor Iota(int n, float first) {
  Tensor t(kDTypeOf<T>, Shape{n});
  for (int i = 0; i < n; ++i) t.mutable_flat<T>()[i] = T(first + i % 100);
  return t;
}

TEST(Elementwise, WritesOverAnInputThatNobodyElseHolds) {
  for (int n : {1, 5, 10000}) {
    std::vector<Tensor> one;
    one.push_back(Iota<float>(n, 3));
    const void* buffer = one[0].raw_data();
    Result neg(Neg(), DType::kFloat, one);
    EXPECT_EQ(neg.output.raw_data(), buffer);
    for (int i = 0; i < n; ++i) ASSERT_EQ(neg.output.flat<float>()[i], -(3 + i % 100));

    for (int taken : {0, 1}) {
      std::vector<Tensor> two;
      two.push_back(Iota<float>(n, 7));
      two.push_back(Iota<float>(n, 3));
      const Tensor shared = two[1 - taken];  // two references to the other output
      const void* buffer = two[taken].raw_data();
      Result sub(Sub(), DType::kFloat, two);
      EXPECT_EQ(sub.output.raw_data(), buffer);
      for (int i = 0; i < n; ++i) ASSERT_EQ(sub.output.flat<float>()[i], 4);
      ASSERT_EQ(shared.flat<float>()[0], taken == 0 ? 3 : 7);
    }
  }
}

TEST(Elementwise, LeavesSharedInputsAlone) {
  std::vector<Tensor> both = {Iota<float>(50, 7), Iota<float>(50, 3)};
  const std::vector<Tensor> held = both;
  Result sub(Sub(), DType::kFloat, both);
  EXPECT_EQ(held[0].flat<float>()[0], 7);
  EXPECT_EQ(held[1].flat<float>()[0], 3);
  EXPECT_EQ(sub.output.flat<float>()[49], 4);
}

TEST(Elementwise, BroadcastsInPlace) {
  std::vector<Tensor> both;
  both.push_back(Iota<float>(6000, 0).Reshaped({60, 100}));
  both.push_back(Iota<float>(100, 1));
  Result sub(Sub(), DType::kFloat, both);
  for (float v : sub.output.flat<float>()) ASSERT_EQ(v, -1);
  std::vector<Tensor> turned;
  turned.push_back(Iota<float>(100, 1));
  turned.push_back(Iota<float>(6000, 0).Reshaped({60, 100}));
  const void* buffer = turned[1].raw_data();
  Result back(Sub(), DType::kFloat, turned);
  EXPECT_EQ(back.output.raw_data(), buffer);
  for (float v : back.output.flat<float>()) ASSERT_EQ(v, 1);
}

TEST(Elementwise, Float16InPlaceAndBroadcast) {
  std::vector<Tensor> both;
  both.push_back(Iota<half>(6000, 0).Reshaped({60, 100}));
  both.push_back(Iota<half>(60, 0).Reshaped({60, 1}));
  const void* buffer = both[0].raw_data();
  Result sub(SubHalf(), DType::kHalf, both);
  EXPECT_EQ(sub.output.raw_data(), buffer);
  for (int i = 0; i < 6000; ++i) {
    ASSERT_EQ(static_cast<float>(sub.output.flat<half>()[i]), i % 100 - i / 100);
  }
}

TEST(Elementwise, ShortRows) {
  for (int n : {1, 3, 10, 63, 64, 65}) {
    for (int rows : {2, 8, 100}) {
      for (bool turned : {false, true}) {
        Tensor all = Iota<float>(rows * n, 0).Reshaped({rows, n});
        std::vector<Tensor> both = {all, Iota<float>(n, 1000)};
        if (turned) std::swap(both[0], both[1]);
        Result sub(Sub(), DType::kFloat, both);
        for (int i = 0; i < rows * n; ++i) {
          const float difference = static_cast<float>(i % 100 - (1000 + i % n % 100));
          ASSERT_EQ(sub.output.flat<float>()[i], turned ? -difference : difference);
        }
      }
    }
  }
}

TEST(Elementwise, AnotherTypeOfOutput) {
  std::vector<Tensor> both;
  both.push_back(Iota<float>(5000, 0));
  both.push_back(Tensor::Scalar<float>(50));
  Result less(Less(), DType::kBool, both);
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(less.output.flat<bool>()[i], i % 100 < 50);
}

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Tests tensors that are filled row by row. Expected values and error texts are TensorFlow 2.21's.
#include "kernels/array/testing/golden.h"

namespace penstock {
namespace {

using namespace golden;  // NOLINT: the tables below use its names

const Tensor kRows = F({2, 2}, {1, 2, 3, 4});

TEST(Inplace, RowsInOrder) {
  const Tensor twice = I({2}, {-1, 1}), v = F({2, 2}, {9, 9, 1, 1});
  ExpectOutputs({"InplaceUpdate", {kRows, twice, v}}, {F({2, 2}, {1, 2, 1, 1})});
  ExpectOutputs({"InplaceAdd", {kRows, twice, v}}, {F({2, 2}, {1, 2, 13, 14})});
  ExpectOutputs({"InplaceSub", {kRows, twice, v}}, {F({2, 2}, {1, 2, -7, -6})});
  ExpectOutputs({"InplaceAdd", {kRows, I({1}, {5}), F({1, 2}, {9, 9})}},
                {F({2, 2}, {1, 2, 12, 13})});
  ExpectOutputs({"InplaceUpdate", {S({2}, {"a", "b"}), I({1}, {0}), S({1}, {"c"})}},
                {S({2}, {"c", "b"})});
  const Tensor none(DType::kFloat, {0, 2});
  ExpectOutputs({"InplaceUpdate", {none, I({1}, {0}), F({1, 2}, {1, 1})}}, {none});
}

TEST(Inplace, OtherReadersKeepWhatTheyHave) {
  const Tensor x = F({2}, {1, 2}), held = x;
  ExpectOutputs({"InplaceUpdate", {x, I({1}, {0}), F({1}, {5})}}, {F({2}, {5, 2})});
  EXPECT_TRUE(SameTensor(held, F({2}, {1, 2})));
}

TEST(Inplace, Mistakes) {
  const auto expect = [](const Tensor& x, const Tensor& i, const Tensor& v, const char* words) {
    for (const char* op : {"InplaceUpdate", "InplaceAdd", "InplaceSub"}) {
      OpCall{op, {x, i, v}}.ExpectError(words);
    }
  };
  expect(kRows, I({}, {1}), F({1, 2}, {9, 9}), "i must be a vector. []");
  expect(F({}, {3}), I({1}, {0}), F({1}, {9}), "(ranks differ): [] vs. [1]");
  expect(F({}, {3}), I({1}, {0}), F({}, {9}), "x must be at least a vector");
  expect(kRows, I({1}, {0}), F({1, 1}, {1}), "doesn't match at index 1 : [2,2] vs. [1,1]");
  expect(kRows, I({2}, {0, 0}), F({1, 2}, {1, 1}), "doesn't match at index 0: [2] vs. [1,2]");
}

TEST(Empty, IsZero) {
  for (const bool init : {false, true}) {
    ExpectOutputs({"Empty", {I({2}, {1, 2})}, {{"dtype", DType::kFloat}, {"init", init}}},
                  {F({1, 2}, {0, 0})});
    ExpectOutputs({"Empty", {I({1}, {2})}, {{"dtype", DType::kString}, {"init", init}}},
                  {S({2}, {"", ""})});
  }
  OpCall{"Empty", {I({1}, {-1})}, {{"dtype", DType::kFloat}}}.ExpectError("-1");
}

TEST(DeepCopy, HasMemoryOfItsOwn) {
  const Tensor x = F({2}, {1, 2});
  const Tensor y = OpCall{"DeepCopy", {x}}.Run1();
  EXPECT_TRUE(SameTensor(x, y));
  EXPECT_FALSE(y.SharesBufferWith(x));
}

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "kernels/array/strided_copy.h"

#include <gtest/gtest.h>

#include <random>

#include "core/base/thread_pool.h"
#include "kernels/array/elements.h"
#include "kernels/array/testing/op_check.h"

namespace penstock {
namespace {

Scheduler& Threads() {
  static Scheduler& threads = *new ThreadPool("test", 2);
  return threads;
}

// Copies element by element, following the definition of StridedCopy.
void CopyByDefinition(DType dtype, const StridedCopy& copy, size_t depth, const void* from,
                      void* to) {
  if (depth == copy.dims.size()) return CopyElements(dtype, from, to, 1);
  const auto& dim = copy.dims[depth];
  for (int64_t i = 0; i < dim.count; ++i) {
    CopyByDefinition(dtype, copy, depth + 1, ElementAt(from, dtype, i * dim.from),
                     ElementAt(to, dtype, i * dim.to));
  }
}

struct Box {
  StridedCopy copy;
  int64_t from_start = 0, from_elements = 1;
  int64_t to_start = 0, to_elements = 1;
};

// Returns a random box. The destination may be padded, reversed and permuted; the source may repeat
// or skip elements, go backwards, and have another order of dimensions.
Box RandomBox(std::mt19937& random, int rank, int64_t largest) {
  const auto upto = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  std::vector<StridedCopy::Dim> dims(rank);
  Box box;
  for (auto& dim : dims) dim.count = upto(4) == 0 ? 1 : 1 + upto(largest);
  const auto lay_out = [&](auto member, int64_t* start, int64_t* elements, bool is_source) {
    std::vector<int> order(rank);
    for (int i = 0; i < rank; ++i) order[i] = i;
    if (upto(2) == 0) std::shuffle(order.begin(), order.end(), random);
    for (int i = rank - 1; i >= 0; --i) {
      auto& dim = dims[order[i]];
      const int64_t step = upto(3) == 0 ? 1 + upto(3) : 1;
      const int64_t kind = is_source ? upto(6) : upto(6) + 1;
      int64_t& stride = dim.*member;
      stride = *elements * step;
      if (kind == 0) {
        stride = 0;
        continue;
      }
      *elements = stride * dim.count;
      if (kind == 1) {
        *start += (dim.count - 1) * stride;
        stride = -stride;
      }
    }
  };
  lay_out(&StridedCopy::Dim::from, &box.from_start, &box.from_elements, true);
  lay_out(&StridedCopy::Dim::to, &box.to_start, &box.to_elements, false);
  for (const auto& dim : dims) box.copy.dims.push_back(dim);
  return box;
}

void Check(const Box& box, DType dtype) {
  const Tensor from = Sample(dtype, {box.from_elements});
  Tensor to = Sample(dtype, {box.to_elements}, 1000);
  Tensor expected = Sample(dtype, {box.to_elements}, 1000);
  const void* source = ElementAt(from.raw_data(), dtype, box.from_start);
  CopyStrided(dtype, box.copy, source, ElementAt(to.mutable_raw_data(), dtype, box.to_start),
              Threads());
  CopyByDefinition(dtype, box.copy, 0, source,
                   ElementAt(expected.mutable_raw_data(), dtype, box.to_start));
  std::string shown;
  for (const auto& d : box.copy.dims) StrAppend(&shown, " ", d.count, ":", d.from, ":", d.to);
  ASSERT_TRUE(SameTensor(to, expected)) << Name(dtype) << shown;
}

TEST(CopyStrided, DoesWhatItSays) {
  std::mt19937 random(7);
  for (int i = 0; i < 400; ++i) {
    const Box box = RandomBox(random, static_cast<int>(random() % 6), 6);
    for (const DType dtype : kMovedTypes) ASSERT_NO_FATAL_FAILURE(Check(box, dtype));
  }
}

TEST(CopyStrided, LargeBoxesOnSeveralThreads) {
  std::mt19937 random(8);
  for (int i = 0; i < 60; ++i) {
    const Box box = RandomBox(random, 2 + static_cast<int>(random() % 2), 90);
    const DType dtype = kMovedTypes[random() % kMovedTypes.size()];
    ASSERT_NO_FATAL_FAILURE(Check(box, dtype));
  }
}

// Full blocks, and blocks with incomplete tiles on the right, at the bottom, and on both sides.
TEST(CopyStrided, Transposes) {
  for (const DType dtype : {DType::kInt8, DType::kHalf, DType::kFloat, DType::kDouble,
                            DType::kComplex128, DType::kString}) {
    for (const int64_t rows : {1, 3, 16, 64, 300, 515}) {
      for (const int64_t columns : {1, 2, 15, 32, 70, 129}) {
        Box box;
        box.copy.Add(columns, 1, rows);
        box.copy.Add(rows, columns, 1);
        box.from_elements = box.to_elements = rows * columns;
        ASSERT_NO_FATAL_FAILURE(Check(box, dtype));
      }
    }
  }
}

TEST(CopyStrided, EmptyBoxesTouchNothing) {
  StridedCopy copy;
  copy.Add(3, 1, 1);
  copy.Add(0, 5, 5);
  CopyStrided(DType::kFloat, copy, nullptr, nullptr, Threads());
}

TEST(CopyStrided, ScalarsAndLongRows) {
  Box scalar;
  Check(scalar, DType::kFloat);
  Box row;
  row.copy.Add(1 << 20, 1, 1);
  row.from_elements = row.to_elements = 1 << 20;
  Check(row, DType::kFloat);
  Box rows;
  rows.copy.Add(3, 0, 300000);
  rows.copy.Add(200001, 1, 1);
  rows.from_elements = 200001;
  rows.to_elements = 900000;
  Check(rows, DType::kInt8);
}

TEST(Elements, FillAndZero) {
  for (const DType dtype : kMovedTypes) {
    const Tensor value = Sample(dtype, {1});
    Tensor t = Sample(dtype, {100003}, 5);
    FillWith(value.raw_data(), t, Threads());
    ExpectMoved(t, {100003}, value, [](const Dims&) { return Dims{0}; });
    Zero(t, Threads());
    ExpectMoved(t, {100003}, value, [](const Dims&) { return std::nullopt; });
  }
}

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/numbers.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "core/tensor/type_lists.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(VisitTypeTest, CallsWithTheTypeOfTheDType) {
  for (const DType dtype : kNumber) {
    DType visited = DType::kInvalid;
    const bool known = VisitType<NUMBER_TYPES>(dtype, [&]<class T>() { visited = kDTypeOf<T>; });
    EXPECT_TRUE(known) << Name(dtype);
    EXPECT_EQ(visited, dtype);
  }
}

TEST(VisitTypeTest, ReturnsFalseForATypeThatIsNotListed) {
  for (const DType dtype : {DType::kInvalid, DType::kString, DType::kBool, DType::kComplex64}) {
    const bool known = VisitType<REAL_TYPES>(dtype, []<class T>() { ADD_FAILURE(); });
    EXPECT_FALSE(known) << Name(dtype);
  }
}

TEST(RepresentsTest, IntegersHoldWhatIsInRangeAndWhole) {
  EXPECT_TRUE(Represents<uint8_t>(int64_t{255}));
  EXPECT_FALSE(Represents<uint8_t>(int64_t{256}));
  EXPECT_FALSE(Represents<uint64_t>(int64_t{-1}));
  EXPECT_TRUE(Represents<int8_t>(-128.0));
  EXPECT_FALSE(Represents<int8_t>(-129.0));
  EXPECT_FALSE(Represents<int32_t>(1.5));
  EXPECT_FALSE(Represents<int32_t>(std::nan("")));
}

// 2^63 is the double next to the largest int64.
TEST(RepresentsTest, TheLimitsOfWideIntegersAreExact) {
  EXPECT_FALSE(Represents<int64_t>(std::ldexp(1.0, 63)));
  EXPECT_TRUE(Represents<int64_t>(-std::ldexp(1.0, 63)));
  EXPECT_TRUE(Represents<uint64_t>(std::ldexp(1.0, 63)));
  EXPECT_FALSE(Represents<uint64_t>(std::ldexp(1.0, 64)));
}

TEST(RepresentsTest, FloatsHoldEverything) {
  EXPECT_TRUE(Represents<half>(1e10));
  EXPECT_TRUE(Represents<float>(std::numeric_limits<int64_t>::max()));
}

}  // namespace
}  // namespace penstock

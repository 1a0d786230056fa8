// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/dtype.h"

#include <algorithm>
#include <set>

#include "core/tensor/resource_handle.h"
#include "core/tensor/variant.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(DType, NamesAndNumbersGoBothWays) {
  std::set<std::string> names;
  for (int number = 1; number <= 23; ++number) {
    const StatusOr<DType> dtype = DTypeFromNumber(number);
    ASSERT_TRUE(dtype.ok());
    EXPECT_EQ(Number(*dtype), number);
    EXPECT_EQ(DTypeFromName(Name(*dtype)), *dtype);
    EXPECT_TRUE(names.insert(Name(*dtype)).second);
  }
  EXPECT_STREQ(Name(DType::kFloat), "float");
  EXPECT_STREQ(Name(DType::kComplex128), "complex128");
  EXPECT_EQ(DTypeFromName("T"), DType::kInvalid);
  EXPECT_EQ(DTypeFromName(""), DType::kInvalid);
}

TEST(DType, ForeignNumbersAreChecked) {
  for (int number : {-1, 0, 24, 100, 101, 1000, INT32_MAX, INT32_MIN}) {
    const Status status = DTypeFromNumber(number).status();
    EXPECT_EQ(status, InvalidArgument("no data type has the number ", number));
  }
  for (int number : {-1, 0, 24, 99, 100, 124, INT32_MAX, INT32_MIN}) {
    const Status status = EdgeTypeFromNumber(number).status();
    EXPECT_EQ(status, InvalidArgument("no data type has the number ", number));
  }
}

TEST(EdgeType, ReferencesAreAHundredMore) {
  EXPECT_EQ(*EdgeTypeFromNumber(1), (EdgeType{DType::kFloat}));
  EXPECT_EQ(*EdgeTypeFromNumber(103), (EdgeType{DType::kInt32, true}));
  EXPECT_EQ(Number(EdgeType{DType::kInt32, true}), 103);
  EXPECT_EQ(Name(EdgeType{DType::kInt32, true}), "int32_ref");
  EXPECT_EQ(Name(EdgeType{DType::kInt32}), "int32");
}

template <class T>
void ExpectSize() {
  EXPECT_EQ(SizeOf(kDTypeOf<T>), sizeof(T)) << Name(kDTypeOf<T>);
}

TEST(DType, SizesAreThoseOfTheCppTypes) {
  ExpectSize<float>(), ExpectSize<double>(), ExpectSize<half>(), ExpectSize<bfloat16>();
  ExpectSize<int8_t>(), ExpectSize<int16_t>(), ExpectSize<int32_t>(), ExpectSize<int64_t>();
  ExpectSize<uint8_t>(), ExpectSize<uint16_t>(), ExpectSize<uint32_t>(), ExpectSize<uint64_t>();
  ExpectSize<qint8>(), ExpectSize<quint8>(), ExpectSize<qint16>(), ExpectSize<quint16>();
  ExpectSize<qint32>(), ExpectSize<bool>(), ExpectSize<std::string>();
  ExpectSize<std::complex<float>>(), ExpectSize<std::complex<double>>();
  ExpectSize<ResourceHandle>(), ExpectSize<Variant>();
  EXPECT_EQ(SizeOf(DType::kInvalid), 0);
}

TEST(DType, ClassesPartitionAllTypes) {
  const auto contains = [](const DTypes& list, DType dtype) {
    return std::count(list.begin(), list.end(), dtype) == 1;
  };
  for (int number = 1; number <= 23; ++number) {
    const DType dtype = static_cast<DType>(number);
    EXPECT_EQ(contains(kFloating, dtype), IsFloating(dtype)) << Name(dtype);
    EXPECT_EQ(contains(kIntegers, dtype), IsInteger(dtype)) << Name(dtype);
    EXPECT_EQ(contains(kComplex, dtype), IsComplex(dtype)) << Name(dtype);
    EXPECT_EQ(contains(kReal, dtype), IsFloating(dtype) || IsInteger(dtype)) << Name(dtype);
    EXPECT_EQ(contains(kNumber, dtype), contains(kReal, dtype) || IsComplex(dtype)) << Name(dtype);
    EXPECT_EQ(contains(kAllTypes, dtype), dtype != DType::kVariant) << Name(dtype);
    const bool plain =
        dtype != DType::kString && dtype != DType::kResource && dtype != DType::kVariant;
    EXPECT_EQ(IsPlain(dtype), plain) << Name(dtype);
  }
}

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/part_reader.h"

#include <cstring>
#include <numeric>
#include <string>

#include "core/base/check.h"
#include "core/checkpoint/tensor_bytes.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr int64_t kBefore = 3;  // bytes in the file before the entry

// A file in memory.
class BytesFile final : public RandomAccessFile {
 public:
  explicit BytesFile(std::string bytes) : bytes_(std::move(bytes)) {}
  int64_t size() const override { return static_cast<int64_t>(bytes_.size()); }
  Status Read(int64_t offset, int64_t n, char* to) const override {
    if (offset + n > size()) return OutOfRange("read beyond the end");
    std::memcpy(to, bytes_.data() + offset, n);
    return OkStatus();
  }

 private:
  const std::string bytes_;
};

// A tensor as it is stored in a data file.
struct Stored {
  explicit Stored(const Tensor& tensor) {
    bytes.assign(kBefore, '#');
    const auto written = WriteTensorBytes(tensor, [this](string_view piece) {
      bytes.append(piece.data(), piece.size());
      return OkStatus();
    });
    CHECK_OK(written.status());
    entry = {.dtype = tensor.dtype(),
             .shape = tensor.shape(),
             .offset = kBefore,
             .size = written->size,
             .masked_crc = written->masked_crc};
  }
  StatusOr<Tensor> Read(const Shape& whole, const char* from, const char* to) const {
    const TensorSlice from_box = *TensorSlice::Parse(from)->Within(whole);
    const TensorSlice to_box = *TensorSlice::Parse(to)->Within(whole);
    Tensor tensor(entry.dtype, to_box.shape());
    RETURN_IF_ERROR(ReadPart(BytesFile(bytes), entry, from_box, to_box, &tensor));
    return tensor;
  }
  std::string bytes;
  BundleEntry entry;
};

Tensor Numbers(const Shape& shape) {
  std::vector<int32_t> values(shape.num_elements());
  std::iota(values.begin(), values.end(), 0);
  return Tensor::Of<int32_t>(shape, values);
}

TEST(PartReaderTest, ReadsTheWhole) {
  const auto read = Stored(Numbers({3, 4})).Read({3, 4}, "-:-", "-:-");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->ToString(), Numbers({3, 4}).ToString());
}

// The file has rows 1 and 2 of four. The test reads rows 1 to 3, and gets the two that exist.
TEST(PartReaderTest, ReadsTheRowsThatBothBoxesHave) {
  const auto read = Stored(Numbers({2, 2})).Read({4, 2}, "1,2:-", "1,3:-");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(std::vector<int32_t>(read->flat<int32_t>().begin(), read->flat<int32_t>().begin() + 4),
            (std::vector<int32_t>{0, 1, 2, 3}));
}

TEST(PartReaderTest, ReadsColumnsInRuns) {
  const auto read = Stored(Numbers({3, 4})).Read({3, 4}, "-:-", "-:1,2");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->ToString(), Tensor::Of<int32_t>({3, 2}, {1, 2, 5, 6, 9, 10}).ToString());
}

// Runs begin in one piece of the file and end in another.
TEST(PartReaderTest, RunsMayCrossPieces) {
  const int64_t width = kPieceBytes / 4 + 1000;  // a row is more than a piece
  const Shape whole({3, width});
  const Tensor numbers = Numbers(whole);
  const auto read = Stored(numbers).Read(whole, "-:-", StrCat("-:2,", width - 3).c_str());
  ASSERT_TRUE(read.ok()) << read.status();
  for (int64_t row = 0; row < 3; ++row) {
    EXPECT_EQ(std::memcmp(read->data<int32_t>() + row * (width - 3),
                          numbers.data<int32_t>() + row * width + 2, (width - 3) * 4),
              0)
        << "row " << row;
  }
}

TEST(PartReaderTest, ReadsStrings) {
  const Tensor words = Tensor::Of<std::string>({2, 2}, {"a", "", "long enough to allocate", "d"});
  const Stored stored(words);
  const auto all = stored.Read({2, 2}, "-:-", "-:-"), column = stored.Read({2, 2}, "-:-", "-:1,1");
  ASSERT_TRUE(all.ok() && column.ok());
  EXPECT_EQ(all->ToString(), words.ToString());
  EXPECT_EQ(column->ToString(), Tensor::Of<std::string>({2, 1}, {"", "d"}).ToString());
}

TEST(PartReaderTest, ABoolIsZeroOrOne) {
  Stored stored(Tensor::Vector<uint8_t>({0, 1, 7}));
  stored.entry.dtype = DType::kBool;
  const auto read = stored.Read({3}, "-", "-");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(std::memcmp(read->raw_data(), "\0\1\1", 3), 0);
}

// The checksum is that of the whole entry, so damage outside of the wanted part counts, too.
TEST(PartReaderTest, DamageAnywhereIsDataLoss) {
  for (const Tensor& tensor : {Numbers({3, 4}), Tensor::Of<std::string>({1, 2}, {"ab", "cd"})}) {
    Stored stored(tensor);
    EXPECT_EQ(VerifyPart(BytesFile(stored.bytes), stored.entry), OkStatus());
    stored.bytes.back() ^= 1;
    EXPECT_EQ(VerifyPart(BytesFile(stored.bytes), stored.entry).code(), StatusCode::kDataLoss);
    for (const char* to : {"-:-", "-:0,1"}) {
      EXPECT_EQ(stored.Read(tensor.shape(), "-:-", to).status().code(), StatusCode::kDataLoss);
    }
  }
}

TEST(PartReaderTest, AFileThatIsTooShortIsAnError) {
  Stored stored(Numbers({3, 4}));
  stored.bytes.pop_back();
  EXPECT_FALSE(stored.Read({3, 4}, "-:-", "-:-").ok());
  EXPECT_FALSE(VerifyPart(BytesFile(stored.bytes), stored.entry).ok());
}

}  // namespace
}  // namespace penstock

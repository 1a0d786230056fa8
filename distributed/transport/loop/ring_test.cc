// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/loop/ring.h"

#include <string>

#include "gtest/gtest.h"

namespace penstock {
namespace {

class RingTest : public testing::Test {
 protected:
  void Write(const std::string& text) { writer.Append(text.data(), text.size()); }
  std::string Read(size_t count) {
    std::string text(count, '?');
    reader.Read(text.data(), count);
    reader.Release();
    return text;
  }

  RingPositions positions;
  char data[16] = {};
  const RingMemory memory{&positions, data, sizeof(data)};
  RingWriter writer{memory};
  RingReader reader{memory};
};

TEST_F(RingTest, AppendedBytesAreReadableOncePublished) {
  Write("abc");
  EXPECT_EQ(*reader.Readable(), 0);
  EXPECT_FALSE(reader.HasMore());
  writer.Publish();
  EXPECT_EQ(*reader.Readable(), 3);
  EXPECT_TRUE(reader.HasMore());
  EXPECT_EQ(Read(3), "abc");
  EXPECT_FALSE(reader.HasMore());
}

TEST_F(RingTest, ARingWrapsAround) {
  for (int i = 0; i < 100; ++i) {
    const std::string text = "0123456789" + std::to_string(i);
    EXPECT_EQ(*writer.Room(), 16);
    Write(text);
    writer.Publish();
    EXPECT_EQ(*reader.Readable(), text.size());
    EXPECT_EQ(Read(text.size()), text);
  }
  EXPECT_EQ(writer.appended(), 100 * 10 + 10 + 90 * 2);
}

TEST_F(RingTest, RoomComesBackWithRelease) {
  Write("0123456789");
  writer.Publish();
  EXPECT_EQ(*writer.Room(), 6);
  reader.Read(nullptr, 4);
  EXPECT_EQ(*writer.Room(), 6);
  reader.Release();
  EXPECT_EQ(*writer.Room(), 10);
  EXPECT_EQ(writer.consumed(), 4);
}

TEST_F(RingTest, PositionsThatCannotBeAreErrors) {
  Write("0123456789");
  writer.Publish();
  positions.consumed = 11;  // a position that was never written
  EXPECT_EQ(writer.Room().status(), DataLoss("the reader of a shared ring is at byte 11 of 10"));
  positions.consumed = 5;
  EXPECT_EQ(*writer.Room(), 11);
  positions.consumed = 4;  // a position that goes backwards
  EXPECT_EQ(writer.Room().status().code(), StatusCode::kDataLoss);

  EXPECT_EQ(Read(10), "0123456789");
  positions.published = 9;
  EXPECT_EQ(reader.Readable().status().code(), StatusCode::kDataLoss);
  positions.published = 27;  // more than fit into the ring
  EXPECT_EQ(reader.Readable().status().code(), StatusCode::kDataLoss);
  positions.published = 26;
  EXPECT_EQ(*reader.Readable(), 16);
}

}  // namespace
}  // namespace penstock

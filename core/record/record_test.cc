// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "core/base/check.h"
#include "core/base/crc32c.h"
#include "core/base/env.h"
#include "core/record/input_stream.h"
#include "core/record/record_reader.h"
#include "core/record/record_writer.h"

namespace penstock {
namespace {

using Strings = std::vector<std::string>;

// testdata/ was written by TensorFlow 2.21 (tf.io.TFRecordWriter), with these records in this
// order.
const char* const kGolden[] = {"core/record/testdata/records.tfrecord",
                               "core/record/testdata/records.tfrecord.zlib",
                               "core/record/testdata/records.tfrecord.gz"};
constexpr Compression kCompressions[] = {Compression::kNone, Compression::kZlib,
                                         Compression::kGzip};

Strings GoldenRecords() {
  std::string all_bytes;
  for (int i = 0; i < 256; ++i) all_bytes += static_cast<char>(i);
  return {"", "a", "The quick brown fox", all_bytes, std::string(1000, 'x')};
}

std::string TestFile(const std::string& name) { return testing::TempDir() + "/" + name; }

std::string Contents(const std::string& path) {
  auto contents = Env::Real().ReadFile(path);
  CHECK_OK(contents.status());
  return *std::move(contents);
}

void WriteContents(const std::string& path, string_view contents) {
  auto file = Env::Real().NewWritableFile(path);
  CHECK_OK(file.status());
  CHECK_OK((*file)->Append(contents));
  CHECK_OK((*file)->Close());
}

void WriteRecords(const std::string& path, const Strings& records, Compression compression) {
  auto writer = RecordWriter::Create(Env::Real(), path, compression);
  CHECK_OK(writer.status());
  for (const std::string& record : records) CHECK_OK((*writer)->Write(record));
  CHECK_OK((*writer)->Close());
}

// Reads all records up to the end or the first error.
Status ReadRecords(const std::string& path, Compression compression, Strings* records,
                   int64_t from = 0) {
  ASSIGN_OR_RETURN(RecordReader reader, RecordReader::Open(Env::Real(), path, compression));
  RETURN_IF_ERROR(reader.SkipTo(from));
  for (std::string record;;) {
    ASSIGN_OR_RETURN(const bool found, reader.Read(&record));
    if (!found) return OkStatus();
    records->push_back(record);
  }
}

TEST(Record, ReadsWhatTensorFlowWrites) {
  for (int i = 0; i < 3; ++i) {
    Strings records;
    const Status read = ReadRecords(kGolden[i], kCompressions[i], &records);
    EXPECT_TRUE(read.ok()) << read;
    EXPECT_EQ(records, GoldenRecords()) << kGolden[i];
  }
}

TEST(Record, WritesWhatTensorFlowWrites) {
  const std::string path = TestFile("plain");
  WriteRecords(path, GoldenRecords(), Compression::kNone);
  EXPECT_EQ(Contents(path), Contents(kGolden[0]));
}

TEST(Record, ReadsWhatItWrites) {
  Strings records = GoldenRecords();
  std::string noise(3 << 20, 0);
  uint32_t x = 1;
  for (char& c : noise) c = static_cast<char>((x = x * 1664525 + 1013904223) >> 24);
  records.push_back(noise);
  records.push_back("after");
  for (Compression compression : kCompressions) {
    const std::string path = TestFile("round_trip");
    WriteRecords(path, records, compression);
    Strings read;
    const Status status = ReadRecords(path, compression, &read);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(read == records);
  }
}

TEST(Record, FlushedRecordsCanBeRead) {
  for (Compression compression : kCompressions) {
    const std::string path = TestFile("flushed");
    auto writer = RecordWriter::Create(Env::Real(), path, compression);
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->Write("one").ok());
    ASSERT_TRUE((*writer)->Flush().ok());
    auto reader = RecordReader::Open(Env::Real(), path, compression);
    ASSERT_TRUE(reader.ok());
    std::string record;
    EXPECT_TRUE(reader->Read(&record).value());
    EXPECT_EQ(record, "one");
    ASSERT_TRUE((*writer)->Close().ok());
    EXPECT_EQ((*writer)->Write("two").code(), StatusCode::kFailedPrecondition);
  }
}

TEST(Record, GoesOnFromAnOffset) {
  for (int i = 0; i < 3; ++i) {
    auto reader = RecordReader::Open(Env::Real(), kGolden[i], kCompressions[i]);
    ASSERT_TRUE(reader.ok());
    std::string record;
    for (int k = 0; k < 2; ++k) ASSERT_TRUE(reader->Read(&record).value());
    const int64_t offset = reader->offset();
    EXPECT_EQ(offset, 16 + 17);
    Strings rest;
    EXPECT_TRUE(ReadRecords(kGolden[i], kCompressions[i], &rest, offset).ok());
    const Strings all = GoldenRecords();
    EXPECT_EQ(rest, Strings(all.begin() + 2, all.end()));
    rest.clear();
    EXPECT_EQ(ReadRecords(kGolden[i], kCompressions[i], &rest, 1 << 20).code(),
              StatusCode::kOutOfRange);
  }
}

// Flips each bit of the file in turn: the records before the bit are read, then DataLoss names the
// file and the offset.
TEST(Record, EveryFlippedBitIsDataLoss) {
  const std::string path = TestFile("flipped"), good = Contents(kGolden[0]);
  const Strings records = GoldenRecords();
  std::vector<size_t> starts = {0};
  for (const std::string& record : records) starts.push_back(starts.back() + 16 + record.size());
  ASSERT_EQ(starts.back(), good.size());
  for (size_t bit = 0; bit < 8 * good.size(); bit += bit < 8 * 40 ? 1 : 97) {
    std::string damaged = good;
    damaged[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    WriteContents(path, damaged);
    Strings read;
    const Status status = ReadRecords(path, Compression::kNone, &read);
    const auto hit = std::upper_bound(starts.begin(), starts.end(), bit / 8) - 1;
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << "bit " << bit;
    EXPECT_EQ(read, Strings(records.begin(), records.begin() + (hit - starts.begin())));
    EXPECT_TRUE(absl::StrContains(status.message(), path)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), StrCat("offset ", *hit, " "))) << status;
  }
}

TEST(Record, EveryFlippedBitOfACompressedFileIsDataLossOrWithoutEffect) {
  const std::string path = TestFile("flipped_gz");
  for (int i = 1; i < 3; ++i) {
    const std::string good = Contents(kGolden[i]);
    int unseen = 0;
    for (size_t bit = 0; bit < 8 * good.size(); bit += 3) {
      std::string damaged = good;
      damaged[bit / 8] ^= static_cast<char>(1 << (bit % 8));
      WriteContents(path, damaged);
      Strings read;
      const Status status = ReadRecords(path, kCompressions[i], &read);
      if (!status.ok()) {
        EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status;
        EXPECT_TRUE(absl::StrContains(status.message(), path)) << status;
      } else {
        ++unseen;  // a bit in gzip's header, for instance of a time stamp
        EXPECT_EQ(read, GoldenRecords()) << "bit " << bit;
      }
    }
    EXPECT_LT(unseen, 8 * 10);
  }
}

TEST(Record, AFileThatIsCutOffIsDataLoss) {
  const std::string path = TestFile("cut");
  for (int i = 0; i < 3; ++i) {
    const std::string good = Contents(kGolden[i]);
    for (size_t size = 1; size < good.size(); size += size < 70 ? 1 : 9) {
      WriteContents(path, string_view(good).substr(0, size));
      Strings read;
      const Status status = ReadRecords(path, kCompressions[i], &read);
      const bool between_records =
          i == 0 && (size == 16 || size == 33 || size == 68 || size == 340);
      EXPECT_EQ(status.code(), between_records ? StatusCode::kOk : StatusCode::kDataLoss)
          << kGolden[i] << " cut at " << size << ": " << status;
    }
  }
}

TEST(Record, AHostileLengthAllocatesNothing) {
  const std::string path = TestFile("hostile");
  for (uint64_t length :
       {uint64_t{1} << 30, (uint64_t{1} << 31) - 1, uint64_t{1} << 40, ~uint64_t{0}}) {
    std::string header(12, 0);
    for (int i = 0; i < 8; ++i) header[i] = static_cast<char>(length >> (8 * i));
    const uint32_t checksum = MaskCrc(Crc32c(string_view(header).substr(0, 8)));
    for (int i = 0; i < 4; ++i) header[8 + i] = static_cast<char>(checksum >> (8 * i));
    WriteContents(path, header + "short");
    auto reader = RecordReader::Open(Env::Real(), path);
    ASSERT_TRUE(reader.ok());
    std::string record;
    for (int k = 0; k < 2; ++k) {  // the error is sticky
      EXPECT_EQ(reader->Read(&record).status().code(), StatusCode::kDataLoss);
    }
    EXPECT_LT(record.capacity(), size_t{1} << 20);
  }
}

TEST(Record, SeveralGzipStreamsAreOneFileAndOtherRemaindersAreNone) {
  const std::string path = TestFile("joined");
  WriteContents(path, Contents(kGolden[2]) + Contents(kGolden[2]));
  Strings read, twice = GoldenRecords();
  for (const std::string& record : GoldenRecords()) twice.push_back(record);
  EXPECT_TRUE(ReadRecords(path, Compression::kGzip, &read).ok());
  EXPECT_EQ(read, twice);
  WriteContents(path, Contents(kGolden[1]) + "more");
  EXPECT_EQ(ReadRecords(path, Compression::kZlib, &read).code(), StatusCode::kDataLoss);
}

TEST(Record, NamesOfCompressions) {
  EXPECT_EQ(ParseCompression("GZIP").value(), Compression::kGzip);
  EXPECT_EQ(ParseCompression("").value(), Compression::kNone);
  EXPECT_EQ(ParseCompression("gzip").status().code(), StatusCode::kInvalidArgument);
}

Strings Lines(const std::string& text, int64_t from = 0) {
  const std::string path = TestFile("lines");
  WriteContents(path, text);
  auto stream = InputStream::Open(Env::Real(), path, Compression::kNone);
  CHECK_OK(stream.status());
  CHECK_OK((*stream)->Skip(from));
  Strings lines;
  for (std::string line;;) {
    if (!(*stream)->ReadLine(&line).value()) break;
    lines.push_back(line);
  }
  return lines;
}

TEST(InputStream, Lines) {
  EXPECT_EQ(Lines(""), Strings());
  EXPECT_EQ(Lines("\n"), Strings({""}));
  EXPECT_EQ(Lines("a\n\nb"), Strings({"a", "", "b"}));
  EXPECT_EQ(Lines("a\r\nb\r"), Strings({"a", "b"}));
  EXPECT_EQ(Lines("abc\ndef\n", 4), Strings({"def"}));
  const std::string longest(700'000, 'x');  // over several blocks
  EXPECT_EQ(Lines("a\n" + longest + "\nb\n"), Strings({"a", longest, "b"}));
  EXPECT_EQ(Lines(longest + "\nb\n", 700'001), Strings({"b"}));
}

}  // namespace
}  // namespace penstock

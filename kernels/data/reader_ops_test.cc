// SPDX-License-Identifier: Apache-2.0
//
// Tests readers: keys, values, counters and end conditions are as in TensorFlow 2.21.
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "core/base/env.h"
#include "core/op/testing/op_runner.h"
#include "core/record/record_writer.h"

namespace penstock {
namespace {

using Strings = std::vector<std::string>;

std::string Write(const std::string& name, string_view contents) {
  const std::string path = testing::TempDir() + "/" + name;
  auto file = Env::Real().NewWritableFile(path);
  CHECK_OK(file.status());
  CHECK_OK((*file)->Append(contents));
  CHECK_OK((*file)->Close());
  return path;
}

// A reader and its queue.
class TestReader {
 public:
  TestReader(const std::string& op, Attrs attrs, const Strings& work, bool v2 = true)
      : suffix_(v2 ? "V2" : "") {
    OpRunner reader(op + suffix_, resources_), queue("FIFOQueue" + suffix_, resources_);
    for (const auto& [name, value] : attrs) reader.Attr(name, value);
    created_ = reader.Run().status();
    if (!created_.ok()) return;
    handle_ = *reader.Run1();
    queue_ = *queue.Attr("component_types", std::vector<DType>{DType::kString})
                  .Attr("shapes", std::vector<PartialShape>{PartialShape::Scalar()})
                  .Run1();
    OpRunner enqueue("QueueEnqueueMany" + suffix_, resources_),
        close("QueueClose" + suffix_, resources_);
    CHECK_OK(enqueue.In(queue_).InList({Tensor::Vector<std::string>(work)}).Run().status());
    CHECK_OK(close.In(queue_).Run().status());
  }

  const Status& made() const { return created_; }

  // Returns "key value", or the error.
  std::string Read() {
    OpRunner read("ReaderRead" + suffix_, resources_);
    const auto record = read.In(handle_).In(queue_).Run();
    if (!record.ok()) return Text(record.status());
    return Name((*record)[0].scalar<std::string>()) + " " + (*record)[1].scalar<std::string>();
  }
  Strings ReadAll() {
    Strings all;
    do {
      all.push_back(Read());
    } while (!absl::StrContains(all.back(), "OUT_OF_RANGE"));
    all.pop_back();
    return all;
  }
  std::string ReadUpTo(int64_t n) {
    OpRunner read("ReaderReadUpTo" + suffix_, resources_);
    const auto records = read.In(handle_).In(queue_).In(Tensor::Scalar(n)).Run();
    if (!records.ok()) return Text(records.status());
    Strings all;
    for (int64_t i = 0; i < (*records)[0].num_elements(); ++i) {
      all.push_back(Name((*records)[0].flat<std::string>()[i]) + " " +
                    (*records)[1].flat<std::string>()[i]);
    }
    return absl::StrJoin(all, ", ");
  }
  std::string Counts() {
    return StrCat(Use("ReaderNumRecordsProduced")->scalar<int64_t>(), " of ",
                  Use("ReaderNumWorkUnitsCompleted")->scalar<int64_t>());
  }
  std::string State() { return Use("ReaderSerializeState")->scalar<std::string>(); }
  Status Restore(const std::string& state) {
    OpRunner restore("ReaderRestoreState" + suffix_, resources_);
    return restore.In(handle_).In(Tensor::Scalar(state)).Run().status();
  }
  Status Reset() {
    OpRunner reset("ReaderReset" + suffix_, resources_);
    return reset.In(handle_).Run().status();
  }

 private:
  StatusOr<Tensor> Use(const std::string& op) {
    OpRunner runner(op + suffix_, resources_);
    return runner.In(handle_).Run1();
  }
  static std::string Text(const Status& status) {
    return StrCat(StatusCodeToString(status.code()), ": ", status.message());
  }
  // Returns `key` without the directory.
  static std::string Name(const std::string& key) { return key.substr(key.rfind('/') + 1); }

  const std::string suffix_;
  const std::shared_ptr<ResourceStore> resources_ = std::make_shared<ResourceStore>();
  Tensor handle_, queue_;
  Status created_;
};

TEST(Readers, Identity) {
  for (const bool v2 : {false, true}) {
    TestReader reader("IdentityReader", {}, {"x", "y"}, v2);
    EXPECT_EQ(reader.Read(), "x x");
    EXPECT_EQ(reader.Counts(), "1 of 1");
    EXPECT_EQ(reader.Read(), "y y");
    EXPECT_EQ(reader.State(), "\x08\x02\x10\x02\x18\x02");  // as TensorFlow
    EXPECT_EQ(reader.Read(),
              StrCat("OUT_OF_RANGE: FIFOQueue 'FIFOQueue", v2 ? "V2" : "",
                     "' is closed and has insufficient elements (requested 1, current size 0)"));
    ASSERT_TRUE(reader.Reset().ok());
    EXPECT_EQ(reader.Counts(), "0 of 0");
  }
}

TEST(Readers, WholeFiles) {
  TestReader reader("WholeFileReader", {}, {Write("a", "all of it\n"), "/nowhere/to/be/found"});
  EXPECT_EQ(reader.Read(), "a all of it\n");
  EXPECT_EQ(reader.Counts(), "1 of 1");
  EXPECT_TRUE(absl::StrContains(reader.Read(), "NOT_FOUND"));
}

TEST(Readers, Lines) {
  const std::string a = Write("t", "h\na\rb\r\n\nd"), b = Write("u", ""), c = Write("v", "h\ne\n");
  EXPECT_EQ(TestReader("TextLineReader", {{"skip_header_lines", 1}}, {a, b, c}).ReadAll(),
            Strings({"t:2 a\rb", "t:3 ", "t:4 d", "v:2 e"}));
  TestReader reader("TextLineReader", {}, {a, c});
  EXPECT_EQ(reader.ReadUpTo(3), "t:1 h, t:2 a\rb, t:3 ");
  EXPECT_EQ(reader.Counts(), "3 of 0");
  EXPECT_EQ(reader.ReadUpTo(3), "t:4 d");
  EXPECT_EQ(reader.Counts(), "4 of 1");
  EXPECT_EQ(reader.ReadUpTo(0), "");
  EXPECT_TRUE(absl::StrContains(reader.ReadUpTo(-1), "num_records must be >= 0"));
  EXPECT_EQ(reader.ReadUpTo(1'000'000'000'000), "v:1 h, v:2 e");
}

TEST(Readers, RecordsOfFixedLength) {
  const std::string a = Write("f", "HHabcdefghijFF"), b = Write("g", "HHkl"), c = Write("h", "H");
  const auto read = [&](int64_t hop) {
    return TestReader(
               "FixedLengthRecordReader",
               {{"header_bytes", 2}, {"record_bytes", 3}, {"footer_bytes", 2}, {"hop_bytes", hop}},
               {a, b, c})
        .ReadAll();
  };
  EXPECT_EQ(read(0), Strings({"f:0 abc", "f:1 def", "f:2 ghi"}));
  EXPECT_EQ(read(2), Strings({"f:0 abc", "f:1 cde", "f:2 efg", "f:3 ghi"}));
  EXPECT_EQ(read(6), Strings({"f:0 abc", "f:1 ghi"}));
  EXPECT_EQ(TestReader("FixedLengthRecordReader", {{"record_bytes", 0}}, {}).made().message(),
            "record_bytes must be >= 1 and <= 2147483648 not 0");
}

TEST(Readers, TFRecords) {
  const std::string path = testing::TempDir() + "/r";
  for (const auto& [name, compression] : std::vector<std::pair<const char*, Compression>>{
           {"", Compression::kNone}, {"ZLIB", Compression::kZlib}, {"GZIP", Compression::kGzip}}) {
    auto writer = RecordWriter::Create(Env::Real(), path, compression);
    for (const char* record : {"", "a", "bc"}) CHECK_OK((*writer)->Write(record));
    CHECK_OK((*writer)->Close());
    const Attrs attrs = {{"compression_type", name}};
    EXPECT_EQ(TestReader("TFRecordReader", attrs, {path}).ReadAll(),
              Strings({"r:0 ", "r:16 a", "r:33 bc"}));
  }
  EXPECT_EQ(TestReader("TFRecordReader", {{"compression_type", "BZIP"}}, {}).made().message(),
            "compression_type: compression 'BZIP': must be '', 'ZLIB' or 'GZIP'");
  TestReader damaged("TFRecordReader", {}, {Write("bad", "not a record at all")});
  EXPECT_TRUE(absl::StrContains(damaged.Read(), "the record at offset 0 is damaged"));
}

// A new reader of any kind continues from the state of another one, at any position.
TEST(Readers, AnotherOneGoesOnFromTheState) {
  const std::string a = Write("s1", "HH1\n22\n333\n4444\n"), b = Write("s2", "HH5\n66\n");
  const std::string records = testing::TempDir() + "/records";
  auto writer = RecordWriter::Create(Env::Real(), records, Compression::kGzip);
  for (int i = 0; i < 5; ++i) CHECK_OK((*writer)->Write(std::string(i, 'x')));
  CHECK_OK((*writer)->Close());
  struct {
    std::string op;
    Attrs attrs;
    Strings work;
  } cases[] = {
      {"TextLineReader", {{"skip_header_lines", 1}}, {a, b}},
      {"FixedLengthRecordReader",
       {{"record_bytes", 3}, {"hop_bytes", 2}, {"header_bytes", 2}, {"footer_bytes", 1}},
       {a, b}},
      {"TFRecordReader", {{"compression_type", "GZIP"}}, {records, records}},
      {"WholeFileReader", {}, {a, b}},
      {"IdentityReader", {}, {"a", "b"}},
  };
  for (const auto& c : cases) {
    const Strings all = TestReader(c.op, c.attrs, c.work).ReadAll();
    for (size_t read = 0; read <= all.size(); ++read) {
      TestReader first(c.op, c.attrs, c.work);
      for (size_t i = 0; i < read; ++i) first.Read();
      // A reader's state does not include its queue. The second reader's queue is empty, so it
      // reads only the rest of the file that the first reader had begun.
      const std::string state = first.State(), counts = first.Counts();
      Strings rest = first.ReadAll();
      EXPECT_EQ(rest, Strings(all.begin() + static_cast<int64_t>(read), all.end()));
      TestReader second(c.op, c.attrs, {});
      ASSERT_TRUE(second.Restore(state).ok());
      EXPECT_EQ(second.Counts(), counts);
      const Strings of_this_work = second.ReadAll();
      ASSERT_LE(of_this_work.size(), rest.size());
      rest.resize(of_this_work.size());
      EXPECT_EQ(of_this_work, rest) << c.op << " after " << read;
    }
  }
}

TEST(Readers, BadStates) {
  TestReader reader("IdentityReader", {}, {"x"});
  for (const char* state : {"\xff", "\x08\x01\x10\x05", "\x08\x03\x10\x01"}) {
    EXPECT_EQ(reader.Restore(state).code(), StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(reader.Restore("").code(), StatusCode::kOk);
  EXPECT_EQ(reader.Read(), "x x");
}

}  // namespace
}  // namespace penstock

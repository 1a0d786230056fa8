// SPDX-License-Identifier: Apache-2.0
//
// Tests RecordMixer, and the op that takes batches from it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/base/env.h"
#include "core/op/testing/op_runner.h"
#include "core/record/record_writer.h"
#include "kernels/data/record_mixer.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;
using Records = std::vector<std::string>;

Status NeverCancelled() { return OkStatus(); }

class RecordInputTest : public testing::Test {
 protected:
  RecordInputTest() { CHECK_OK(Env::Real().CreateDirectories(folder_)); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  // Writes the records "NAME0", "NAME1", ...
  void WriteFile(const std::string& name, int records) const {
    auto writer = RecordWriter::Create(Env::Real(), Path(name));
    CHECK_OK(writer.status());
    for (int i = 0; i < records; ++i) CHECK_OK((*writer)->Write(StrCat(name, i)));
    CHECK_OK((*writer)->Close());
  }
  RecordMixer::Options Options(int64_t buffer_max = 4) const {
    return {.pattern = Path("*"), .seed = 3, .buffer_max = buffer_max, .readers_max = 2};
  }
  static Records Take(RecordMixer& mixer, int64_t count) {
    Records records(count);
    const Status status = mixer.Take(count, records.data(), NeverCancelled);
    EXPECT_TRUE(status.ok()) << status;
    return records;
  }
  static std::string Error(RecordMixer& mixer) {
    Records records(1);
    return std::string(mixer.Take(1, records.data(), NeverCancelled).message());
  }

  const std::string folder_ = StrCat(testing::TempDir(), "/record_input_",
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(RecordInputTest, EachRecordComesOnceInEveryEpoch) {
  Records all;
  for (const char* name : {"a", "b", "c"}) {
    WriteFile(name, 5);
    for (int i = 0; i < 5; ++i) all.push_back(StrCat(name, i));
  }
  WriteFile("empty", 0);
  for (const int64_t buffer_max : {1, 4, 100}) {
    RecordMixer mixer(Options(buffer_max), Env::Real()), same(Options(buffer_max), Env::Real());
    std::set<Records> orders;
    for (int epoch = 0; epoch < 3; ++epoch) {
      Records records = Take(mixer, 15);
      // Reading ahead does not change the order.
      Records with_fill;
      for (int i = 0; i < 15; ++i) {
        with_fill.push_back(Take(same, 1)[0]);
        if (i % 3 != 1) same.Fill();
      }
      EXPECT_EQ(with_fill, records);
      orders.insert(records);
      std::sort(records.begin(), records.end());
      EXPECT_EQ(records, all) << "buffer_max " << buffer_max;
    }
    // There are only six orders of three files, so two epochs may have the same order.
    EXPECT_GE(orders.size(), buffer_max == 1 ? 2u : 3u) << "buffer_max " << buffer_max;
  }
}

TEST_F(RecordInputTest, TheSeedAndTheShiftDecideTheOrder) {
  for (const char* name : {"a", "b", "c", "d"}) WriteFile(name, 1);
  RecordMixer::Options options = Options(/*buffer_max=*/1);
  options.readers_max = 1;
  RecordMixer plain(options, Env::Real());
  Records order = Take(plain, 4);
  options.shift_ratio = 0.5;
  RecordMixer shifted(options, Env::Real());
  std::rotate(order.begin(), order.begin() + 2, order.end());
  EXPECT_EQ(Take(shifted, 4), order);
  std::set<Records> orders;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    options.seed = seed;
    RecordMixer mixer(options, Env::Real());
    orders.insert(Take(mixer, 4));
  }
  EXPECT_GT(orders.size(), 5u);
}

TEST_F(RecordInputTest, ErrorsNameTheFileAndStay) {
  RecordMixer none(Options(), Env::Real());
  EXPECT_THAT(Error(none), HasSubstr("no file matches file_pattern"));
  WriteFile("empty", 0);
  RecordMixer empty(Options(), Env::Real());
  EXPECT_THAT(Error(empty), HasSubstr("have no records"));
  const auto broken = Env::Real().NewWritableFile(Path("broken"));
  CHECK_OK(broken.status());
  CHECK_OK((*broken)->Append("no record at all, but long enough for a header"));
  CHECK_OK((*broken)->Close());
  RecordMixer damaged(Options(), Env::Real());
  EXPECT_THAT(Error(damaged), HasSubstr("broken"));
  CHECK_OK(Env::Real().RemoveFile(Path("broken")));
  EXPECT_THAT(Error(damaged), HasSubstr("broken"));
}

TEST_F(RecordInputTest, ACancelledStepLeavesTheMixerUsable) {
  WriteFile("a", 3);
  RecordMixer mixer(Options(), Env::Real());
  Records records(1);
  EXPECT_EQ(mixer.Take(1, records.data(), [] { return Cancelled("the step"); }).code(),
            StatusCode::kCancelled);
  Take(mixer, 3);
}

TEST_F(RecordInputTest, TheOpReturnsBatches) {
  WriteFile("a", 3);
  const auto run = [&](int64_t batch, const std::string& compression = "") {
    return OpRunner("RecordInput")
        .Attr("file_pattern", Path("*"))
        .Attr("batch_size", batch)
        .Attr("compression_type", compression)
        .Run1();
  };
  const auto batch = run(6);
  ASSERT_TRUE(batch.ok()) << batch.status();
  Records records(batch->data<std::string>(), batch->data<std::string>() + 6);
  std::sort(records.begin(), records.end());
  EXPECT_EQ(records, (Records{"a0", "a0", "a1", "a1", "a2", "a2"}));
  EXPECT_THAT(std::string(run(0).status().message()), HasSubstr("batch_size must be from 1"));
  EXPECT_THAT(std::string(run(1, "BZIP").status().message()), HasSubstr("compression 'BZIP'"));
}

}  // namespace
}  // namespace penstock

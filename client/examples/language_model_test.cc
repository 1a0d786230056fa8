// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "client/examples/language_model_data.h"
#include "client/examples/language_model_training.h"

namespace penstock::examples {
namespace {

class LanguageModelTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = StrCat(std::getenv("TEST_TMPDIR"), "/texts_",
                  testing::UnitTest::GetInstance()->current_test_info()->name());
    ASSERT_TRUE(Env::Real().CreateDirectories(dir_).ok());
  }
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(Env::Real().WriteFileAtomically(StrCat(dir_, "/", name), text).ok());
  }
  std::string dir_;
};

TEST_F(LanguageModelTest, TextsArePartedAndCut) {
  Write("a", "first\n%\nsecond\nof two lines\n%\n");
  Write("a.dat", "index");
  Write("b", std::string("no\0text", 7));
  Write("c", "\n%\n0123456789abc\n");
  const auto texts = ReadTexts(Env::Real(), dir_, 10);
  ASSERT_TRUE(texts.ok()) << texts.status();
  EXPECT_EQ(texts->test, (std::vector<std::string>{"first"}));
  EXPECT_EQ(texts->train,
            (std::vector<std::string>{"second\nof ", "two lines", "0123456789", "abc"}));
  EXPECT_FALSE(ReadTexts(Env::Real(), dir_ + "/missing", 10).ok());
}

TEST_F(LanguageModelTest, BatchesHoldEveryTextOncePerEpoch) {
  std::vector<std::string> texts;
  for (int i = 0; i < 70; ++i) texts.push_back(std::string(i % 9 + 1, static_cast<char>('A' + i)));
  TextBatches batches(texts, 8, 1), again(texts, 8, 1);
  ASSERT_EQ(batches.per_epoch(), 8);
  std::set<char> seen;
  for (int64_t i = 8; i < 16; ++i) {
    const TextBatch batch = batches.Get(i), same = again.Get(i);
    EXPECT_EQ(batch.inputs.ToString(1000), same.inputs.ToString(1000));
    const int64_t time = batch.inputs.dim(1);
    for (int row = 0; row < 8; ++row) {
      const uint8_t* const in = batch.inputs.data<uint8_t>() + row * time;
      const uint8_t* const out = batch.targets.data<uint8_t>() + row * time;
      const int32_t length = batch.lengths.data<int32_t>()[row];
      EXPECT_EQ(in[0], 0);
      EXPECT_EQ(out[length - 1], 0);
      for (int t = 0; t + 1 < length; ++t) EXPECT_EQ(in[t + 1], out[t]);
      EXPECT_TRUE(seen.insert(static_cast<char>(out[0])).second);
    }
  }
  EXPECT_EQ(seen.size(), 64u);
  EXPECT_LT(batches.padding(), 0.15);  // 0.44 were it not for the grouping
}

TEST_F(LanguageModelTest, LearnsToRepeat) {
  std::string file;
  for (int i = 0; i < 400; ++i) StrAppend(&file, i % 2 == 0 ? "abcabcabc" : "xyzxyz", "\n%\n");
  Write("a", file);
  const LanguageModelFlags flags{.size = {.units = 16, .embedding = 8},
                                 .steps = 800,
                                 .batch_size = 10,
                                 .length_max = 12,
                                 .learning_rate = 0.05,
                                 .data_dir = dir_};
  testing::internal::CaptureStdout();
  const Status status = TrainLanguageModel(flags, "");
  const std::string said = testing::internal::GetCapturedStdout();
  ASSERT_TRUE(status.ok()) << status;
  const std::string marker = "test bits per character: ";
  const size_t at = said.find(marker);
  ASSERT_NE(at, std::string::npos) << said;
  // One bit says which of the two it is; the other 9 or 6 steps are certain.
  EXPECT_LT(std::atof(said.c_str() + at + marker.size()), 0.2) << said;
}

}  // namespace
}  // namespace penstock::examples

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "client/coordinator.h"
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

// Checks that inputs and targets are the same texts, shifted by one step, and end in zeros. Adds
// the texts to `*texts`.
void ExpectRows(const TextBatch& batch, std::multiset<std::string>* texts) {
  const int64_t rows = batch.inputs.dim(0), time = batch.inputs.dim(1);
  for (int64_t row = 0; row < rows; ++row) {
    const uint8_t* const in = batch.inputs.data<uint8_t>() + row * time;
    const uint8_t* const out = batch.targets.data<uint8_t>() + row * time;
    const int32_t length = batch.lengths.data<int32_t>()[row];
    EXPECT_EQ(in[0], 0);
    for (int64_t t = length - 1; t < time; ++t) EXPECT_EQ(out[t], 0);
    for (int64_t t = 0; t + 1 < time; ++t) EXPECT_EQ(in[t + 1], t + 1 < length ? out[t] : 0);
    texts->emplace(out, out + length - 1);
  }
}

std::vector<std::string> Letters(int count) {
  std::vector<std::string> texts;
  for (int i = 0; i < count; ++i) texts.emplace_back(i % 9 + 1, static_cast<char>('A' + i));
  return texts;
}

TEST_F(LanguageModelTest, ABatchIsPaddedToItsLongest) {
  const std::vector<std::string> texts = Letters(20);
  const TextBatch batch = MakeBatch(texts, 5, 15);
  EXPECT_EQ(batch.inputs.shape(), Shape({10, 10}));
  std::multiset<std::string> seen;
  ExpectRows(batch, &seen);
  EXPECT_EQ(seen, std::multiset<std::string>(texts.begin() + 5, texts.begin() + 15));
}

TEST_F(LanguageModelTest, QueuesHoldEveryTextOncePerEpoch) {
  // Nine lengths with eight texts each, so each bucket has only full batches.
  const std::vector<std::string> texts = Letters(72);
  client::Program program;
  client::QueueRunners runners(program);
  const QueuedBatch batch = QueueTexts(runners, texts, 4, /*seed=*/1);
  const Output padding = batch.padding();
  const auto session = client::Session::New(program);
  client::Coordinator coordinator;
  runners.Start(**session, coordinator);
  std::multiset<std::string> seen;
  double padded = 0;
  // Some texts of the second epoch come before the last ones of the first; their number is random.
  const int count = 10 * 72 / 4;
  for (int i = 0; i < count; ++i) {
    const auto got = (*session)->Run({batch.inputs, batch.targets, batch.lengths, padding});
    ASSERT_TRUE(got.ok()) << got.status();
    ExpectRows({(*got)[0], (*got)[1], (*got)[2]}, &seen);
    padded += (*got)[3].scalar<float>() / count;
  }
  coordinator.RequestStop();
  EXPECT_TRUE(coordinator.Join().ok());
  // Texts of an epoch that are still in the queues were not seen.
  for (const std::string& text : texts) EXPECT_NEAR(seen.count(text), 10, 6) << text;
  EXPECT_EQ(padded, 0);
  EXPECT_NEAR(UngroupedPadding(texts, 4), 0.3, 0.1);
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
  // The ideal is 0.12: one bit for the choice of the text, none for the other 9 or 6 characters.
  // The last batches may make the prediction of the first character worse, because a batch has
  // texts of one length, and so of one kind. An untrained model has 2.8.
  EXPECT_LT(std::atof(said.c_str() + at + marker.size()), 1) << said;
}

}  // namespace
}  // namespace penstock::examples

// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/base/env.h"
#include "core/op/testing/op_runner.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Writes 30 lines of twelve words, and three rare ones: 363 words.
std::string TextFile() {
  std::string text;
  for (int i = 0; i < 30; ++i) text += "the cat sat on the mat the dog sat on the cat\n";
  const std::string path = testing::TempDir() + "/text";
  CHECK_OK(Env::Real().WriteFileAtomically(path, text + "rare words here"));
  return path;
}

OpRunner Skipgram(int64_t batch, int64_t window, float subsample = 0) {
  return OpRunner("Skipgram")
      .Attr("filename", TextFile())
      .Attr("batch_size", batch)
      .Attr("window_size", window)
      .Attr("subsample", subsample);
}

TEST(Skipgram, VocabularyIsTensorFlows) {
  const auto outputs = Skipgram(8, 2).Run();
  ASSERT_EQ(outputs.status(), OkStatus());
  const auto words = (*outputs)[0].flat<std::string>();
  EXPECT_THAT((*outputs)[1].flat<int32_t>(), ElementsAre(3, 120, 60, 60, 60, 30, 30));
  ASSERT_EQ(words.size(), 7);
  EXPECT_EQ(words[0], "UNK");
  EXPECT_EQ(words[1], "the");
  EXPECT_EQ(std::set<std::string>(words.begin() + 2, words.begin() + 5),
            (std::set<std::string>{"cat", "on", "sat"}));
  EXPECT_EQ((*outputs)[2].scalar<int64_t>(), 363);
  EXPECT_EQ((*outputs)[5].shape(), Shape({8}));
}

// With a window of 1, every word is paired with the word before and the word after it, once each.
TEST(Skipgram, PairsAreNeighbours) {
  const auto outputs = Skipgram(9, 1).Run();
  ASSERT_EQ(outputs.status(), OkStatus());
  std::vector<std::string> pairs;
  const auto words = (*outputs)[0].flat<std::string>();
  for (int i = 0; i < 9; ++i) {
    pairs.push_back(StrCat(words[(*outputs)[5].flat<int32_t>()[i]], "-",
                           words[(*outputs)[6].flat<int32_t>()[i]]));
  }
  EXPECT_THAT(pairs, ElementsAre("the-cat", "cat-the", "cat-sat", "sat-cat", "sat-on", "on-sat",
                                 "on-the", "the-on", "the-mat"));
  EXPECT_EQ((*outputs)[4].scalar<int64_t>(), 4);  // words whose pairs are complete
}

TEST(Skipgram, EpochsAreCountedAndFrequentWordsLeftOut) {
  const auto all = Skipgram(4000, 1).Run();
  ASSERT_EQ(all.status(), OkStatus());
  // The file is read 1000 words at a time. Each word has two pairs, the first and last have one:
  // 2000 words give 3996 pairs, two more words give 3.
  EXPECT_EQ((*all)[4].scalar<int64_t>(), 2002);
  EXPECT_EQ((*all)[3].scalar<int32_t>(), 3000 / 363);
  const auto some = Skipgram(4000, 1, 0.001f).Run();
  ASSERT_EQ(some.status(), OkStatus());
  const auto frequent = [](const Tensor& examples) {
    return std::count(examples.flat<int32_t>().begin(), examples.flat<int32_t>().end(), 1);
  };
  EXPECT_NEAR(static_cast<double>(frequent((*all)[5])), 4000 * 120 / 363, 100);
  EXPECT_LT(frequent((*some)[5]), frequent((*all)[5]) * 0.8);
}

TEST(Skipgram, Mistakes) {
  EXPECT_THAT(std::string(Skipgram(8, 50).Run().status().message()),
              HasSubstr("contains too little data: 363 words"));
  EXPECT_FALSE(Skipgram(8, 0).Run().ok());
  EXPECT_FALSE(Skipgram(-1, 2).Run().ok());
  EXPECT_EQ(Skipgram(0, 2).Run().status(), OkStatus());
  EXPECT_EQ(
      OpRunner("Skipgram").Attr("filename", "/none").Attr("batch_size", 1).Run().status().code(),
      StatusCode::kNotFound);
}

}  // namespace
}  // namespace penstock

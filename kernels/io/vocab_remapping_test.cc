// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/env.h"
#include "core/op/testing/op_runner.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string VocabularyPath(const std::string& name) {
  return StrCat(testing::TempDir(), testing::UnitTest::GetInstance()->current_test_info()->name(),
                "-", name);
}
std::string WriteVocabulary(const std::string& name, const std::string& text) {
  CHECK_OK(Env::Real().WriteFileAtomically(VocabularyPath(name), text));
  return VocabularyPath(name);
}

StatusOr<std::vector<Tensor>> Remap(const std::string& old_words, int64_t offset, int64_t count,
                                    int64_t old_size = -1) {
  return OpRunner("GenerateVocabRemapping")
      .In(Tensor::Scalar(WriteVocabulary("new", "fig\napple\nkiwi\nplum\n")))
      .In(Tensor::Scalar(WriteVocabulary("old", old_words)))
      .Attr("new_vocab_offset", offset)
      .Attr("num_new_vocab", count)
      .Attr("old_vocab_size", old_size)
      .Run();
}
std::string Message(const Status& status) { return std::string(status.message()); }

TEST(GenerateVocabRemapping, FindsOldLines) {
  const auto all = Remap("plum\r\napple\npear\n", 0, 4);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT((*all)[0].flat<int64_t>(), ElementsAre(-1, 1, -1, 0));
  EXPECT_EQ((*all)[1].scalar<int32_t>(), 2);
  const auto some = Remap("plum\napple\npear", 1, 3, 1);
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_THAT((*some)[0].flat<int64_t>(), ElementsAre(-1, -1, 0));
  EXPECT_EQ((*some)[1].scalar<int32_t>(), 1);
}

TEST(GenerateVocabRemapping, MistakesAreNamed) {
  EXPECT_THAT(Message(Remap("plum\n", 2, 3).status()), HasSubstr("beyond the 4 lines"));
  EXPECT_THAT(Message(Remap("plum\n", 5, 0).status()), HasSubstr("new_vocab_offset 5"));
  EXPECT_THAT(Message(Remap("plum\n", 0, 1, 2).status()), HasSubstr("old_vocab_size is 2"));
  EXPECT_THAT(Message(Remap("a\nb\na\n", 0, 1).status()), HasSubstr("'a' in lines 0 and 2"));
}

class LoadAndRemapMatrix : public testing::Test {
 protected:
  void SetUp() override {
    // [[0, 1, 2], [10, 11, 12], ...]
    Tensor matrix(DType::kFloat, {5, 3});
    for (int i = 0; i < 15; ++i) {
      matrix.mutable_data<float>()[i] = static_cast<float>(i / 3 * 10 + i % 3);
    }
    ASSERT_TRUE(OpRunner("SaveV2")
                    .In(Tensor::Scalar(VocabularyPath("ckpt")))
                    .In(Tensor::Vector<std::string>({"m", "v"}))
                    .In(Tensor::Vector<std::string>({"", ""}))
                    .InList({matrix, Tensor::Vector<float>({1, 2})})
                    .Run()
                    .ok());
  }
  StatusOr<Tensor> Load(const std::vector<int64_t>& rows, const std::vector<int64_t>& columns,
                        const std::vector<float>& initial, int64_t num_cols,
                        const std::string& name = "m") {
    return OpRunner("LoadAndRemapMatrix")
        .In(Tensor::Scalar(VocabularyPath("ckpt")))
        .In(Tensor::Scalar(name))
        .In(Tensor::Vector(rows))
        .In(Tensor::Vector(columns))
        .In(Tensor::Vector(initial))
        .Attr("num_rows", num_rows_ < 0 ? static_cast<int64_t>(rows.size()) : num_rows_)
        .Attr("num_cols", num_cols)
        .Attr("max_rows_in_memory", max_rows_)
        .Run1();
  }
  int64_t max_rows_ = -1, num_rows_ = -1;
};

TEST_F(LoadAndRemapMatrix, MovesRowsAndColumns) {
  for (const int64_t most : {-1, 1, 2, 100}) {
    max_rows_ = most;
    const auto rows = Load({4, -1, 1}, {}, {7, 8, 9}, 3);
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_THAT(rows->flat<float>(), ElementsAre(40, 41, 42, 7, 8, 9, 10, 11, 12));
    const auto both = Load({3, -1, 0}, {2, -1}, {5, 6, 7, 8}, 2);
    ASSERT_TRUE(both.ok()) << both.status();
    EXPECT_THAT(both->flat<float>(), ElementsAre(32, 5, 6, 7, 2, 8));
  }
}

TEST_F(LoadAndRemapMatrix, MistakesAreNamed) {
  EXPECT_THAT(Message(Load({0, 0}, {}, {}, 3).status()), HasSubstr("row_remapping has 0 twice"));
  EXPECT_THAT(Message(Load({5}, {}, {}, 3).status()), HasSubstr("row_remapping[0] is 5"));
  EXPECT_THAT(Message(Load({0}, {3}, {}, 1).status()), HasSubstr("col_remapping[0] is 3"));
  EXPECT_THAT(Message(Load({0}, {}, {}, 2).status()), HasSubstr("has 3 columns, not 2"));
  EXPECT_THAT(Message(Load({-1}, {}, {1, 2}, 3).status()), HasSubstr("must have 3 numbers"));
  EXPECT_THAT(Message(Load({0}, {}, {}, 3, "v").status()), HasSubstr("must be a float matrix"));
  EXPECT_EQ(Load({0}, {}, {}, 3, "none").status().code(), StatusCode::kNotFound);
  num_rows_ = 2;
  EXPECT_THAT(Message(Load({0}, {}, {}, 3).status()), HasSubstr("vector of 2 numbers"));
}

}  // namespace
}  // namespace penstock

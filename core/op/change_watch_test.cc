// SPDX-License-Identifier: Apache-2.0
#include "core/op/change_watch.h"

#include <optional>
#include <utility>
#include <vector>

#include "core/op/variable.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr int64_t kRows = 4096, kRow = 512;  // a row is half a chunk

using Ranges = std::vector<std::pair<int64_t, int64_t>>;

Ranges Taken(ChangeWatch& watch) {
  Ranges ranges;
  watch.Take([&](int64_t begin, int64_t end) { ranges.emplace_back(begin, end); });
  return ranges;
}

struct Watched {
  Watched() : variable("w", DType::kFloat, {kRows, kRow}) {
    CHECK_OK(variable.Assign(Tensor(DType::kFloat, {kRows, kRow}), true, {}));
    watch.emplace(variable, kRows * kRow * 4);
  }
  Status UpdateRows(const std::vector<int64_t>& rows) {
    Variable* const one[] = {&variable};
    return Variable::Update(
        one, {}, [](absl::Span<Tensor* const>) { return OkStatus(); },
        [&](size_t) { return Slices(kRow, rows); });
  }
  Variable variable;
  std::optional<ChangeWatch> watch;
};

TEST(ChangeWatch, NotesTheChunksOfChangedRows) {
  Watched w;
  EXPECT_EQ(Taken(*w.watch), Ranges());
  ASSERT_TRUE(w.UpdateRows({kRows - 1, 5, 4}).ok());
  EXPECT_EQ(Taken(*w.watch), (Ranges{{8192, 12288}, {kRows * 2048 - 4096, kRows * 2048}}));
  EXPECT_EQ(Taken(*w.watch), Ranges()) << "what was taken is forgotten";
  EXPECT_FALSE(w.watch->all());
}

TEST(ChangeWatch, AnUpdateOfTheWholeValueMarksEverything) {
  Watched w;
  Variable* const one[] = {&w.variable};
  ASSERT_TRUE(Variable::Update(one, {}, [](absl::Span<Tensor* const>) { return OkStatus(); }).ok());
  EXPECT_TRUE(w.watch->all());
}

TEST(ChangeWatch, SoDoesAnAssignment) {
  Watched w;
  ASSERT_TRUE(w.variable.Assign(Tensor(DType::kFloat, {kRows, kRow}), true, {}).ok());
  EXPECT_TRUE(w.watch->all());
}

TEST(ChangeWatch, SeesItsOwnVariableOnly) {
  Watched w, other;
  ASSERT_TRUE(other.UpdateRows({1}).ok());
  EXPECT_EQ(Taken(*w.watch), Ranges());
  EXPECT_EQ(Taken(*other.watch), (Ranges{{0, 4096}}));
  w.watch.reset();
  other.watch.reset();
  EXPECT_TRUE(w.UpdateRows({1}).ok());
}

TEST(ChangeWatch, AFailedUpdateChangesNothing) {
  Watched w;
  Variable* const one[] = {&w.variable};
  ASSERT_FALSE(
      Variable::Update(one, {}, [](absl::Span<Tensor* const>) { return Internal("no"); }).ok());
  EXPECT_FALSE(w.watch->all());
}

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Tests exports of changes: merging them to an older copy of a table makes it equal to the table.
#include <map>
#include <random>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/dynamic_table/testing/table.h"

namespace penstock {
namespace {

using testing::HasSubstr;

// Returns the rows by key, without regard to the order of the buckets and of the updates.
std::map<int64_t, std::string> RowsByKey(const TestTable& table) {
  const auto rows = table.Export(1, {0});
  std::map<int64_t, std::string> found;
  for (int64_t i = 0; i < rows[0].dim(0); ++i) {
    std::string& text = found[rows[0].data<int64_t>()[i]];
    for (int k = 1; k < 5; ++k) StrAppend(&text, rows[k].Slice(i, i + 1).ToString(100), " ");
  }
  return found;
}

// Returns the steps of the last updates, in ascending order.
std::multiset<int64_t> StepsOf(const TestTable& table) {
  const auto rows = table.Export(1, {0});
  const auto steps = rows[4].flat<int64_t>();
  return {steps.begin(), steps.end()};
}

// A checkpoint, merged with the changes after it, gives the same table: also with limits, with keys
// that are dropped and get a row again, and after saves that fail.
TEST(TableChanges, ChangesMakeTheSameTable) {
  const std::vector<int64_t> all = {0, 1, 2};
  for (const bool limited : {false, true}) {
    Attrs attrs = Uniform(2, {0.5f});
    if (limited) attrs["max_rows"] = int64_t{16 * 6};
    const TestTable table(attrs), copy(attrs);
    std::mt19937_64 random(limited);
    std::string base;
    int64_t rows_saved = 0;
    size_t unwritten = 0;  // saves since the base
    for (int save = 0; save < 60; ++save) {
      for (int64_t step = 0; step < 3; ++step) {
        std::vector<int64_t> ids(random() % 30);
        for (int64_t& id : ids) id = static_cast<int64_t>(random() % 300);
        ASSERT_TRUE(
            table.Apply("Adagrad", ids, Gradients(random, std::ssize(ids), 2), {0.1f}, save).ok());
        const auto gone = static_cast<int64_t>(random() % 300);
        ASSERT_TRUE(table.Do("DynamicTableErase", {Ids({gone})}).ok());
      }
      const std::string mark = StrCat("save ", save);
      const auto changes = table.ExportChanges(3, all, mark, base);
      if (random() % 4 == 0) {  // the mark of a save that failed
        ++unwritten;
        continue;
      }
      for (int i = 0; i < 3; ++i) {
        const std::string found = changes[6 * 3 + i].scalar<std::string>();
        EXPECT_TRUE(found == base || (found.empty() && unwritten >= 4)) << found;
        rows_saved += changes[i].dim(0);
      }
      const Status merged = copy.Merge(3, all, changes);
      ASSERT_TRUE(merged.ok()) << merged;
      ASSERT_EQ(RowsByKey(copy), RowsByKey(table)) << save;
      base = mark;
      unwritten = 0;
    }
    EXPECT_LT(rows_saved, 60 * table.Size()) << "all rows were saved each time";
    if (!limited) continue;
    // Both tables drop rows in the order of their steps.
    const std::vector<int64_t> ids = {1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007};
    for (const TestTable* each : {&table, &copy}) {
      ASSERT_TRUE(each->Apply("Adagrad", ids, Gradients(random, 8, 2), {0.1f}, 60).ok());
    }
    EXPECT_EQ(StepsOf(copy), StepsOf(table));
  }
}

TEST(TableChanges, ChangesAreCompleteWhereTheBaseIsUnknown) {
  const TestTable table(Uniform(1));
  const Tensor grad = Tensor::Of<float>({2, 1}, {1, 2});
  ASSERT_TRUE(table.Apply("GradientDescent", {1, 2}, grad, {0.1f}).ok());
  const auto rows = [&](const std::string& mark, const std::string& base) {
    const auto changes = table.ExportChanges(1, {0}, mark, base);
    EXPECT_EQ(changes[6].scalar<std::string>(), changes[0].dim(0) == 2 ? "" : base);
    return changes[0].dim(0);
  };
  EXPECT_EQ(rows("a", ""), 2);
  EXPECT_EQ(rows("b", "a"), 0);
  EXPECT_EQ(rows("c", "?"), 2);
  EXPECT_EQ(rows("d", "a"), 0);
  EXPECT_EQ(rows("", "d"), 0);
  EXPECT_EQ(rows("e", "d"), 0);
  EXPECT_EQ(rows("f", "a"), 2) << "a is the fifth mark before";
  // After an import, the table no longer knows which rows have changed since a mark.
  std::vector<std::vector<Tensor>> lists;
  for (const Tensor& tensor : table.Export(1, {0})) lists.push_back({tensor});
  ASSERT_TRUE(table.Import(lists).ok());
  EXPECT_EQ(rows("g", "f"), 2);
}

TEST(TableChanges, MergeRefusesWhatDoesNotFit) {
  const TestTable table(Uniform(2)), other(Uniform(1));
  ASSERT_TRUE(other.Apply("GradientDescent", {1}, Tensor::Of<float>({1, 1}, {1}), {0.1f}).ok());
  auto changes = other.ExportChanges(1, {0}, "", "");
  EXPECT_THAT(std::string(table.Merge(1, {0}, changes).message()),
              HasSubstr("values must be float[1,2], are float[1,1]"));
  changes[5] = Ids({1}).Reshaped({1, 1});
  EXPECT_THAT(std::string(other.Merge(1, {0}, changes).message()), HasSubstr("ids of table"));
  changes[5] = Ids({});
  changes[6] = Tensor::Vector<std::string>({"a"});
  EXPECT_THAT(std::string(other.Merge(1, {0}, changes).message()),
              HasSubstr("bases must be a scalar, has shape [1]"));
}

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Tests the three steps of a save that does not stop updates.
#include "kernels/io/snapshot.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/base/scheduler.h"
#include "core/op/private_attrs.h"
#include "gtest/gtest.h"
#include "kernels/state/testing/test_variables.h"

namespace penstock {
namespace {

constexpr int64_t kRows = 4096, kLength = 256;  // 4 MiB: large enough to be copied ahead

class SnapshotTest : public testing::Test {
 protected:
  SnapshotTest() {
    table_ = variables_.New(Tensor::Of<float>({kRows, kLength}, Ones()));
    small_ = variables_.New(Tensor::Vector<float>({1, 2}));
  }
  static std::vector<float> Ones() { return std::vector<float>(kRows * kLength, 1); }
  OpRunner Op(const char* op, const char* save) {
    OpRunner runner = variables_.Op(op);
    runner.Attr("shared_name", "s").In(Tensor::Scalar<std::string>(save));
    return runner;
  }
  Status CopyAhead(const char* save) {
    return Op("SnapshotCopyAhead", save).InList({table_, small_}).Run().status();
  }
  StatusOr<std::vector<Tensor>> Cut(const char* save) {
    return Op("SnapshotCut", save)
        .InList({table_, small_})
        .Attr("dtypes", std::vector<DType>{DType::kFloat, DType::kFloat})
        .Run();
  }
  Status Keep(const char* save, const std::vector<Tensor>& values) {
    return Op("SnapshotKeep", save).InList(values).Run().status();
  }
  StatusOr<std::vector<Tensor>> Take(const char* save) {
    return Op("SnapshotTake", save)
        .Attr("dtypes", std::vector<DType>{DType::kFloat, DType::kFloat})
        .Run();
  }
  void AddToRow(int64_t row) {
    const Tensor update = Tensor::Of<float>({1, kLength}, std::vector<float>(kLength, 1));
    CHECK_OK(variables_.Op("ResourceScatterAdd")
                 .In(table_)
                 .In(Tensor::Vector<int64_t>({row}))
                 .In(update)
                 .Run()
                 .status());
  }
  float At(const Tensor& table, int64_t row) { return table.flat<float>()[row * kLength]; }

  TestVariables variables_;
  Tensor table_, small_;
};

TEST_F(SnapshotTest, IsOfTheMomentOfTheCut) {
  ASSERT_EQ(CopyAhead("a"), OkStatus());
  AddToRow(7);
  const auto cut = Cut("a");
  ASSERT_TRUE(cut.ok()) << cut.status();
  AddToRow(7);
  AddToRow(8);
  EXPECT_EQ(At((*cut)[0], 7), 2) << "the update between copying and cutting";
  EXPECT_EQ(At((*cut)[0], 8), 1);
  EXPECT_EQ(At(TestVariables::Value(table_), 7), 3);
  EXPECT_EQ((*cut)[1].flat<float>()[1], 2);
  ASSERT_EQ(Keep("a", *cut), OkStatus());
  const auto taken = Take("a");
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(At((*taken)[0], 7), 2);
}

TEST_F(SnapshotTest, BelongsToOneSession) {
  const auto cut = Cut("a");
  ASSERT_TRUE(cut.ok()) << cut.status();
  const auto in_session = [&](const char* op, const char* session) {
    OpRunner runner = Op(op, "a");
    runner.Attr(kPrivateContainerAttr, std::string(session));
    return runner;
  };
  ASSERT_EQ(in_session("SnapshotKeep", "session/1").InList(*cut).Run().status(), OkStatus());
  const std::vector<DType> types = {DType::kFloat, DType::kFloat};
  EXPECT_EQ(in_session("SnapshotTake", "session/2").Attr("dtypes", types).Run().status().code(),
            StatusCode::kFailedPrecondition);
  EXPECT_TRUE(in_session("SnapshotTake", "session/1").Attr("dtypes", types).Run().ok());
}

TEST_F(SnapshotTest, AnUpdateOfRowsDoesNotCopyTheTable) {
  ASSERT_EQ(CopyAhead("a"), OkStatus());
  const auto cut = Cut("a");
  ASSERT_TRUE(cut.ok()) << cut.status();
  const void* const place = TestVariables::Value(table_).raw_data();
  EXPECT_NE((*cut)[0].raw_data(), place);
  AddToRow(3);
  EXPECT_EQ(TestVariables::Value(table_).raw_data(), place);
  EXPECT_EQ((*cut)[1].raw_data(), TestVariables::Value(small_).raw_data()) << "shared";
}

TEST_F(SnapshotTest, AVariableThatChangesAsAWholeIsShared) {
  ASSERT_EQ(CopyAhead("a"), OkStatus());
  ASSERT_EQ(variables_.Op("AssignAddVariableOp")
                .In(table_)
                .In(Tensor::Of<float>({kRows, kLength}, Ones()))
                .Run()
                .status(),
            OkStatus());
  const auto cut = Cut("a");
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_EQ(At((*cut)[0], 0), 2);
  EXPECT_EQ((*cut)[0].raw_data(), TestVariables::Value(table_).raw_data());
}

TEST_F(SnapshotTest, WithoutCopyingAheadValuesAreShared) {
  const auto cut = Cut("a");
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_EQ((*cut)[0].raw_data(), TestVariables::Value(table_).raw_data());
}

TEST_F(SnapshotTest, BelongsToOneSave) {
  ASSERT_EQ(CopyAhead("a"), OkStatus());
  AddToRow(1);
  ASSERT_EQ(CopyAhead("b"), OkStatus());
  const auto cut = Cut("a");  // save "b" replaces save "a", which counts as given up
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_EQ(At((*cut)[0], 1), 2);
  ASSERT_EQ(Keep("a", *cut), OkStatus());
  EXPECT_EQ(Take("b").status().code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Take("a").ok());
  EXPECT_EQ(Take("a").status().code(), StatusCode::kFailedPrecondition) << "it is handed over once";
}

// Each round updates the rows in order while the table is being copied. The snapshot is of one
// point in time if and only if no row has a higher round than a row before it.
TEST_F(SnapshotTest, UpdatesDuringTheCopyingAreAllThereOrAllNot) {
  int copied = 0;
  for (int round = 0; round < 5; ++round) {
    const std::string save = StrCat("s", round);
    // Later updates write into the same buffer.
    const void* const place = TestVariables::Value(table_).raw_data();
    std::atomic<bool> end{false}, updated{false};
    auto updates = Scheduler::Real().StartThread("updates", [&] {
      for (int64_t row = 0; !end; row = (row + 1) % kRows) {
        AddToRow(row);
        updated = true;
      }
    });
    while (!updated) Env::Real().SleepForNanos(10'000);
    ASSERT_EQ(CopyAhead(save.c_str()), OkStatus());
    const auto cut = Cut(save.c_str());
    end = true;
    updates = nullptr;
    ASSERT_TRUE(cut.ok()) << cut.status();
    EXPECT_GE(At((*cut)[0], 0), 2) << "updates began before the copying";
    copied += (*cut)[0].raw_data() != place ? 1 : 0;
    int steps_down = 0;
    for (int64_t row = 1; row < kRows; ++row) {
      const float before = At((*cut)[0], row - 1), now = At((*cut)[0], row);
      ASSERT_TRUE(now == before || now == before - 1) << "row " << row;
      steps_down += now < before;
      for (int64_t i = 1; i < kLength; ++i) {
        ASSERT_EQ((*cut)[0].flat<float>()[row * kLength + i], now) << "a torn row";
      }
    }
    EXPECT_LE(steps_down, 1);
    table_ = variables_.New(Tensor::Of<float>({kRows, kLength}, Ones()));
  }
  EXPECT_GT(copied, 0) << "no table was copied ahead";
}

// The variable gets another shape between the copying of the first and the second piece.
TEST_F(SnapshotTest, ATableThatGetsAnotherShapeIsShared) {
  for (const int64_t rows : {kRows / 4, kRows * 2}) {
    Variable table("table", DType::kFloat, PartialShape({-1, kLength}));
    const auto filled = [](int64_t n) {
      return Tensor::Of<float>({n, kLength}, std::vector<float>(n * kLength, float(n)));
    };
    ASSERT_EQ(table.Assign(filled(kRows), false, {}), OkStatus());
    const std::shared_ptr<Variable> variable(&table, [](Variable*) {});
    Snapshot snapshot;
    int pieces = 0;
    const auto check = [&] {
      return ++pieces == 2 ? table.Assign(filled(rows), false, {}) : OkStatus();
    };
    ASSERT_EQ(snapshot.CopyAhead("a", {variable}, check, {}), OkStatus());
    const auto cut = snapshot.Cut("a", {variable}, {});
    ASSERT_TRUE(cut.ok()) << cut.status();
    EXPECT_EQ((*cut)[0].shape(), Shape({rows, kLength}));
    EXPECT_EQ(At((*cut)[0], rows - 1), static_cast<float>(rows));
  }
}

// Shapes change at random times; each cut must be one of the assigned values.
TEST_F(SnapshotTest, EachCutHasTheShapeOfItsValue) {
  Variable table("table", DType::kFloat, PartialShape({-1, kLength}));
  const auto filled = [](int64_t n) {
    return Tensor::Of<float>({n, kLength}, std::vector<float>(n * kLength, float(n)));
  };
  const Tensor small = filled(kRows / 2), large = filled(kRows);
  ASSERT_EQ(table.Assign(large, false, {}), OkStatus());
  const std::shared_ptr<Variable> variable(&table, [](Variable*) {});
  std::atomic<bool> end{false};
  auto assignments = Scheduler::Real().StartThread("assignments", [&] {
    for (int i = 0; !end; ++i) CHECK_OK(table.Assign(i % 2 == 0 ? small : large, false, {}));
  });
  Snapshot snapshot;
  for (int round = 0; round < 50; ++round) {
    const std::string save = StrCat("s", round);
    EXPECT_EQ(snapshot.CopyAhead(save, {variable}, [] { return OkStatus(); }, {}), OkStatus());
    const auto cut = snapshot.Cut(save, {variable}, {});
    EXPECT_TRUE(cut.ok()) << cut.status();
    if (!cut.ok()) break;
    const int64_t rows = (*cut)[0].shape().dim(0);
    EXPECT_EQ(At((*cut)[0], 0), static_cast<float>(rows));
    EXPECT_EQ(At((*cut)[0], rows - 1), static_cast<float>(rows));
  }
  end = true;
  assignments = nullptr;
}

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "core/base/status.h"

#include "absl/strings/cord.h"
#include "core/base/check.h"
#include "core/base/done.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(Status, BuildersJoinTheirParts) {
  const Status status = InvalidArgument("node '", "x", "' has ", 3, " inputs");
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "node 'x' has 3 inputs");
}

TEST(Status, AnnotateKeepsCodeAndPayloads) {
  Status status = Unavailable("gone");
  status.SetPayload("task", absl::Cord("/job:ps/task:1"));
  const Status annotated = Annotate(status, "step 7");
  EXPECT_EQ(annotated.code(), StatusCode::kUnavailable);
  EXPECT_EQ(annotated.message(), "step 7: gone");
  EXPECT_EQ(annotated.GetPayload("task"), absl::Cord("/job:ps/task:1"));
  EXPECT_TRUE(Annotate(OkStatus(), "step 7").ok());
}

StatusOr<int> Half(int n) {
  if (n % 2 != 0) return InvalidArgument(n, " is odd");
  return n / 2;
}

StatusOr<int> Quarter(int n) {
  ASSIGN_OR_RETURN(const int half, Half(n));
  int quarter;
  ASSIGN_OR_RETURN(quarter, Half(half));
  return quarter;
}

Status CheckQuarter(int n) {
  RETURN_IF_ERROR(Quarter(n).status());
  return OkStatus();
}

TEST(Status, MacrosReturnTheFirstError) {
  EXPECT_EQ(*Quarter(12), 3);
  EXPECT_EQ(Quarter(6).status().message(), "3 is odd");
  EXPECT_EQ(CheckQuarter(7).message(), "7 is odd");
  EXPECT_TRUE(CheckQuarter(8).ok());
}

TEST(CheckDeathTest, SaysWhereAndWhat) {
  const int pending = -1;
  EXPECT_DEATH(CHECK(pending >= 0, "node ", "x"),
               "status_test.cc:[0-9]+: CHECK failed: pending >= 0: node x");
  EXPECT_DEATH(CHECK(pending >= 0), "CHECK failed: pending >= 0");
  EXPECT_DEATH(CHECK_OK(NotFound("no x")), "NOT_FOUND: no x");
}

TEST(Done, PassesTheStatusOnce) {
  Status got = Internal("not called");
  Done done([&](Status status) { got = std::move(status); });
  Done moved = std::move(done);
  std::move(moved)(NotFound("x"));
  EXPECT_EQ(got, NotFound("x"));
}

TEST(DoneDeathTest, DroppedOrCalledTwice) {
  EXPECT_DEATH({ Done done([](Status) {}); }, "dropped");
  EXPECT_DEATH(
      {
        Done done([](Status) {});
        std::move(done)(OkStatus());
        std::move(done)(OkStatus());
      },
      "called twice");
}

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "core/base/error_origin.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(ErrorOriginTest, OkStaysOk) {
  EXPECT_EQ(InNode(OkStatus(), "n"), OkStatus());
  EXPECT_EQ(AtNode(OkStatus(), "n"), OkStatus());
  EXPECT_EQ(WithTask(OkStatus(), "t"), OkStatus());
  EXPECT_EQ(ShowNode(OkStatus()), OkStatus());
}

TEST(ErrorOriginTest, AnErrorWithoutOrigin) {
  const Status why = Internal("node 'x': why");
  EXPECT_EQ(FailedNode(why), "");
  EXPECT_EQ(FailedTask(why), "");
  EXPECT_EQ(ShowNode(why), why);
}

TEST(ErrorOriginTest, TheOutermostNodeIsShownOnce) {
  const Status inner = InNode(InvalidArgument("why"), "inner");
  EXPECT_EQ(inner.message(), "node 'inner': why");
  const Status outer = InNode(inner, "outer");
  EXPECT_EQ(FailedNode(outer), "outer");
  const Status shown = ShowNode(outer);
  EXPECT_EQ(shown.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(shown.message(), "node 'outer': node 'inner': why\n\t [[{{node outer}}]]");
  EXPECT_EQ(ShowNode(Annotate(shown, "context")).message(), StrCat("context: ", shown.message()));
}

// Each node that waits for a failed node reports the same error again.
TEST(ErrorOriginTest, TheNodeThatFailedFirstStays) {
  const Status first = AtNode(Aborted("why"), "first");
  EXPECT_EQ(first.message(), "why\n\t [[{{node first}}]]");
  EXPECT_EQ(AtNode(first, "second"), first);
  EXPECT_EQ(FailedNode(first), "first");
}

// A node's text may contain words that look like an origin.
TEST(ErrorOriginTest, TextIsNotTakenForAnOrigin) {
  const Status status = AtNode(Internal("saw [[{{node there}}]]"), "here");
  EXPECT_EQ(status.message(), "saw [[{{node there}}]]\n\t [[{{node here}}]]");
}

TEST(ErrorOriginTest, AnotherTextKeepsTheOrigin) {
  const Status status = WithMessage(WithNode(Aborted("why"), "n"), "other");
  EXPECT_EQ(status.message(), "other");
  EXPECT_EQ(FailedNode(status), "n");
}

TEST(ErrorOriginTest, ATaskIsRecordedBesideTheNode) {
  const Status status = WithTask(AtNode(Aborted("why"), "n"), "/job:ps/replica:0/task:1");
  EXPECT_EQ(status.message(), "why\n\t [[{{node n}}]]");
  EXPECT_EQ(FailedNode(status), "n");
  EXPECT_EQ(FailedTask(status), "/job:ps/replica:0/task:1");
  EXPECT_EQ(FailedTask(WithTask(status, "/job:ps/replica:0/task:2")), "/job:ps/replica:0/task:2");
  EXPECT_EQ(FailedTask(WithMessage(status, "other")), "/job:ps/replica:0/task:1");
}

}  // namespace
}  // namespace penstock

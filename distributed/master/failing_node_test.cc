// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/failing_node.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(FailingNodeTest, TheNodeOfAnErrorIsRepeatedWhereClientsLookForIt) {
  EXPECT_EQ(WithFailingNode(InvalidArgument("node 'a/b': no kernel")),
            InvalidArgument("node 'a/b': no kernel\n\t [[{{node a/b}}]]"));
  EXPECT_EQ(WithFailingNode(NotFound("node 'a/b")), NotFound("node 'a/b\n\t [[{{node a/b}}]]"))
      << "the text may be cut";
}

TEST(FailingNodeTest, OtherErrorsStayAsTheyAre) {
  for (const Status& status : {OkStatus(), NotFound("there is no node 'a'"), Aborted(""),
                               OutOfRange("node 'a': end of input\n\t [[{{node a}}]]")}) {
    EXPECT_EQ(WithFailingNode(status), status);
  }
}

}  // namespace
}  // namespace penstock

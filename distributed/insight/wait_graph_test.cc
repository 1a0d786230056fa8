// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/wait_graph.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

using Missing = WaitGraph::Missing;

class WaitGraphTest : public testing::Test {
 protected:
  // Adds a task. `report` is empty if the task does not answer.
  void Add(const std::string& task, const std::string& report) {
    wire::ClusterTask* const added = cluster_.add_task();
    added->set_name(task);
    if (report.empty()) return;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(report, added->mutable_report()))
        << report;
  }

  wire::ClusterReport cluster_;
};

// Returns the text of a report's part: in step `step`, node `node` waits with `kind` for the queue
// or lock `resource`. `more` is appended.
std::string WaitingText(const std::string& step, const std::string& node, const std::string& kind,
                        const std::string& resource, const std::string& more = "") {
  return "part { step_id: " + step + " wait { node: '" + node + "' kind: " + kind +
         " resource { name: '" + resource + "' } } " + more + " }";
}
std::string Use(const std::string& node, const std::string& kind, const std::string& resource,
                const std::string& state) {
  return "use { node: '" + node + "' kind: " + kind + " resource { name: '" + resource + "' } " +
         state + " }";
}

TEST_F(WaitGraphTest, AQueueThatNobodyFillsIsStuck) {
  Add("a", WaitingText("1", "take", "TAKE", "q"));
  const WaitGraph graph(cluster_);
  ASSERT_EQ(graph.waits().size(), 1u);
  EXPECT_TRUE(graph.waits()[0].stuck);
  EXPECT_TRUE(graph.waits()[0].is_unservable());
  EXPECT_TRUE(graph.Cycles().empty());
}

TEST_F(WaitGraphTest, ANodeThatMayRunKeepsAWaitOpen) {
  Add("a", WaitingText("1", "take", "TAKE", "q"));
  Add("b", "part { step_id: 2 computing: true " + Use("put", "PUT", "q", "") + " }");
  const WaitGraph graph(cluster_);
  EXPECT_FALSE(graph.waits()[0].stuck);
  ASSERT_EQ(graph.waits()[0].ways.size(), 1u);
  EXPECT_TRUE(graph.waits()[0].ways[0].open);
}

TEST_F(WaitGraphTest, OnlyTheOppositeUseOfTheSameQueueEndsAWait) {
  Add("a", WaitingText("1", "take", "TAKE", "q"));
  Add("b", "part { step_id: 2 computing: true " + Use("take", "TAKE", "q", "") +
               Use("put", "PUT", "other", "") + " }");
  const WaitGraph graph(cluster_);
  EXPECT_TRUE(graph.waits()[0].stuck);
  EXPECT_TRUE(graph.waits()[0].ways.empty());
}

// Each of two steps takes from the queue that the other fills only afterwards.
TEST_F(WaitGraphTest, StepsThatWaitForEachOtherFormACycle) {
  Add("a", WaitingText("1", "take_p", "TAKE", "p",
                       Use("put_q", "PUT", "q", "state: HELD_UP behind: 'take_p'")));
  Add("b", WaitingText("2", "take_q", "TAKE", "q",
                       Use("put_p", "PUT", "p", "state: HELD_UP behind: 'take_q'")));
  const WaitGraph graph(cluster_);
  EXPECT_TRUE(graph.waits()[0].stuck);
  EXPECT_TRUE(graph.waits()[1].stuck);
  EXPECT_EQ(graph.Cycles(), (std::vector<std::vector<size_t>>{{0, 1}}));
  EXPECT_EQ(graph.Next(0).first, 1);
  EXPECT_EQ(graph.Next(0).second->use->node(), "put_p");
}

// Two steps wait for each other, but a third step also fills one of the queues.
TEST_F(WaitGraphTest, OneOpenWayFreesAllWaitsBehindIt) {
  Add("a", WaitingText("1", "take_p", "TAKE", "p",
                       Use("put_q", "PUT", "q", "state: HELD_UP behind: 'take_p'")));
  Add("b", WaitingText("2", "take_q", "TAKE", "q",
                       Use("put_p", "PUT", "p", "state: HELD_UP behind: 'take_q'")));
  Add("c", "part { step_id: 3 computing: true " + Use("put_p", "PUT", "p", "") + " }");
  const WaitGraph graph(cluster_);
  EXPECT_FALSE(graph.waits()[0].stuck);
  EXPECT_FALSE(graph.waits()[1].stuck);
  EXPECT_TRUE(graph.Cycles().empty());
}

TEST_F(WaitGraphTest, ATransferSaysWhatItsSourceLacks) {
  const auto transfer = [](const char* step, const char* from) {
    return absl::StrCat("part { step_id: ", step, " wait { node: 'recv' from_device: '/job:", from,
                        "/replica:0/task:0/device:CPU:0' } }");
  };
  Add("a", transfer("1", "silent"));
  Add("b", transfer("1", "idle"));
  Add("c", transfer("2", "busy"));
  Add("/job:silent/replica:0/task:0", "");
  Add("/job:idle/replica:0/task:0", "part { step_id: 9 }");
  Add("/job:busy/replica:0/task:0", "part { step_id: 2 computing: true }");
  const WaitGraph graph(cluster_);
  ASSERT_EQ(graph.waits().size(), 3u);
  EXPECT_EQ(graph.waits()[0].missing, Missing::kTaskSilent);
  EXPECT_TRUE(graph.waits()[0].stuck);
  EXPECT_EQ(graph.waits()[1].missing, Missing::kNotRunning);
  EXPECT_TRUE(graph.waits()[1].stuck);
  EXPECT_EQ(graph.waits()[2].missing, Missing::kNothing);
  EXPECT_FALSE(graph.waits()[2].stuck);
}

// Step 2 holds the lock and waits for the queue, so step 1, which waits for the lock, is stuck too.
TEST_F(WaitGraphTest, ALockIsHeldUpByTheWaitsOfItsHolder) {
  Add("a", WaitingText("1", "lock", "LOCK", "m"));
  Add("b", WaitingText("2", "take", "TAKE", "q", Use("lock", "LOCK", "m", "state: NOT_HELD_UP")));
  const WaitGraph graph(cluster_);
  EXPECT_TRUE(graph.waits()[0].stuck);
  EXPECT_FALSE(graph.waits()[0].is_unservable());
  EXPECT_EQ(graph.Next(0).first, 1);
  EXPECT_TRUE(graph.waits()[1].is_unservable());
}

TEST_F(WaitGraphTest, FindsTasksPartsAndResources) {
  Add("a",
      "part { step_id: 4 } resource { name { device: 'd' container: 'c' name: 'n' } bytes: 3 }");
  const WaitGraph graph(cluster_);
  ASSERT_NE(graph.FindPart("a", 4), nullptr);
  EXPECT_EQ(graph.FindPart("a", 5), nullptr);
  EXPECT_EQ(graph.FindTask("b"), nullptr);
  wire::ResourceName name;
  name.set_device("d");
  name.set_container("c");
  name.set_name("n");
  ASSERT_NE(graph.FindResource(name), nullptr);
  EXPECT_EQ(graph.FindResource(name)->bytes(), 3);
  name.set_container("other");
  EXPECT_EQ(graph.FindResource(name), nullptr);
}

}  // namespace
}  // namespace penstock

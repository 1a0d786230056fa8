// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/wait_text.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace penstock {
namespace {

// A cluster with its graph; $W and $P stand for the tasks worker 0 and ps 0, $Q for a queue on the
// ps.
struct Waiting {
  explicit Waiting(const std::string& text) : cluster(Parse(text)), graph(cluster) {}

  static wire::ClusterReport Parse(const std::string& text) {
    wire::ClusterReport cluster;
    const std::string full = absl::StrReplaceAll(
        absl::StrReplaceAll(text, {{"$Q", "{ device: '$P/device:CPU:0' name: 'q' }"}}),
        {{"$W", "/job:worker/replica:0/task:0"}, {"$P", "/job:ps/replica:0/task:0"}});
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(full, &cluster)) << full;
    return cluster;
  }
  std::string First() const { return WaitText(graph, graph.waits().at(0)); }

  const wire::ClusterReport cluster;
  const WaitGraph graph;
};

// Returns the text of a wait in a part of the worker, the only wait of a cluster of two tasks.
std::string TextOf(const std::string& wait, const std::string& of_ps = "report {}") {
  return Waiting(absl::StrCat("task { name: '$W' report { part { step_id: 3 wait { node: 'n' ",
                              "op: 'Op' age_ms: 2000 ", wait, " } } } } task { name: '$P' ", of_ps,
                              " }"))
      .First();
}

TEST(WaitTextTest, ATensorComesFromATask) {
  const std::string wait = "tensor: 'w:0' from_device: '$P/device:CPU:0'";
  EXPECT_EQ(TextOf(wait, "report { part { step_id: 3 computing: true } }"),
            "'n' (Op) waits, for 2 s, for the tensor 'w:0' from /job:ps/task:0");
  EXPECT_EQ(TextOf(wait, "error { message: 'refused' }"),
            "'n' (Op) waits, for 2 s, for the tensor 'w:0' from /job:ps/task:0, which does not "
            "answer");
  EXPECT_EQ(TextOf(wait),
            "'n' (Op) waits, for 2 s, for the tensor 'w:0' from /job:ps/task:0, which does not run "
            "this step");
}

TEST(WaitTextTest, ATensorOfTheSameTaskComesFromADevice) {
  EXPECT_EQ(TextOf("iteration: 4 tensor: 'w:0' from_device: '$W/device:GPU:0'"),
            "'n' (Op), in iteration 4 of its loop, waits, for 2 s, for the tensor 'w:0' from "
            "/job:worker/task:0/device:GPU:0");
}

TEST(WaitTextTest, AFeedComesFromTheClient) {
  EXPECT_EQ(TextOf("tensor: 'x:0'"), "'n' (Op) waits, for 2 s, for the client to feed 'x:0'");
  EXPECT_EQ(TextOf(""), "'n' (Op) waits, for 2 s");
}

TEST(WaitTextTest, AQueueIsWaitedForWithItsElements) {
  const std::string queue =
      "report { resource { name $Q type: 'FIFOQueue' queue { size: 2 capacity: 5 closed: true } } "
      "part { step_id: 4 computing: true use { node: 'u' kind: PUT resource $Q } "
      "use { node: 'v' kind: TAKE resource $Q } } }";
  EXPECT_EQ(TextOf("kind: TAKE resource $Q", queue),
            "'n' (Op) waits, for 2 s, for an element of FIFOQueue 'q' on /job:ps/task:0 (2 of 5 "
            "elements, closed)");
  EXPECT_EQ(TextOf("kind: PUT resource $Q", queue),
            "'n' (Op) waits, for 2 s, for room in FIFOQueue 'q' on /job:ps/task:0 (2 of 5 "
            "elements, closed)");
  EXPECT_EQ(TextOf("kind: TAKE resource $Q"),
            "'n' (Op) waits, for 2 s, for an element of 'q' on /job:ps/task:0, which nobody ends");
}

TEST(ResourceTextTest, AQueueWithoutALimitHasOnlyASize) {
  const Waiting waiting(
      "task { name: '$P' report { resource { name $Q type: 'FIFOQueue' queue { size: 2 capacity: "
      "-1 } } } }");
  const wire::ResourceName name = waiting.cluster.task(0).report().resource(0).name();
  EXPECT_EQ(ResourceText(waiting.graph, name), "FIFOQueue 'q' on /job:ps/task:0 (2 elements)");
}

TEST(ResourceTextTest, OtherResourcesDescribeThemselves) {
  const Waiting waiting(
      "task { name: '$P' report { resource { name $Q type: 'Mutex' text: \"Mutex 'q', locked\" } } "
      "}");
  const wire::ResourceName name = waiting.cluster.task(0).report().resource(0).name();
  EXPECT_EQ(ResourceText(waiting.graph, name), "Mutex 'q', locked, on /job:ps/task:0");
}

TEST(WayTextTest, NamesTheNodeAndWhatHoldsItUp) {
  const Waiting waiting(
      "task { name: '$P' report { "
      "part { step_id: 3 wait { node: 'take' kind: TAKE resource $Q } "
      "use { node: 'put' kind: PUT state: HELD_UP behind: 'take' resource $Q } } "
      "part { step_id: 4 computing: true use { node: 'other' kind: PUT resource $Q } } } }");
  const WaitGraph::Wait& wait = waiting.graph.waits().at(0);
  ASSERT_EQ(wait.ways.size(), 2u);
  EXPECT_EQ(WayText(waiting.graph, wait, wait.ways[0]),
            "'put' of step 3 in /job:ps/task:0 would fill it, but comes after 'take'");
  EXPECT_EQ(WayText(waiting.graph, wait, wait.ways[1]),
            "'other' of step 4 in /job:ps/task:0 would fill it");
}

TEST(PartTextTest, ListsWaitsLoopsAndTensorsThatAreNotAskedFor) {
  const auto text = [](const std::string& part) {
    const Waiting waiting("task { name: '$W' report { part { step_id: 3 " + part + " } } }");
    return PartText(waiting.graph, waiting.cluster.task(0).name(),
                    waiting.cluster.task(0).report().part(0));
  };
  EXPECT_EQ(text(""), "has run; what it sent is on its way");
  EXPECT_EQ(text("computing: true loop { name: 'while' iteration: 6 }"),
            "computes, iteration 6 of loop 'while'");
  EXPECT_EQ(text("unasked_by: '$P'"), "tensors wait for /job:ps/task:0 to ask for them");
  EXPECT_EQ(text("computing: true wait { node: 'n' op: 'Op' age_ms: 50 }"),
            "'n' (Op) waits, for 50 ms\n    computes besides");
}

TEST(PartTextTest, ShowsTenWaits) {
  std::string part = "task { name: '$W' report { part { step_id: 3 ";
  for (int i = 0; i < 12; ++i) absl::StrAppend(&part, "wait { node: 'n' op: 'Op' age_ms: 1 } ");
  const Waiting waiting(part + "} } }");
  const std::string text = PartText(waiting.graph, waiting.cluster.task(0).name(),
                                    waiting.cluster.task(0).report().part(0));
  EXPECT_NE(text.find("\n    2 more wait"), std::string::npos) << text;
}

}  // namespace
}  // namespace penstock

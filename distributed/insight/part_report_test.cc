// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/part_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/builder.h"
#include "core/op/private_attrs.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kPsCpu[] = "/job:ps/replica:0/task:0/device:CPU:0";
const std::vector<DType> kFloat = {DType::kFloat};

class PartReportTest : public testing::Test {
 protected:
  Output Queue(const std::string& shared_name, const std::string& container = "") {
    return CallIn(
        builder_, "FIFOQueueV2", {},
        {{"component_types", kFloat}, {"shared_name", shared_name}, {"container", container}});
  }
  static Output Take(Output queue) {
    return Call("QueueDequeueV2", {queue}, {{"component_types", kFloat}});
  }
  static Output Put(Output queue, Output x) { return Call("QueueEnqueueV2", {queue, Outputs{x}}); }
  const Node* NodeOf(Output x) const { return builder_.NodeOf(x); }

  wire::PartReport Report(const StepActivity& activity) {
    EXPECT_TRUE(builder_.status().ok()) << builder_.status();
    wire::PartReport part;
    AddActivity(builder_.graph(), kPsCpu, activity, 5'000'000'000, &part);
    return part;
  }

  GraphBuilder builder_;
};

TEST_F(PartReportTest, AWaitForAQueueNamesIt) {
  const Output take = Take(Queue("input", "mine"));
  const wire::PartReport part =
      Report({.waits = {{.node = NodeOf(take), .since_ns = 2'000'000'000}}});
  ASSERT_EQ(part.wait_size(), 1);
  EXPECT_EQ(part.wait(0).op(), "QueueDequeueV2");
  EXPECT_EQ(part.wait(0).age_ms(), 3000);
  EXPECT_EQ(part.wait(0).kind(), wire::UseReport::TAKE);
  EXPECT_EQ(part.wait(0).resource().name(), "input");
  EXPECT_EQ(part.wait(0).resource().container(), "mine");
  EXPECT_EQ(part.wait(0).resource().device(), kPsCpu);
}

TEST_F(PartReportTest, AnAgeMayNotBeKnown) {
  const Output take = Take(Queue("input"));
  EXPECT_EQ(Report({.waits = {{.node = NodeOf(take)}}}).wait(0).age_ms(), -1);
}

// The handle comes through an Identity. The queue has the name of its node, and is in the
// container of its session.
TEST_F(PartReportTest, AHandleIsFollowedToItsMaker) {
  const Output queue = Queue("");
  builder_.mutable_graph().set_attr(builder_.NodeOf(queue), kPrivateContainerAttr,
                                    std::string("session/s"));
  const Output take = Take(Call("Identity", {queue}));
  const auto resource = ResourceOf(*NodeOf(take), kPsCpu);
  ASSERT_TRUE(resource.has_value());
  EXPECT_EQ(resource->name(), NodeOf(queue)->name());
  EXPECT_EQ(resource->container(), "session/s");
}

// An op's definition says which input has the handle of its resource, and whether the op fills or
// empties it.
TEST_F(PartReportTest, AReadTakesFromTheQueueOfItsReader) {
  const Output reader = CallIn(builder_, "WholeFileReaderV2", {}, {});
  const Outputs read = CallN("ReaderReadV2", {reader, Queue("files")});
  const wire::PartReport part = Report({.waits = {{.node = NodeOf(read[0]), .since_ns = 1}}});
  EXPECT_EQ(part.wait(0).kind(), wire::UseReport::TAKE);
  EXPECT_EQ(part.wait(0).resource().name(), "files");
}

TEST_F(PartReportTest, ALockIsReported) {
  const Output mutex = CallIn(builder_, "MutexV2", {}, {{"shared_name", "m"}});
  const Output lock = Call("MutexLock", {mutex});
  const wire::PartReport part = Report({.waits = {{.node = NodeOf(lock), .since_ns = 1}}});
  EXPECT_EQ(part.wait(0).kind(), wire::UseReport::LOCK);
  EXPECT_EQ(part.wait(0).resource().name(), "m");
}

TEST_F(PartReportTest, ClearingAStageMakesRoomInIt) {
  const Attrs stage = {{"dtypes", kFloat}, {"shared_name", "s"}};
  const Output one = Constant(builder_, Tensor::Scalar(1.0f));
  const Output put = CallIn(builder_, "Stage", {Outputs{one}}, stage);
  const Output clear = CallIn(builder_, "StageClear", {}, stage);
  const wire::PartReport part = Report({.waits = {{.node = NodeOf(put), .since_ns = 1}}});
  ASSERT_EQ(part.use_size(), 2);
  EXPECT_EQ(part.use(0).kind(), wire::UseReport::PUT);
  EXPECT_EQ(part.use(1).node(), NodeOf(clear)->name());
  EXPECT_EQ(part.use(1).kind(), wire::UseReport::TAKE);
}

TEST_F(PartReportTest, ANodeWithoutAHandleHasNoResource) {
  const Output x = Constant(builder_, Tensor::Scalar(1.0f));
  EXPECT_FALSE(ResourceOf(*NodeOf(x * 2.0), kPsCpu).has_value());
}

TEST_F(PartReportTest, WhatComesAfterAWaitIsHeldUp) {
  const Output left = Queue("left"), right = Queue("right");
  const Output before = Put(right, Constant(builder_, Tensor::Scalar(1.0f)));
  const Output take = Take(left);
  const Output after = Put(right, take * 2.0);
  const wire::PartReport part = Report({.waits = {{.node = NodeOf(take), .since_ns = 1}}});
  std::vector<wire::UseReport::State> states;
  for (const wire::UseReport& use : part.use()) {
    states.push_back(use.state());
  }
  EXPECT_EQ(part.use(0).node(), NodeOf(before)->name());
  EXPECT_EQ(part.use(0).kind(), wire::UseReport::PUT);
  EXPECT_EQ(part.use(2).node(), NodeOf(after)->name());
  EXPECT_EQ(part.use(2).behind(), NodeOf(take)->name());
  EXPECT_THAT(states, ElementsAre(wire::UseReport::NOT_HELD_UP, wire::UseReport::WAITS,
                                  wire::UseReport::HELD_UP));
}

TEST_F(PartReportTest, AWaitForATensorNamesItAndItsSource) {
  const Output recv = CallIn(builder_, "_Recv", {},
                             {{"tensor_name", "edge_12_layer_1/w:0"},
                              {"send_device", "/job:worker/replica:0/task:1/device:CPU:0"},
                              {"send_device_incarnation", 1},
                              {"recv_device", kPsCpu},
                              {"tensor_type", DType::kFloat}});
  const wire::PartReport part = Report({.waits = {{.node = NodeOf(recv), .since_ns = 1}}});
  EXPECT_EQ(part.wait(0).tensor(), "layer_1/w:0");
  EXPECT_EQ(part.wait(0).from_device(), "/job:worker/replica:0/task:1/device:CPU:0");
  EXPECT_FALSE(part.wait(0).has_resource());
}

TEST_F(PartReportTest, LoopsAndComputationAreReported) {
  const wire::PartReport part =
      Report({.computing = true, .loops = {{.name = "while", .iteration = 7}}});
  EXPECT_TRUE(part.computing());
  EXPECT_EQ(part.loop(0).name(), "while");
  EXPECT_EQ(part.loop(0).iteration(), 7u);
  EXPECT_THAT(part.wait(), IsEmpty());
}

}  // namespace
}  // namespace penstock

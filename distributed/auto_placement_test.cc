// SPDX-License-Identifier: Apache-2.0
//
// Tests sessions with placement "auto", which place nodes on any task, by the measured times of
// steps.
#include <cstring>

#include "core/graph/builder.h"
#include "distributed/testing/test_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

constexpr int kSide = 300, kLength = 6;

// Builds two chains of products of the fed matrix, and the sum of both.
Output TwoChains(GraphBuilder& g, Output* fed) {
  *fed = CallIn(g, "Placeholder", {},
                {{"dtype", DType::kFloat}, {"shape", PartialShape({kSide, kSide})}});
  std::vector<Output> ends;
  for (int chain = 0; chain < 2; ++chain) {
    Output end = *fed;
    for (int i = 0; i < kLength; ++i) {
      // The second chain differs, because equal products would be computed only once.
      end = Call("MatMul", {end, *fed}, {{"transpose_b", chain == 1}});
    }
    ends.push_back(end);
  }
  return ends[0] + ends[1];
}

// Returns a matrix with ones on the diagonal and to the right of it, and zeros elsewhere, so that
// float computes its powers exactly.
Tensor Band() {
  std::vector<float> values(kSide * kSide, 0);
  for (int i = 0; i < kSide; ++i) {
    values[i * kSide + i] = 1;
    values[i * kSide + (i + 1) % kSide] = 1;
  }
  return Tensor::Of<float>(Shape({kSide, kSide}), values);
}

bool Same(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::memcmp(a.data<float>(), b.data<float>(), a.bytes()) == 0;
}

class AutoPlacementTest : public testing::Test {
 protected:
  static ServerOptions OneThread() {
    ServerOptions options = TestCluster::Quick();
    options.num_threads = 1;
    return options;
  }
  std::unique_ptr<SessionInterface> Session(const std::string& placement) {
    return cluster_.NewSession({.placement = placement});
  }

  TestCluster cluster_{{{"worker", 2}}, OneThread()};
};

TEST_F(AutoPlacementTest, WorkIsSharedAndTheResultIsTheSame) {
  GraphBuilder g;
  Output fed;
  const Output sum = TwoChains(g, &fed);
  ASSERT_TRUE(g.status().ok()) << g.status();
  const Feeds feeds = {{fed.name(), Band()}};
  std::vector<Tensor> expected, out;
  for (const std::string placement : {"client", "auto"}) {
    const auto session = Session(placement);
    ASSERT_TRUE(session->Extend(g.graph()).ok());
    // Runs steps until the session has placed them by their measured times, which happens in the
    // background.
    size_t tasks = 1;
    for (int run = 0; run < (placement == "auto" ? 2000 : 3) && tasks == 1; ++run) {
      RunMetadata metadata;
      const Status status =
          session->Run({.partition_graphs = run > 4}, feeds, {sum.name()}, {}, &out, &metadata);
      ASSERT_TRUE(status.ok()) << status;
      if (expected.empty()) expected = out;
      ASSERT_TRUE(Same(out[0], expected[0]));
      if (run > 4) tasks = metadata.partition_graphs.size();
    }
    EXPECT_EQ(tasks, placement == "auto" ? 2u : 1u);
  }
}

TEST_F(AutoPlacementTest, VariablesStayWhereTheyAre) {
  GraphBuilder g;
  const Output fed = CallIn(g, "Placeholder", {},
                            {{"dtype", DType::kFloat}, {"shape", PartialShape({kSide, kSide})}});
  std::vector<std::string> assigns;
  std::vector<Output> products;
  for (int i = 0; i < 2; ++i) {
    const Output variable = CallIn(
        g, "VariableV2", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape({kSide, kSide})}});
    assigns.push_back(g.NodeOf(Call("Assign", {variable, fed}))->name());
    Output end = variable;
    for (int n = 0; n < kLength; ++n) end = Call("MatMul", {end, variable});
    products.push_back(end);
  }
  const Output sum = products[0] + products[1];
  ASSERT_TRUE(g.status().ok()) << g.status();
  const auto session = Session("auto");
  ASSERT_TRUE(session->Extend(g.graph()).ok());
  std::vector<Tensor> out, first;
  Status status = session->Run({}, {{fed.name(), Band()}}, {}, assigns, &out, nullptr);
  ASSERT_TRUE(status.ok()) << status;
  for (int run = 0; run < 20; ++run) {
    status = session->Run({}, {}, {sum.name()}, {}, &out, nullptr);
    ASSERT_TRUE(status.ok()) << status << " in run " << run;
    if (first.empty()) first = out;
    ASSERT_TRUE(Same(out[0], first[0]));
  }
}

// No step of this session has been measured when the placer decides, so it knows the amount of work
// only from the shapes of the feeds.
TEST_F(AutoPlacementTest, AStepIsPlacedForTheSizesThatAreFed) {
  GraphBuilder g;
  const auto any = g.DeviceScope("/job:worker");
  const Output fed =
      CallIn(g, "Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape()}});
  std::vector<Output> ends;
  for (int chain = 0; chain < 2; ++chain) {
    Output end = fed;
    for (int i = 0; i < kLength; ++i) {
      end = Call("MatMul", {end, fed}, {{"transpose_b", chain == 1}});
    }
    ends.push_back(end);
  }
  const Output sum = ends[0] + ends[1];
  ASSERT_TRUE(g.status().ok()) << g.status();
  const Tensor small(DType::kFloat, Shape({2, 2}));
  const auto session = Session("client");
  ASSERT_TRUE(session->Extend(g.graph()).ok());
  std::vector<Tensor> out;
  const auto tasks_of = [&](const Tensor& value) {
    RunMetadata metadata;
    const Status status = session->Run({.partition_graphs = true}, {{fed.name(), value}},
                                       {sum.name()}, {}, &out, &metadata);
    EXPECT_TRUE(status.ok()) << status;
    return metadata.partition_graphs.size();
  };
  for (int run = 0; run < 20; ++run) ASSERT_EQ(tasks_of(small), 1u) << "a message costs more";
  // The new placement is computed while steps run.
  size_t tasks = 1;
  for (int run = 0; run < 2000 && tasks == 1; ++run) tasks = tasks_of(Band());
  EXPECT_EQ(tasks, 2u);
  for (int run = 0; run < 20; ++run) EXPECT_EQ(tasks_of(small), 2u) << "once in its life";
}

TEST_F(AutoPlacementTest, UnknownPlacementsAreRefused) {
  GraphBuilder g;
  Constant(g, Tensor::Scalar(1.0f));
  const auto session = Session("best");
  const Status status = session->Extend(g.graph());
  EXPECT_THAT(std::string(status.message()), HasSubstr("placement: expected 'client' or 'auto'"));
}

}  // namespace
}  // namespace penstock

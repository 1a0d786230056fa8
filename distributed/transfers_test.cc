// SPDX-License-Identifier: Apache-2.0
//
// Tests transfers between tasks: how traced steps and metrics report them; and that, with
// SessionOptions::bfloat16_transfers, floats take half the bytes and lose only low bits.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "core/op/edge_name.h"
#include "distributed/rpc/ask_cluster.h"
#include "distributed/testing/two_tasks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::HasSubstr;

constexpr int64_t kSize = 10'000;
constexpr char kFloats[] = "floats";

// Returns floats of all magnitudes, infinities and NaNs.
Tensor AnyFloats() {
  Tensor t(DType::kFloat, Shape({kSize}));
  float* const x = t.mutable_data<float>();
  std::mt19937 random(1);
  for (int64_t i = 0; i < kSize; ++i) {
    x[i] = std::ldexp(std::uniform_real_distribution<float>(-1, 1)(random),
                      static_cast<int>(random() % 270) - 145);
  }
  const float special[] = {0,           -0.0f,      INFINITY,    -INFINITY, NAN,
                           0x1p-149f,   -0x1p-133f, 0x1.8p-140f, 1,         -1,
                           0x1.fep127f, 0x1.01p0f,  0x1.03p0f};
  std::copy(std::begin(special), std::end(special), x);
  return t;
}

// A variable on the ps; on the worker its value multiplied by one, and `moved`, its reshaped value.
struct TransferModel {
  explicit TransferModel(GraphBuilder& g, const Attrs& attrs = {}) {
    {
      const auto ps = g.DeviceScope(kPs);
      w = CallIn(
          g, "VariableV2", {},
          {{"dtype", DType::kFloat}, {"shape", PartialShape({kSize})}, {"shared_name", kFloats}});
      read = CallIn(g, "Identity", {w}, attrs);
    }
    {
      const auto worker = g.DeviceScope(kWorker);
      x = CallIn(g, "Placeholder", {},
                 {{"dtype", DType::kFloat}, {"shape", PartialShape({kSize})}});
      used = read * 1;
      moved = Call("Reshape", {read, Constant(g, Tensor::Vector<int32_t>({100, -1}))});
      computed = x * 1;
    }
    const auto ps = g.DeviceScope(kPs);
    init = Call("Assign", {w, computed});
    train = Call("ApplyGradientDescent", {w, Constant(g, Tensor::Scalar(1.0f)), computed});
  }
  Output w, read, x, used, moved, computed, init, train;
};

struct Transfer {
  int count = 0;
  int64_t bytes = 0;
};
// Returns the transfers of a traced step that are larger than a scalar, by consumer.
std::map<std::string, Transfer> TransfersOf(const RunMetadata& metadata) {
  std::map<std::string, Transfer> found;
  for (const DeviceStats& device : metadata.step_stats) {
    for (const NodeStats& node : device.nodes) {
      if (node.node != kTransferStats || node.outputs.empty() || node.outputs[0].bytes < 8)
        continue;
      Transfer& transfer = found[device.device];
      ++transfer.count;
      transfer.bytes += node.outputs[0].bytes;
    }
  }
  return found;
}

class TransfersTest : public TwoTasksTest {
 protected:
  void Step(SessionInterface& session, const GraphBuilder& g, const Feeds& feeds,
            const std::vector<std::string>& fetches, const std::vector<std::string>& targets = {}) {
    metadata_ = {};
    ASSERT_TRUE(g.status().ok()) << g.status();
    ASSERT_TRUE(session.Extend(g.graph()).ok());
    const Status status = session.Run({.trace = true}, feeds, fetches, targets, &out, &metadata_);
    ASSERT_TRUE(status.ok()) << status;
  }
  Transfer Received(const std::string& task) const {
    for (const auto& [device, transfer] : TransfersOf(metadata_)) {
      if (absl::StartsWith(device, task)) return transfer;
    }
    return {};
  }
  // Returns the numbers of tensors and bytes that the ps has sent to the worker since the cluster's
  // start.
  wire::SentReport SentByPs() {
    const auto report = AskCluster(cluster_->target("ps"));
    CHECK_OK(report.status());
    for (const wire::ClusterTask& task : report->task()) {
      for (const wire::SentReport& sent : task.report().sent()) {
        if (absl::StartsWith(task.name(), "/job:ps") && absl::EndsWith(sent.to(), "task:0")) {
          return sent;
        }
      }
    }
    return {};
  }
  RunMetadata metadata_;
};
constexpr char kPsTask[] = "/job:ps", kWorkerTask[] = "/job:worker/replica:0/task:0";

INSTANTIATE_TEST_SUITE_P(Network, TransfersTest, AllNetworks(), NameOf);

bool SameBits(const Tensor& a, const Tensor& b) {
  return a.bytes() == b.bytes() && std::memcmp(a.raw_data(), b.raw_data(), a.bytes()) == 0;
}

TEST_P(TransfersTest, ATracedStepTellsBytesAndEndsOfEach) {
  auto session = cluster_->NewSession();
  GraphBuilder g;
  const TransferModel model(g);
  const Feeds feeds = {{model.x.name(), AnyFloats()}};
  Step(*session, g, feeds, {}, {"Assign"});
  EXPECT_EQ(Received(kPsTask).count, 1);
  EXPECT_EQ(Received(kPsTask).bytes, kSize * 4);
  const wire::SentReport before = SentByPs();
  Step(*session, g, {}, {model.used.name()});
  EXPECT_EQ(Received(kWorkerTask).bytes, kSize * 4);
  const wire::SentReport after = SentByPs();
  EXPECT_EQ(after.bytes() - before.bytes(), kSize * 4);
  EXPECT_EQ(after.tensors() - before.tensors(), 1);
  NodeStats row;
  for (const DeviceStats& device : metadata_.step_stats) {
    for (const NodeStats& node : device.nodes) {
      if (node.node == kTransferStats) row = node;
    }
  }
  ASSERT_TRUE(row.transfer.has_value());
  EXPECT_EQ(row.outputs.at(0).bytes, 40000);
  EXPECT_EQ(TensorOf(row.transfer->edge), "Identity:0");
  EXPECT_EQ(row.transfer->from, "/job:ps/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(row.transfer->to, "/job:worker/replica:0/task:0/device:CPU:0");
}

TEST_P(TransfersTest, RoundedFloatsAreHalfAsLargeAndNearlyTheSame) {
  auto session = cluster_->NewSession({.bfloat16_transfers = true});
  GraphBuilder g;
  const TransferModel model(g);
  const Tensor floats = AnyFloats();
  Step(*session, g, {{model.x.name(), floats}}, {}, {"Assign"});
  EXPECT_EQ(Received(kPsTask).bytes, kSize * 4) << "an assigned value is kept";
  const int64_t before = SentByPs().bytes();
  Step(*session, g, {}, {model.used.name()});
  EXPECT_EQ(Received(kWorkerTask).count, 1);
  EXPECT_EQ(Received(kWorkerTask).bytes, kSize * 2);
  EXPECT_EQ(SentByPs().bytes() - before, kSize * 2);
  const float* const x = floats.data<float>();
  const float* const y = out[0].data<float>();
  int changed = 0;
  for (int64_t i = 0; i < kSize; ++i) {
    changed += x[i] != y[i];
    if (std::isnan(x[i])) {
      EXPECT_TRUE(std::isnan(y[i]));
    } else if (std::isinf(x[i])) {
      EXPECT_EQ(y[i], x[i]);
    } else {
      // bfloat16 has 8 significant bits; subnormal values are multiples of 2^-133.
      const double bound = std::max(std::abs(x[i]) * 0x1p-8, 0x1p-134);
      EXPECT_LE(std::abs(static_cast<double>(x[i]) - y[i]), bound) << x[i];
      EXPECT_EQ(std::signbit(x[i]), std::signbit(y[i])) << x[i];
    }
  }
  EXPECT_GT(changed, kSize / 2) << "or nothing was rounded";
  EXPECT_EQ(y[11], 1) << "half-way: to even";
  EXPECT_EQ(y[12], 0x1.04p0f) << "half-way: to even";
}

TEST_P(TransfersTest, WhatIsKeptOrFetchedHasItsBits) {
  SessionOptions options{.bfloat16_transfers = true};
  options.disabled_passes = {"simplify"};  // the pass would remove the product by 1
  auto session = cluster_->NewSession(options);
  GraphBuilder g;
  const TransferModel model(g);
  const Tensor floats = AnyFloats();
  Step(*session, g, {{model.x.name(), floats}}, {}, {"Assign"});
  Step(*session, g, {}, {model.read.name()});
  EXPECT_TRUE(SameBits(out[0], floats)) << "through the assignment and the fetch";
  Step(*session, g, {}, {model.moved.name()});
  EXPECT_TRUE(SameBits(out[0], floats)) << "fetched after a Reshape on the worker";
  Step(*session, g, {{model.x.name(), floats}}, {}, {"ApplyGradientDescent"});
  EXPECT_EQ(Received(kPsTask).bytes, kSize * 2) << "a gradient is not kept";
}

TEST_P(TransfersTest, ANodeChoosesForItself) {
  for (const char* type : {"float", "bfloat16"}) {
    auto session = cluster_->NewSession({.bfloat16_transfers = std::string(type) == "float"});
    GraphBuilder g;
    const TransferModel model(g, {{"_send_as", std::string(type)}});
    Step(*session, g, {{model.x.name(), AnyFloats()}}, {}, {"Assign"});
    Step(*session, g, {}, {model.used.name()});
    EXPECT_EQ(Received(kWorkerTask).bytes, kSize * (std::string(type) == "float" ? 4 : 2));
  }
}

// The values of both branches are sent to the worker and back; one of them is dead.
TEST_P(TransfersTest, DeadValuesStayDead) {
  auto session = cluster_->NewSession({.bfloat16_transfers = true});
  GraphBuilder g;
  Output chosen, merged;
  const Output pred =
      CallIn(g, "Placeholder", {}, {{"dtype", DType::kBool}, {"shape", PartialShape(Shape())}});
  Outputs branches;
  {
    const auto ps = g.DeviceScope(kPs);
    const Output x =
        CallIn(g, "Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape({-1})}});
    chosen = Call("Switch", {x * 1, pred});
  }
  {
    const auto worker = g.DeviceScope(kWorker);
    branches = {chosen * 2, chosen.Sibling(1) * 3};
  }
  {
    const auto ps = g.DeviceScope(kPs);
    merged = Call("Merge", {branches}) * 1;
  }
  const Tensor ones = Tensor::Vector<float>(std::vector<float>(kSize, 1));
  for (const bool yes : {false, true}) {
    Step(*session, g, {{pred.name(), Tensor::Scalar(yes)}, {"Placeholder_1:0", ones}},
         {merged.name()});
    EXPECT_EQ(out[0].data<float>()[kSize - 1], yes ? 3 : 2);
    EXPECT_EQ(Received(kWorkerTask).bytes, kSize * 2 + kSize * 4) << "and the fetch";
  }
}

// The first layer can run while the weights of the other layers are still under way.
TEST_P(TransfersTest, WeightsArriveInTheOrderOfTheLayers) {
  constexpr int kLayers = 8;
  auto session = cluster_->NewSession();
  GraphBuilder g;
  Outputs reads;
  {
    const auto ps = g.DeviceScope(kPs);
    const Output value = Constant(g, Tensor(DType::kFloat, Shape({64, 64})));
    for (int i = 0; i < kLayers; ++i) {
      const Output w = CallIn(g, "VariableV2", {},
                              {{"dtype", DType::kFloat},
                               {"shape", PartialShape({64, 64})},
                               {"shared_name", StrCat("layer", i)}});
      Call("Assign", {w, value});
      reads.push_back(CallIn(g, "Identity", {w}));
    }
  }
  Output y;
  {
    const auto worker = g.DeviceScope(kWorker);
    y = CallIn(g, "Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape({1, 64})}});
    for (const Output read : reads) y = Call("MatMul", {y, read});
  }
  std::vector<std::string> assigns;
  for (int i = 0; i < kLayers; ++i) assigns.push_back(i == 0 ? "Assign" : StrCat("Assign_", i));
  Step(*session, g, {}, {}, assigns);
  Step(*session, g, {{"Placeholder:0", Tensor(DType::kFloat, Shape({1, 64}))}}, {y.name()});
  std::vector<std::pair<int64_t, std::string>> arrived;
  for (const DeviceStats& device : metadata_.step_stats) {
    for (const NodeStats& node : device.nodes) {
      if (node.node != kTransferStats || node.outputs.empty()) continue;
      if (node.outputs[0].bytes == 64 * 64 * 4)
        arrived.emplace_back(node.end_ns, node.transfer->edge);
    }
  }
  std::sort(arrived.begin(), arrived.end());
  ASSERT_EQ(arrived.size(), kLayers);
  for (int i = 0; i < kLayers; ++i) {
    const std::string name = i == 0 ? "_Identity:0" : StrCat("_Identity_", i, ":0");
    EXPECT_THAT(arrived[i].second, HasSubstr(name));
  }
}

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Tests the values and devices of parts, and restoring checkpoints with other numbers of parts and
// from TensorFlow.
#include "client/embedding/partitioned_variable.h"

#include <optional>
#include <set>

#include "client/device_setter.h"
#include "client/embedding/lookup.h"
#include "client/optimizers.h"
#include "client/saver.h"
#include "client/session.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/op/gradient.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string NewDirectory() {
  const std::string path = StrCat(testing::TempDir(), "/partitioned_", Env::Real().RandomU64());
  CHECK_OK(Env::Real().CreateDirectories(path));
  return path;
}

// A table of 7 rows, initialised in a session; `train` is a step of Adagrad.
struct Model {
  explicit Model(PartitionedVariableOptions options, int64_t seed = 5)
      : Model(options, RandomUniform(-1, 1, seed)) {}
  Model(PartitionedVariableOptions options, const Initializer& initializer) {
    options.variable.dtype = DType::kDouble;
    table.emplace(program, "table", Shape({7, 2}), initializer, options);
    const Output rows =
        EmbeddingLookup(*table, Constant(program, Tensor::Vector<int64_t>({6, 1, 3, 3, 0, 1})));
    const Output loss = Sum(Square(rows), Constant(program, Tensor::Vector<int32_t>({0, 1})));
    const auto gradients = optimizer.ComputeGradients(program, loss);
    train = optimizer.ApplyGradients(program, gradients);
    const Output zero = Constant(program, Tensor::Scalar<int32_t>(0));
    slots = optimizer.slots().size() == 1
                ? optimizer.slots()[0].Read()
                : ConcatV2({optimizer.slots().begin(), optimizer.slots().end()}, zero);
    whole = table->Read();
    init = program.Initialize(program.globals());
    std::vector<Variable> saved = table->parts();
    saved.insert(saved.end(), optimizer.slots().begin(), optimizer.slots().end());
    saver.emplace(program, saved);
    auto made = Session::New(program);
    CHECK_OK(made.status());
    session = *std::move(made);
    CHECK_OK(session->Execute(init));
  }
  std::string Values(Output output) { return session->Fetch(output)->ToString(100); }

  Program program;
  std::optional<PartitionedVariable> table;
  Adagrad optimizer{0.5};
  Output train, slots, whole, init;
  std::optional<Saver> saver;
  std::unique_ptr<Session> session;
};

TEST(PartitionedVariableTest, PartsShareTheRows) {
  Program program;
  const PartitionedVariable table(program, "layer/table", {8, 2}, Zeros(), {.parts = 3});
  EXPECT_EQ(table.name(), "layer/table");
  EXPECT_THAT(table.starts(), ElementsAre(0, 3, 6));
  EXPECT_EQ(table.parts()[2].name(), "layer/table/part_2");
  EXPECT_EQ(table.parts()[2].saved_name(), "layer/table");
  EXPECT_EQ(table.parts()[2].saved_slice(), "8 2 6,2:0,2");
  EXPECT_EQ(table.Read().shape(), PartialShape({8, 2}));
  const PartitionedVariable again(program, "layer/table", {8, 2}, Zeros());
  EXPECT_EQ(again.name(), "layer/table_1");
  EXPECT_TRUE(program.status().ok()) << program.status();
}

TEST(PartitionedVariableTest, PartsWithOneSeedDiffer) {
  Program program;
  const PartitionedVariable table(program, "t", {4, 8}, RandomUniform(0, 1, 3), {.parts = 2});
  auto session = *Session::New(program);
  ASSERT_TRUE(session->Execute(table.initializer()).ok());
  EXPECT_NE(session->Fetch(table.parts()[0])->ToString(),
            session->Fetch(table.parts()[1])->ToString());
}

TEST(PartitionedVariableTest, FansAreThoseOfTheWhole) {
  Program program;
  const PartitionedVariable table(program, "t", {1000, 4}, GlorotUniform(3), {.parts = 100});
  auto session = *Session::New(program);
  ASSERT_TRUE(session->Execute(table.initializer()).ok());
  const auto values = session->Fetch(table.Read());
  ASSERT_TRUE(values.ok()) << values.status();
  float largest = 0;
  for (const float v : values->flat<float>()) largest = std::max(largest, std::abs(v));
  EXPECT_NEAR(largest, std::sqrt(6.0 / 1004), 1e-3);
}

// One of three servers has a variable larger than all parts of the two tables. So the parts go to
// the other two.
TEST(PartitionedVariableTest, PartsGoWhereTheFewestBytesAre) {
  Program program;
  const auto placed =
      program.DeviceFunctionScope(ReplicaDeviceSetter({.ps_tasks = 3, .balance = Balance::kBytes}));
  const Variable large(program, "large", {1000, 10}, Zeros());
  const PartitionedVariable a(program, "a", {100, 10}, Zeros(), {.parts = 4});
  const PartitionedVariable b(program, "b", {100, 30}, Zeros(), {.parts = 2});
  EXPECT_THAT(large.device(), HasSubstr("task:0"));
  std::multiset<std::string> devices;
  for (const Variable& part : a.parts()) devices.insert(part.device());
  for (const Variable& part : b.parts()) devices.insert(part.device());
  EXPECT_EQ(devices.count("/job:ps/task:1"), 3u);
  EXPECT_EQ(devices.count("/job:ps/task:2"), 3u);
}

class RestoreTest : public testing::TestWithParam<std::pair<int, int>> {};
INSTANTIATE_TEST_SUITE_P(Parts, RestoreTest,
                         testing::Values(std::pair{1, 3}, std::pair{3, 1}, std::pair{3, 2},
                                         std::pair{2, 7}, std::pair{3, 3}));

TEST_P(RestoreTest, TheTableAndItsSlotsRestoreToOtherParts) {
  const auto [from_parts, to_parts] = GetParam();
  Model from({.parts = from_parts}), to({.parts = to_parts}, 6);
  ASSERT_TRUE(from.session->Execute(from.train).ok());
  const auto saved = from.saver->Save(*from.session, NewDirectory() + "/model", 1);
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_NE(to.Values(to.whole), from.Values(from.whole));
  const Status restored = to.saver->Restore(*to.session, *saved);
  ASSERT_TRUE(restored.ok()) << restored;
  EXPECT_EQ(to.Values(to.whole), from.Values(from.whole));
  EXPECT_EQ(to.Values(to.slots), from.Values(from.slots));
  const auto reader = BundleReader::Open(Env::Real(), *saved);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_THAT((*reader)->names(), ElementsAre("table", "table/Adagrad"));
  // After one more step the two programs still have equal tables.
  ASSERT_TRUE(from.session->Execute(from.train).ok());
  ASSERT_TRUE(to.session->Execute(to.train).ok());
  EXPECT_EQ(to.Values(to.whole), from.Values(from.whole));
}

// testdata/make_testdata.py made this table and step with TensorFlow.
TEST(PartitionedVariableTest, RestoresWhatTensorFlowPartitioned) {
  const std::string checkpoint = "client/embedding/testdata/tensorflow";
  const auto reader = BundleReader::Open(Env::Real(), checkpoint);
  ASSERT_TRUE(reader.ok()) << reader.status();
  for (const int parts : {1, 2, 3}) {
    Model model({.parts = parts});
    const Status restored = model.saver->Restore(*model.session, checkpoint);
    ASSERT_TRUE(restored.ok()) << restored;
    EXPECT_EQ(model.Values(model.whole), (*reader)->Read("table")->ToString(100));
    EXPECT_EQ(model.Values(model.slots), (*reader)->Read("table/Adagrad")->ToString(100));
  }
}

TEST(PartitionedVariableTest, PartsByModRestoreOnlyToAsMany) {
  const PartitionedVariableOptions mod = {.parts = 3, .strategy = PartitionStrategy::kMod};
  Model from(mod);
  ASSERT_TRUE(from.session->Execute(from.train).ok());
  const auto saved = from.saver->Save(*from.session, NewDirectory() + "/model", 1);
  ASSERT_TRUE(saved.ok()) << saved.status();
  Model same(mod, 6);
  ASSERT_TRUE(same.saver->Restore(*same.session, *saved).ok());
  EXPECT_EQ(same.Values(same.whole), from.Values(from.whole));
  Model two({.parts = 2, .strategy = PartitionStrategy::kMod}, 6);
  const std::string before = two.Values(two.whole);
  const Status refused = two.saver->Restore(*two.session, *saved);
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("'table' is partitioned by mod into 2 parts, and was saved from 3"));
  EXPECT_EQ(two.Values(two.whole), before);
}

}  // namespace
}  // namespace penstock::client

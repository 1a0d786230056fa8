// SPDX-License-Identifier: Apache-2.0
#include "distributed/replica/record_proto.h"

#include <random>
#include <string>

#include "core/op/resource.h"
#include "core/op/state_replay.h"
#include "core/op/variable.h"
#include "gtest/gtest.h"
#include "proto/tensorflow/tensor.pb.h"

namespace penstock {
namespace {

constexpr int64_t kBytesMax = 1 << 20;

KeptChange Sample() {
  KeptChange change{
      .position = 7, .step_id = -3, .incarnation = 5, .device = "/job:ps/task:0", .node = "n"};
  change.parts.push_back({.container = "c",
                          .name = "v",
                          .type = "Variable",
                          .action = kCreateAction,
                          .id = 9,
                          .version = 4,
                          .values = {Value(DType::kFloat), Value(PartialShape({2})),
                                     Tensor::Vector<float>({1, -0.f})}});
  change.parts.push_back({.container = "c",
                          .name = "v",
                          .type = "Variable",
                          .action = "update",
                          .id = 9,
                          .version = 5,
                          .values = {Tensor::Vector<float>({3, 4})}});
  return change;
}

wire::StateRecord SampleRecord() {
  wire::StateRecord record;
  CHECK_OK(RecordToProto(Sample(), &record));
  return record;
}

StatusOr<KeptChange> Read(const wire::StateRecord& record, int64_t bytes_max = kBytesMax) {
  PieceReader pieces;
  return RecordFromProto(record, &bytes_max, &pieces);
}

TEST(RecordProtoTest, ComesBackAsItWas) {
  const StatusOr<KeptChange> back = Read(SampleRecord());
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->position, 7);
  EXPECT_EQ(back->step_id, -3);
  EXPECT_EQ(back->incarnation, 5);
  EXPECT_EQ(back->device, "/job:ps/task:0");
  EXPECT_EQ(back->node, "n");
  EXPECT_EQ(back->bytes(), Sample().bytes());

  ResourceStore store;
  StateReplayer replayer(store, Env::Real());
  std::vector<ResourceChange> parts;
  ASSERT_EQ(replayer.Apply(BorrowChange(*back, &parts)), OkStatus());
  const auto resource = *store.Lookup("c", "v");
  EXPECT_EQ(resource->version(), 5);
  EXPECT_EQ(dynamic_cast<Variable&>(*resource).Read()->ToString(),
            Tensor::Vector<float>({3, 4}).ToString());
}

TEST(RecordProtoTest, SaysWhatIsWrong) {
  EXPECT_EQ(Read(wire::StateRecord()).status().message(),
            "a record of 0 parts, expected 1 to 1000000");
  wire::StateRecord record = SampleRecord();
  record.mutable_part(1)->mutable_value(0)->mutable_tensor_content()->pop_back();
  const Status status = Read(record).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_NE(status.message().find("Variable 'v' in container 'c'"), std::string::npos) << status;
  EXPECT_NE(status.message().find("value 0"), std::string::npos) << status;
}

TEST(RecordProtoTest, BoundsItsMemory) {
  EXPECT_TRUE(absl::IsResourceExhausted(Read(SampleRecord(), 20).status()));
  wire::StateRecord record = SampleRecord();
  tensorflow::TensorProto& value = *record.mutable_part(1)->mutable_value(0);
  value.clear_tensor_content();
  value.mutable_tensor_shape()->mutable_dim(0)->set_size(int64_t{1} << 40);
  EXPECT_TRUE(absl::IsResourceExhausted(Read(record).status()));
}

// Parsing a damaged record gives an error or another change, and the store can be used afterwards.
TEST(RecordProtoTest, SurvivesHostileBytes) {
  const std::string whole = SampleRecord().SerializeAsString();
  std::mt19937 random(1);
  int parsed = 0, applied = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = whole;
    for (int flips = 1 + static_cast<int>(random() % 3); flips > 0; --flips) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    wire::StateRecord record;
    if (!record.ParseFromString(bytes)) continue;
    const StatusOr<KeptChange> change = Read(record);
    if (!change.ok()) continue;
    ++parsed;
    ResourceStore store;
    StateReplayer replayer(store, Env::Real());
    std::vector<ResourceChange> parts;
    applied += replayer.Apply(BorrowChange(*change, &parts)).ok();
    replayer.End({});
    (void)store.List();
  }
  EXPECT_GT(parsed, 1000);
  EXPECT_GT(applied, 100);
  EXPECT_LT(applied, parsed);
}

}  // namespace
}  // namespace penstock

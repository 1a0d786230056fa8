// SPDX-License-Identifier: Apache-2.0
//
// Tests how a task collects graphs that come in parts, and how it refuses parts.
#include "distributed/rpc/graph_upload.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "core/base/forwarding_env.h"
#include "core/graph/builder.h"
#include "core/graph/graph_proto.h"
#include "core/tensor/memory_account.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {
namespace {

using testing::HasSubstr;

// A constant of 200,000 bytes makes three pieces.
constexpr PieceLimits kUploadKilobytes = {
    .whole_bytes_max = 64 << 10, .piece_bytes_max = 80'000, .constant_bytes_min = 64 << 10};

class UploadClock final : public ForwardingEnv {
 public:
  UploadClock() : ForwardingEnv(Env::Real()) {}
  int64_t NowNanos() override { return now_ns; }
  int64_t now_ns = 1;
};

class GraphUploadTest : public testing::Test {
 protected:
  GraphUploadTest() {
    Tensor value(DType::kFloat, Shape({50'000}));
    for (int i = 0; i < 50'000; ++i) value.mutable_data<float>()[i] = static_cast<float>(i);
    constant_ = Constant(g_, value);
    CHECK_OK(g_.status());
  }

  std::vector<tensorflow::GraphDef> Parts(uint64_t id) {
    std::vector<tensorflow::GraphDef> parts;
    GraphUpload upload(g_.graph(), kUploadKilobytes, id);
    tensorflow::GraphDef def;
    while (upload.Next(&def)) parts.push_back(std::move(def));
    CHECK(parts.size() == 4, "three pieces and the nodes");
    return parts;
  }
  // Adds a part; returns OK with null, or an error.
  Status Add(tensorflow::GraphDef part, const GraphUploads::Name& name = {.session = "s"}) {
    CHECK(GraphUploads::IsPart(part), "there is no stamp");
    return uploads_.Add(name, &part).status();
  }
  bool DropIdle() {
    return uploads_.DropIdle([this](const std::string& session) { return session != ended_; });
  }
  void ExpectRefused(tensorflow::GraphDef part, StatusCode code, const std::string& text) {
    const Status status = Add(std::move(part));
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }
  static tensorflow::NodeDef* Piece(tensorflow::GraphDef* part) { return part->mutable_node(0); }
  static tensorflow::AttrValue& StampAttr(tensorflow::GraphDef* part, const char* name) {
    return part->mutable_node(part->node_size() - 1)->mutable_attr()->at(name);
  }

  GraphBuilder g_;
  Output constant_;
  UploadClock clock_;
  std::string ended_;  // a session
  GraphUploads uploads_{clock_};
};

TEST_F(GraphUploadTest, TheLastPartBringsTheConstants) {
  std::vector<tensorflow::GraphDef> parts = Parts(7);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Add(parts[i]), OkStatus());
    EXPECT_EQ(uploads_.size(), 1u);
  }
  auto constants = uploads_.Add({.session = "s"}, &parts[3]);
  ASSERT_TRUE(constants.ok()) << constants.status();
  ASSERT_NE(*constants, nullptr);
  EXPECT_EQ(uploads_.size(), 0u);
  Graph graph(Registry::Global());
  ASSERT_EQ((*constants)->Import(&parts[3], &graph), OkStatus());
  tensorflow::GraphDef sent, received;
  ExportGraph(g_.graph(), &sent);
  ExportGraph(graph, &received);
  EXPECT_EQ(received.node(0).DebugString(), sent.node(0).DebugString());
}

TEST_F(GraphUploadTest, AGraphThatFitsHasNoStamp) {
  PieceLimits limits = kUploadKilobytes;
  limits.whole_bytes_max = 200'000;
  GraphUpload upload(g_.graph(), limits, 7);
  EXPECT_TRUE(upload.whole());
  tensorflow::GraphDef def, whole;
  ASSERT_TRUE(upload.Next(&def));
  ExportGraph(g_.graph(), &whole);
  // As text, because the order of attributes in serialized messages varies.
  EXPECT_TRUE(def.DebugString() == whole.DebugString());
  EXPECT_FALSE(GraphUploads::IsPart(def));
  EXPECT_FALSE(upload.Next(&def));
  EXPECT_FALSE(GraphUploads::IsPart({}));
}

TEST_F(GraphUploadTest, PartsMustComeInOrder) {
  const auto parts = Parts(7);
  ASSERT_EQ(Add(parts[0]), OkStatus());
  ExpectRefused(parts[2], StatusCode::kInvalidArgument,
                "part 1 of a graph is missing: part 2 came instead");
  ExpectRefused(parts[1], StatusCode::kAborted, "does not have the earlier parts");
  ASSERT_EQ(Add(parts[0]), OkStatus());
  ASSERT_EQ(Add(parts[1]), OkStatus());
  ExpectRefused(parts[1], StatusCode::kInvalidArgument, "part 1 of a graph came twice");
  ASSERT_EQ(Add(parts[0]), OkStatus());
  ExpectRefused(parts[3], StatusCode::kInvalidArgument, "part 1 of a graph is missing");
  EXPECT_EQ(uploads_.size(), 0u);
}

TEST_F(GraphUploadTest, AnUploadMayBeginAgain) {
  const auto parts = Parts(7), again = Parts(8);
  ASSERT_EQ(Add(parts[0]), OkStatus());
  ASSERT_EQ(Add(parts[1]), OkStatus());
  ASSERT_EQ(Add(again[0]), OkStatus());
  EXPECT_EQ(uploads_.size(), 1u);
  // A late part of the first upload does not disturb the second one.
  ExpectRefused(parts[2], StatusCode::kInvalidArgument, "belongs to another upload");
  for (int i = 1; i < 4; ++i) EXPECT_EQ(Add(again[i]), OkStatus());
}

TEST_F(GraphUploadTest, CorruptPartsAreRefused) {
  const auto good = Parts(7);
  tensorflow::GraphDef bad = good[0];
  Piece(&bad)->mutable_attr()->at("bytes").mutable_s()->at(5) ^= 1;
  ExpectRefused(bad, StatusCode::kDataLoss, "part 0 of a graph has a wrong checksum");
  bad = good[0];
  StampAttr(&bad, "crc32c").set_i(3);
  ExpectRefused(bad, StatusCode::kDataLoss, "wrong checksum");
  bad = good[0];
  bad.mutable_node(1)->mutable_attr()->erase("number");
  ExpectRefused(bad, StatusCode::kInvalidArgument, "stamp of a part of a graph lacks an attribute");
  bad = good[0];
  Piece(&bad)->mutable_attr()->erase("dtype");
  ExpectRefused(bad, StatusCode::kInvalidArgument, "lacks an attribute");
  bad = good[0];
  Piece(&bad)->set_name(std::string(40'000, 'n'));
  ExpectRefused(bad, StatusCode::kInvalidArgument, "a name of 40000 bytes");
  bad = good[0];
  StampAttr(&bad, "number").set_i(-1);
  ExpectRefused(bad, StatusCode::kInvalidArgument, "a part of a graph has the number -1");
  EXPECT_EQ(uploads_.size(), 0u);
}

// Small tensors are not charged to the task, so they could take any amount of memory.
TEST_F(GraphUploadTest, SmallConstantsAreRefused) {
  tensorflow::GraphDef bad = Parts(7)[0];
  auto* const shape = Piece(&bad)->mutable_attr()->at("shape").mutable_shape();
  shape->mutable_dim(0)->set_size(8192);
  ExpectRefused(bad, StatusCode::kInvalidArgument, "a piece of a constant of 32768 bytes");
}

// A few bytes must not keep the memory of a large constant.
TEST_F(GraphUploadTest, SmallPiecesAreRefused) {
  const auto good = Parts(7);
  const auto set_bytes = [](tensorflow::GraphDef* part, const std::string& bytes) {
    Piece(part)->mutable_attr()->at("bytes").set_s(bytes);
    StampAttr(part, "crc32c").set_i(ConstantPieces::Checksum(*part));
  };
  tensorflow::GraphDef bad = good[0];
  set_bytes(&bad, std::string(GraphUploads::kPieceBytesMin - 4, 'x'));
  ExpectRefused(bad, StatusCode::kInvalidArgument,
                "a piece of 65532 bytes of a constant of 200000 bytes");
  set_bytes(&bad, std::string(GraphUploads::kPieceBytesMin, 'x'));
  EXPECT_EQ(Add(bad), OkStatus());
  bad = good[1];
  Piece(&bad)->mutable_attr()->at("offset").set_i(GraphUploads::kPieceBytesMin);
  set_bytes(&bad, "");
  ExpectRefused(bad, StatusCode::kInvalidArgument, "a piece of 0 bytes");
  EXPECT_EQ(uploads_.size(), 0u);
}

// Deletes the uploads while a part of one is read: then it does not come back.
TEST_F(GraphUploadTest, AnUploadThatIsDroppedWhileAPartIsReadStaysDropped) {
  Tensor value(DType::kFloat, Shape({1'000'000}));
  std::fill_n(value.mutable_data<float>(), value.num_elements(), 1.0f);
  Constant(g_, std::move(value));
  std::atomic<bool> stop{false};
  std::thread drops([&] {
    while (!stop) uploads_.Drop("s", 0);
  });
  int whole = 0;
  for (int i = 0; i < 50; ++i) {
    GraphUpload upload(g_.graph(), kUploadKilobytes, i);
    tensorflow::GraphDef def;
    Status status;
    while (status.ok() && upload.Next(&def)) status = Add(def);
    if (status.ok()) ++whole;
    EXPECT_TRUE(status.ok() || absl::IsAborted(status)) << status;
  }
  stop = true;
  drops.join();
  EXPECT_LT(whole, 50);
  uploads_.Drop("s", 0);
  EXPECT_EQ(uploads_.size(), 0u);
}

TEST_F(GraphUploadTest, AConstantTooLargeForTheTaskIsRefused) {
  MemoryAccount& task = MemoryAccount::Task();
  const int64_t limit = task.limit();
  task.set_limit(task.in_use() + 50'000);
  ExpectRefused(Parts(7)[0], StatusCode::kResourceExhausted, "no memory for a tensor");
  task.set_limit(limit);
  EXPECT_EQ(uploads_.size(), 0u);
}

TEST_F(GraphUploadTest, AbandonedUploadsAreDropped) {
  const auto parts = Parts(7);
  const GraphUploads::Name same = {.session = "s", .device = "CPU:0"},
                           other = {.session = "s", .graph = 1};
  const int64_t before = MemoryAccount::Task().in_use();
  for (const auto& name : {GraphUploads::Name{.session = "s"}, same, other}) {
    ASSERT_EQ(Add(parts[0], name), OkStatus());
  }
  EXPECT_GE(MemoryAccount::Task().in_use(), before + 600'000);
  clock_.now_ns += GraphUploads::kIdleNanos - 1;
  EXPECT_FALSE(DropIdle());
  EXPECT_EQ(uploads_.size(), 3u);
  ASSERT_EQ(Add(parts[1], same), OkStatus());
  clock_.now_ns += 1;
  EXPECT_TRUE(DropIdle());
  EXPECT_EQ(uploads_.size(), 2u) << "parts of their graph still arrive, but not of the other graph";
  EXPECT_EQ(Add(parts[1], other).code(), StatusCode::kAborted);
  clock_.now_ns += GraphUploads::kIdleNanos;
  EXPECT_TRUE(DropIdle());
  EXPECT_FALSE(DropIdle());
  EXPECT_EQ(uploads_.size(), 0u);
  EXPECT_LT(MemoryAccount::Task().in_use(), before + 200'000);
  ExpectRefused(parts[1], StatusCode::kAborted, "or if no part comes for 600 s");
}

TEST_F(GraphUploadTest, UploadsOfSessionsThatHaveEndedAreDropped) {
  const auto parts = Parts(7);
  ASSERT_EQ(Add(parts[0]), OkStatus());
  ASSERT_EQ(Add(parts[0], {.session = "t"}), OkStatus());
  ended_ = "s";
  EXPECT_TRUE(DropIdle());
  EXPECT_EQ(uploads_.size(), 1u);
  EXPECT_FALSE(DropIdle());
  EXPECT_EQ(Add(parts[1], {.session = "t"}), OkStatus());
}

TEST_F(GraphUploadTest, TheEndOfASessionOrAGraphDropsItsUploads) {
  const auto parts = Parts(7);
  const GraphUploads::Name graph = {.session = "s", .graph = 1, .device = "CPU:0"};
  ASSERT_EQ(Add(parts[0]), OkStatus());
  ASSERT_EQ(Add(parts[0], graph), OkStatus());
  ASSERT_EQ(Add(parts[0], {.session = "s", .graph = 1, .device = "GPU:0"}), OkStatus());
  uploads_.Drop("r");
  uploads_.Drop("t");
  uploads_.Drop("s", 2);
  EXPECT_EQ(uploads_.size(), 3u);
  uploads_.Drop("s", 1);
  EXPECT_EQ(uploads_.size(), 1u);
  ASSERT_EQ(Add(parts[0], graph), OkStatus());
  uploads_.Drop("s");
  EXPECT_EQ(uploads_.size(), 0u);
}

TEST_F(GraphUploadTest, TheNumberOfUploadsIsLimited) {
  const auto parts = Parts(7);
  const auto name = [](size_t i) {
    return GraphUploads::Name{.session = StrCat(i / GraphUploads::kUploadsOfSessionMax),
                              .graph = i % GraphUploads::kUploadsOfSessionMax};
  };
  for (size_t i = 0; i < GraphUploads::kUploadsOfSessionMax; ++i) {
    ASSERT_EQ(Add(parts[0], name(i)), OkStatus());
  }
  const Status status = Add(parts[0], {.session = "0", .device = "CPU:0"});
  EXPECT_EQ(status, ResourceExhausted(
                        "this task is receiving 250 graphs of the session in parts already"));
  for (size_t i = GraphUploads::kUploadsOfSessionMax; i < GraphUploads::kUploadsMax; ++i) {
    ASSERT_EQ(Add(parts[0], name(i)), OkStatus());
  }
  ExpectRefused(parts[0], StatusCode::kResourceExhausted, "receiving 1000 graphs in parts already");
  EXPECT_EQ(Add(parts[1], name(17)), OkStatus());
}

// The limit is 0 if the nodes alone take more than a message.
TEST_F(GraphUploadTest, WholeGraphsMayBeExcluded) {
  PieceLimits limits = kUploadKilobytes;
  limits.whole_bytes_max = 0;
  GraphBuilder g;
  Constant(g, Tensor::Vector<float>({1, 2}));
  GraphUpload small(g.graph(), limits, 7);
  EXPECT_TRUE(small.whole()) << "there is nothing to send in parts";
  limits.constant_bytes_min = 1;
  GraphUpload upload(g.graph(), limits, 7);
  EXPECT_FALSE(upload.whole());
  tensorflow::GraphDef def;
  ASSERT_TRUE(upload.Next(&def));
  EXPECT_TRUE(GraphUploads::IsPart(def) && ConstantPieces::IsPiece(def));
  ASSERT_TRUE(upload.Next(&def));
  EXPECT_TRUE(GraphUploads::IsPart(def) && !ConstantPieces::IsPiece(def));
  EXPECT_FALSE(upload.Next(&def));
}

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Tests queue ops one by one. Waiting operations are tested in queue_test.cc and
// client/run_queue_runners_test.cc. Statuses and values were compared with TensorFlow 2.21.
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "core/op/testing/op_runner.h"

namespace penstock {
namespace {

using DTypeList = std::vector<DType>;
using ShapeListValue = std::vector<PartialShape>;

// A queue for one test.
class TestQueue {
 public:
  TestQueue(const char* op, Attrs attrs, bool v2 = true) : suffix_(v2 ? "V2" : "") {
    OpRunner runner(StrCat(op, suffix_), resources_);
    types_ = *attrs["component_types"].get<std::vector<EdgeType>>();
    if (StrCat(op) == "PriorityQueue") types_.insert(types_.begin(), EdgeType{DType::kInt64});
    for (const auto& [name, value] : attrs) runner.Attr(name, value);
    auto handle = runner.Run1();
    CHECK_OK(handle.status());
    handle_ = *handle;
  }

  StatusOr<std::vector<Tensor>> Run(const std::string& op, std::vector<Tensor> inputs = {},
                                    Attrs attrs = {}) {
    OpRunner runner(op + suffix_, resources_);
    runner.In(handle_);
    if (absl::StrContains(op, "Enqueue")) {
      runner.InList(std::move(inputs));
    } else {
      for (Tensor& input : inputs) runner.In(std::move(input));
    }
    if (absl::StrContains(op, "Dequeue")) runner.Attr("component_types", types_);
    for (const auto& [name, value] : attrs) runner.Attr(name, value);
    return runner.Run();
  }
  Status Enqueue(std::vector<Tensor> components) {
    return Run("QueueEnqueue", std::move(components)).status();
  }
  Status EnqueueMany(std::vector<Tensor> components) {
    return Run("QueueEnqueueMany", std::move(components)).status();
  }
  StatusOr<std::vector<Tensor>> DequeueMany(int32_t n) {
    return Run("QueueDequeueMany", {Tensor::Scalar<int32_t>(n)});
  }
  std::string Dequeue() { return Text(Run("QueueDequeue")); }
  std::string Many(int32_t n) { return Text(DequeueMany(n)); }
  std::string UpTo(int32_t n) {
    return Text(Run("QueueDequeueUpTo", {Tensor::Scalar<int32_t>(n)}));
  }
  int32_t Size() { return (*Run("QueueSize"))[0].scalar<int32_t>(); }
  Status Close() { return Run("QueueClose").status(); }

  // Returns the tensors as text, such as "int32[] 1; float[2] 1 2", or the error.
  static std::string Text(const StatusOr<std::vector<Tensor>>& tensors) {
    if (!tensors.ok()) {
      return StrCat(StatusCodeToString(tensors.status().code()), ": ", tensors.status().message());
    }
    std::string text;
    for (const Tensor& t : *tensors) StrAppend(&text, text.empty() ? "" : "; ", t.ToString(100));
    return text;
  }

  const std::shared_ptr<ResourceStore>& resources() { return resources_; }

 private:
  const std::string suffix_;
  const std::shared_ptr<ResourceStore> resources_ = std::make_shared<ResourceStore>();
  std::vector<EdgeType> types_;
  Tensor handle_;
};

Tensor I(int32_t v) { return Tensor::Scalar(v); }
Tensor F(const std::vector<float>& v) { return Tensor::Vector(v); }

Attrs Pairs(int64_t capacity = -1) {
  return {{"component_types", DTypeList{DType::kInt32, DType::kFloat}},
          {"shapes", ShapeListValue{PartialShape::Scalar(), PartialShape({2})}},
          {"capacity", capacity}};
}

TEST(QueueOps, FirstInFirstOut) {
  for (const bool v2 : {false, true}) {
    TestQueue q("FIFOQueue", Pairs(), v2);
    EXPECT_TRUE(q.Enqueue({I(1), F({1, 2})}).ok());
    EXPECT_TRUE(
        q.EnqueueMany({Tensor::Vector<int32_t>({2, 3}), Tensor::Of<float>({2, 2}, {3, 4, 5, 6})})
            .ok());
    EXPECT_TRUE(q.EnqueueMany({Tensor(DType::kInt32, {0}), Tensor(DType::kFloat, {0, 2})}).ok());
    EXPECT_EQ(q.Size(), 3);
    EXPECT_EQ(q.Dequeue(), "int32[] 1; float[2] 1 2");
    EXPECT_EQ(q.Many(2), "int32[2] 2 3; float[2,2] 3 4 5 6");
    EXPECT_EQ(q.Many(0), "int32[0]; float[0,2]");
    EXPECT_FALSE((*q.Run("QueueIsClosed"))[0].scalar<bool>());
    EXPECT_TRUE(q.Close().ok());
    EXPECT_TRUE((*q.Run("QueueIsClosed"))[0].scalar<bool>());
  }
}

TEST(QueueOps, EndOfInput) {
  TestQueue q("FIFOQueue", Pairs());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(q.Enqueue({I(i), F({0, 1})}).ok());
  ASSERT_TRUE(q.Close().ok());
  EXPECT_EQ(q.Many(3),
            "OUT_OF_RANGE: FIFOQueue 'FIFOQueueV2' is closed and has insufficient elements "
            "(requested 3, current size 2)");
  EXPECT_EQ(q.UpTo(3), "int32[2] 0 1; float[2,2] 0 1 0 1");
  EXPECT_EQ(q.UpTo(3),
            "OUT_OF_RANGE: FIFOQueue 'FIFOQueueV2' is closed and has insufficient elements "
            "(requested 3, current size 0)");
  EXPECT_EQ(q.UpTo(0), "int32[0]; float[0,2]");
  EXPECT_EQ(q.Enqueue({I(1), F({1, 2})}),
            Status(StatusCode::kCancelled, "FIFOQueue 'FIFOQueueV2' is closed."));
  EXPECT_EQ(q.Close(), Status(StatusCode::kCancelled, "Queue 'FIFOQueueV2' is already closed."));
  EXPECT_TRUE(q.Run("QueueClose", {}, {{"cancel_pending_enqueues", true}}).ok());
}

TEST(QueueOps, WhatDoesNotFitIsRefused) {
  TestQueue q("FIFOQueue", Pairs());
  const auto text = [](const Status& status) { return StrCat(status.message()); };
  EXPECT_EQ(text(q.Enqueue({I(1), F({1})})),
            "Shape mismatch in tuple component 1. Expected [2], got [1]");
  EXPECT_EQ(text(q.EnqueueMany({I(1), Tensor(DType::kFloat, {1, 2})})),
            "Shape mismatch in tuple component 0. Expected [?], got []");
  EXPECT_TRUE(absl::StrContains(
      text(q.EnqueueMany({Tensor(DType::kInt32, {2}), Tensor(DType::kFloat, {1, 2})})),
      "must have the same first dimension"));
  EXPECT_EQ(text(q.Enqueue({I(1)})),
            "Signature mismatch: queue 'FIFOQueueV2' holds (int32, float), this op (int32)");
  EXPECT_EQ(text(q.Enqueue({I(1), I(1)})),
            "Signature mismatch: queue 'FIFOQueueV2' holds (int32, float), this op (int32, int32)");
  EXPECT_EQ(q.DequeueMany(-1).status().code(), StatusCode::kInvalidArgument);
  for (const int64_t timeout_ms : {0, 5, -2}) {
    const Status timed = q.Run("QueueDequeue", {}, {{"timeout_ms", timeout_ms}}).status();
    EXPECT_EQ(timed.code(), StatusCode::kInvalidArgument);
    EXPECT_TRUE(absl::StartsWith(timed.message(), "Timeout not supported yet.")) << timed;
  }
  EXPECT_EQ(q.Size(), 0);

  TestQueue any("FIFOQueue", {{"component_types", DTypeList{DType::kInt32}}});
  ASSERT_TRUE(any.EnqueueMany({Tensor::Of<int32_t>({2, 1}, {1, 2})}).ok());
  EXPECT_EQ(any.Dequeue(), "int32[1] 1");
  EXPECT_EQ(any.Many(1),
            "INVALID_ARGUMENT: FIFOQueue's DequeueMany and DequeueUpTo require the components to "
            "have specified shapes.");
}

TEST(QueueOps, NodesThatShareAQueueHaveToAgree) {
  Attrs attrs = Pairs(3);
  attrs["shared_name"] = "x";
  TestQueue q("FIFOQueue", attrs);
  const auto make = [&](const char* op, const char* name, const AttrValue& value) {
    OpRunner runner(op, q.resources());
    Attrs changed = attrs;
    changed[name] = value;
    for (const auto& [key, attr] : changed) runner.Attr(key, attr);
    return runner.Run().status();
  };
  EXPECT_TRUE(make("FIFOQueueV2", "capacity", 3).ok());
  EXPECT_TRUE(make("FIFOQueue", "capacity", 3).ok());
  EXPECT_EQ(make("FIFOQueueV2", "capacity", 4).message(),
            "queue 'x' exists already, with capacity 3 where this node says 4");
  for (const Status& status :
       {make("FIFOQueueV2", "component_types", DTypeList{DType::kInt32, DType::kInt32}),
        make("FIFOQueueV2", "shapes", ShapeListValue{}),
        make("RandomShuffleQueueV2", "min_after_dequeue", 1)}) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
  }
}

TEST(QueueOps, BadAttributes) {
  const auto make = [](const char* op, Attrs attrs) {
    OpRunner runner(op);
    attrs.try_emplace("component_types", DTypeList{DType::kInt32});
    for (const auto& [key, attr] : attrs) runner.Attr(key, attr);
    return runner.Run().status().code();
  };
  const ShapeListValue open = {PartialShape({PartialShape::kUnknown})}, any = {PartialShape()};
  EXPECT_EQ(make("PaddingFIFOQueueV2", {{"shapes", open}}), StatusCode::kOk);
  EXPECT_EQ(make("PaddingFIFOQueueV2", {{"shapes", any}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(make("PaddingFIFOQueueV2", {}), StatusCode::kInvalidArgument);
  EXPECT_EQ(make("FIFOQueueV2", {{"shapes", open}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(make("FIFOQueueV2", {{"shapes", ShapeListValue(2, PartialShape::Scalar())}}),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(make("RandomShuffleQueueV2", {{"capacity", 3}, {"min_after_dequeue", 3}}),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(make("RandomShuffleQueueV2", {{"min_after_dequeue", -1}}),
            StatusCode::kInvalidArgument);
  Attrs repeatable = {
      {"capacity", 3}, {"min_after_dequeue", 0}, {"seed", 1}, {"_repeatable", true}};
  EXPECT_EQ(make("RandomShuffleQueueV2", repeatable), StatusCode::kOk);
  repeatable["seed"] = 0;
  EXPECT_EQ(make("RandomShuffleQueueV2", repeatable), StatusCode::kInvalidArgument);
  EXPECT_EQ(make("RandomShuffleQueueV2", {{"seed", 1}, {"_repeatable", true}}),
            StatusCode::kInvalidArgument)
      << "it is never full";
}

// Elements come in TensorFlow's order for the same seeds.
TEST(QueueOps, Shuffled) {
  TestQueue q("RandomShuffleQueue", {{"component_types", DTypeList{DType::kInt32}},
                                     {"shapes", ShapeListValue{PartialShape::Scalar()}},
                                     {"capacity", 20},
                                     {"min_after_dequeue", 5},
                                     {"seed", 87654321},
                                     {"seed2", 7}});
  Tensor numbers(DType::kInt32, {16});
  for (int i = 0; i < 16; ++i) numbers.mutable_flat<int32_t>()[i] = i;
  ASSERT_TRUE(q.EnqueueMany({numbers}).ok());
  EXPECT_EQ(q.Many(4), "int32[4] 7 15 9 4");
  EXPECT_EQ(q.Dequeue(), "int32[] 12");
  EXPECT_EQ(q.Many(3), "int32[3] 3 0 6");
  ASSERT_TRUE(q.Close().ok());
  EXPECT_EQ(q.Many(4), "int32[4] 11 8 2 5");
  EXPECT_EQ(q.UpTo(10), "int32[4] 1 13 10 14");
}

TEST(QueueOps, Padding) {
  const int64_t kAny = PartialShape::kUnknown;
  TestQueue q("PaddingFIFOQueue",
              {{"component_types", DTypeList{DType::kInt32, DType::kString, DType::kFloat}},
               {"shapes", ShapeListValue{PartialShape({kAny, kAny}), PartialShape({kAny}),
                                         PartialShape({kAny, 1})}}});
  ASSERT_TRUE(q.Enqueue({Tensor::Of<int32_t>({1, 3}, {1, 2, 3}), Tensor::Vector<std::string>({"a"}),
                         Tensor(DType::kFloat, {0, 1})})
                  .ok());
  ASSERT_TRUE(q.Enqueue({Tensor::Of<int32_t>({2, 1}, {4, 5}),
                         Tensor::Vector<std::string>({"b", "c"}), Tensor::Of<float>({1, 1}, {7})})
                  .ok());
  EXPECT_EQ(q.Many(2),
            "int32[2,2,3] 1 2 3 0 0 0 4 0 0 5 0 0; string[2,2] \"a\" \"\" \"b\" \"c\"; "
            "float[2,1,1] 0 7");
  EXPECT_EQ(q.Many(0), "int32[0,0,0]; string[0,0]; float[0,0,1]");
}

TEST(QueueOps, Priorities) {
  TestQueue q("PriorityQueue", {{"component_types", DTypeList{DType::kString}},
                                {"shapes", ShapeListValue{PartialShape::Scalar()}}});
  ASSERT_TRUE(q.EnqueueMany({Tensor::Vector<int64_t>({3, 1, 2, 1}),
                             Tensor::Vector<std::string>({"c", "a", "b", "a2"})})
                  .ok());
  EXPECT_EQ(q.Dequeue(), "int64[] 1; string[] \"a\"");
  EXPECT_EQ(q.Many(3), "int64[3] 1 2 3; string[3] \"a2\" \"b\" \"c\"");
}

}  // namespace
}  // namespace penstock

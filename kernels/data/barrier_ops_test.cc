// SPDX-License-Identifier: Apache-2.0
//
// Tests barriers. Outputs and statuses were compared with TensorFlow 2.21.
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "core/op/testing/op_runner.h"

namespace penstock {
namespace {

const std::vector<DType> kTypes = {DType::kFloat, DType::kInt32};

class TestBarrier {
 public:
  TestBarrier() {
    OpRunner make("Barrier", resources_);
    handle_ =
        *make.Attr("component_types", kTypes)
             .Attr("shapes", std::vector<PartialShape>{PartialShape::Scalar(), PartialShape({2})})
             .Run1();
  }
  Status Insert(int64_t component, const std::vector<std::string>& keys, Tensor values) {
    OpRunner run("BarrierInsertMany", resources_);
    return run.In(handle_)
        .In(Tensor::Vector<std::string>(keys))
        .In(std::move(values))
        .Attr("component_index", component)
        .Run()
        .status();
  }
  std::string Take(int32_t n, Attrs attrs = {}) {
    OpRunner run("BarrierTakeMany", resources_);
    run.In(handle_).In(Tensor::Scalar(n)).Attr("component_types", kTypes);
    for (const auto& [name, value] : attrs) run.Attr(name, value);
    const auto taken = run.Run();
    if (!taken.ok()) return std::string(taken.status().message());
    std::string text;
    for (const int64_t index : (*taken)[0].flat<int64_t>()) {
      StrAppend(&text, index - INT64_MIN, " ");
    }
    for (int i = 1; i < 4; ++i) StrAppend(&text, "; ", (*taken)[i].ToString());
    return text;
  }
  Status Close(bool cancel = false) {
    OpRunner run("BarrierClose", resources_);
    return run.In(handle_).Attr("cancel_pending_enqueues", cancel).Run().status();
  }
  std::string Sizes() {
    OpRunner ready("BarrierReadySize", resources_), left("BarrierIncompleteSize", resources_);
    return StrCat(ready.In(handle_).Run1()->scalar<int32_t>(), " ready, ",
                  left.In(handle_).Run1()->scalar<int32_t>(), " incomplete");
  }

 private:
  const std::shared_ptr<ResourceStore> resources_ = std::make_shared<ResourceStore>();
  Tensor handle_;
};

Tensor Floats(const std::vector<float>& v) { return Tensor::Vector(v); }
Tensor PairsOf(const std::vector<int32_t>& v) {
  return Tensor::Of<int32_t>({static_cast<int64_t>(v.size()) / 2, 2}, v);
}

TEST(Barriers, TuplesComeOutWhenTheyAreComplete) {
  TestBarrier b;
  EXPECT_TRUE(b.Insert(0, {"a", "b", "c"}, Floats({1, 2, 3})).ok());
  EXPECT_EQ(b.Sizes(), "0 ready, 3 incomplete");
  EXPECT_TRUE(b.Insert(1, {"d"}, PairsOf({4, 4})).ok());
  EXPECT_TRUE(b.Insert(0, {"d"}, Floats({4})).ok());
  EXPECT_TRUE(b.Insert(1, {"c", "a"}, PairsOf({3, 3, 1, 1})).ok());
  EXPECT_EQ(b.Sizes(), "3 ready, 1 incomplete");
  EXPECT_EQ(b.Take(0), "; string[0]; float[0]; int32[0,2]");
  // Tuples leave in the order in which they began.
  EXPECT_EQ(b.Take(3),
            "0 0 1 ; string[3] \"c\" \"a\" \"d\"; float[3] 3 1 4; int32[3,2] 3 3 1 1 4 4");
}

TEST(Barriers, OnlyInsertionsThatBeginTuplesAreCounted) {
  TestBarrier b;
  for (const char* key : {"a", "b", "c"}) {
    ASSERT_TRUE(b.Insert(1, {key}, PairsOf({1, 1})).ok());
    ASSERT_TRUE(b.Insert(0, {key}, Floats({1})).ok());
  }
  EXPECT_EQ(b.Take(3),
            "0 1 2 ; string[3] \"a\" \"b\" \"c\"; float[3] 1 1 1; int32[3,2] 1 1 1 1 1 1");
}

TEST(Barriers, WhatDoesNotFitIsRefused) {
  TestBarrier b;
  ASSERT_TRUE(b.Insert(0, {"a"}, Floats({1})).ok());
  EXPECT_EQ(b.Insert(0, {"a"}, Floats({1})).message(),
            "Key a already has a value for component 0 in barrier Barrier");
  for (const Status& status :
       {b.Insert(5, {"a"}, Floats({1})), b.Insert(1, {"a"}, Floats({1})),
        b.Insert(1, {"a"}, Tensor(DType::kInt32, {1, 3})), b.Insert(0, {"x", "y"}, Floats({1}))}) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
  }
  EXPECT_TRUE(absl::StrContains(b.Take(-1), "num_elements must be >= 0"));
  EXPECT_EQ(b.Sizes(), "0 ready, 1 incomplete");
}

TEST(Barriers, Closing) {
  TestBarrier b;
  ASSERT_TRUE(b.Insert(0, {"a", "b", "c"}, Floats({1, 2, 3})).ok());
  EXPECT_TRUE(b.Close().ok());
  EXPECT_EQ(b.Close().code(), StatusCode::kCancelled);
  EXPECT_EQ(b.Insert(0, {"new"}, Floats({1})).code(), StatusCode::kCancelled);
  EXPECT_TRUE(b.Insert(1, {"b"}, PairsOf({2, 2})).ok());
  EXPECT_EQ(b.Take(5),
            "Barrier 'Barrier' is closed and has insufficient elements (requested 5, total size "
            "3)");
  EXPECT_EQ(b.Take(5, {{"allow_small_batch", true}}),
            "0 ; string[1] \"b\"; float[1] 2; int32[1,2] 2 2");
  EXPECT_TRUE(b.Insert(1, {"a", "c"}, PairsOf({1, 1, 3, 3})).ok());
  EXPECT_EQ(b.Take(5, {{"allow_small_batch", true}, {"wait_for_incomplete", true}}),
            "0 0 ; string[2] \"a\" \"c\"; float[2] 1 3; int32[2,2] 1 1 3 3");
  EXPECT_EQ(b.Take(1, {{"allow_small_batch", true}}),
            "Barrier 'Barrier' is closed and has insufficient elements (requested 1, total size "
            "0)");
  EXPECT_TRUE(b.Close(true).ok());
  EXPECT_EQ(b.Close(true).code(), StatusCode::kCancelled);
}

TEST(Barriers, ClosingMayDropWhatIsIncomplete) {
  TestBarrier b;
  ASSERT_TRUE(b.Insert(0, {"a"}, Floats({1})).ok());
  EXPECT_TRUE(b.Close(true).ok());
  EXPECT_EQ(b.Sizes(), "0 ready, 0 incomplete");
  EXPECT_EQ(b.Insert(1, {"a"}, PairsOf({1, 1})).code(), StatusCode::kCancelled);
  EXPECT_TRUE(absl::StrContains(b.Take(1), "is closed and has insufficient elements"));
}

}  // namespace
}  // namespace penstock

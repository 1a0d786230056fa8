// SPDX-License-Identifier: Apache-2.0
//
// Tests accumulators. Values and errors were compared with TensorFlow 2.21.
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "core/op/testing/op_runner.h"

namespace penstock {
namespace {

class TestAccumulator {
 public:
  TestAccumulator(const std::string& form, DType dtype, const PartialShape& shape,
                  const char* reduction = "MEAN")
      : form_(form) {
    OpRunner make(
        form == "Sparse" ? "SparseConditionalAccumulator" : form + "ConditionalAccumulator",
        resources_);
    handle_ =
        *make.Attr("dtype", dtype).Attr("shape", shape).Attr("reduction_type", reduction).Run1();
    dtype_ = dtype;
  }

  Status Apply(int64_t step, Tensor gradient) {
    OpRunner run(form_ + "AccumulatorApplyGradient", resources_);
    return run.In(handle_).In(Tensor::Scalar(step)).In(std::move(gradient)).Run().status();
  }
  Status ApplyRows(int64_t step, const std::vector<int64_t>& indices, Tensor values,
                   const std::vector<int64_t>& shape = {}) {
    OpRunner run("SparseAccumulatorApplyGradient", resources_);
    return run.In(handle_)
        .In(Tensor::Scalar(step))
        .In(Tensor::Vector<int64_t>(indices))
        .In(std::move(values))
        .In(Tensor::Vector<int64_t>(shape))
        .Attr("has_known_shape", !shape.empty())
        .Run()
        .status();
  }
  std::string Take(int32_t required) {
    OpRunner run(form_ + "AccumulatorTakeGradient", resources_);
    const auto taken = run.In(handle_).In(Tensor::Scalar(required)).Attr("dtype", dtype_).Run();
    if (!taken.ok()) return std::string(taken.status().message());
    std::string text;
    for (const Tensor& t : *taken) StrAppend(&text, text.empty() ? "" : "; ", t.ToString());
    return text;
  }
  int32_t Num() {
    OpRunner run((form_ == "Sparse" ? "" : form_) + "AccumulatorNumAccumulated", resources_);
    return run.In(handle_).Run1()->scalar<int32_t>();
  }
  Status SetStep(int64_t step) {
    OpRunner run((form_ == "Sparse" ? "" : form_) + "AccumulatorSetGlobalStep", resources_);
    return run.In(handle_).In(Tensor::Scalar(step)).Run().status();
  }

 private:
  const std::string form_;
  const std::shared_ptr<ResourceStore> resources_ = std::make_shared<ResourceStore>();
  Tensor handle_;
  DType dtype_;
};

Tensor V(const std::vector<float>& values) { return Tensor::Vector(values); }

TEST(Accumulators, MeanOfWhatIsNotStale) {
  for (const char* form : {"", "Resource"}) {
    TestAccumulator a(form, DType::kFloat, PartialShape());
    EXPECT_TRUE(a.Apply(0, V({1, 2})).ok());
    EXPECT_EQ(a.Apply(0, V({1})).message(), "Shape mismatch: expected [2], got [1]");
    EXPECT_TRUE(a.Apply(7, V({3, 5})).ok());
    EXPECT_TRUE(a.Apply(-1, V({100, 100})).ok());
    EXPECT_EQ(a.Num(), 2);
    EXPECT_EQ(a.Take(2), "float[2] 2 3.5");
    EXPECT_EQ(a.Num(), 0);
    // The accumulator drops the gradient, because it belongs to an earlier step.
    EXPECT_TRUE(a.Apply(0, V({3, 5})).ok());
    EXPECT_EQ(a.Num(), 0);
    EXPECT_TRUE(a.Apply(1, Tensor::Of<float>({1, 2}, {3, 5})).ok());  // the shape may be new
    EXPECT_TRUE(a.SetStep(0).ok());
    EXPECT_TRUE(a.Apply(0, Tensor::Of<float>({1, 2}, {4, 7})).ok());
    EXPECT_EQ(a.Take(0), "Argument num_required must be positive, but was 0");
    EXPECT_EQ(a.Take(1), "float[1,2] 3.5 6");
  }
}

TEST(Accumulators, SumsOfAllTypes) {
  const auto sum = [](auto one) {
    using T = decltype(one);
    TestAccumulator a("", kDTypeOf<T>, PartialShape({2}), "SUM");
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(a.Apply(0, Tensor::Of<T>({2}, {one, T(i)})).ok());
    EXPECT_TRUE(absl::EndsWith(a.Take(3), "[2] 3 3"));
    EXPECT_EQ(a.Apply(1, Tensor(kDTypeOf<T>, {3})).message(),
              "Shape mismatch: expected [2], got [3]");
  };
  sum(1.0f), sum(1.0), sum(half(1.0f)), sum(bfloat16(1.0f));
}

// The accumulator must not write to the caller's tensor.
TEST(Accumulators, LeaveTheirInputsAlone) {
  TestAccumulator a("", DType::kFloat, PartialShape({1}));
  const Tensor first = V({1});
  EXPECT_TRUE(a.Apply(0, first).ok());
  EXPECT_TRUE(a.Apply(0, V({3})).ok());
  EXPECT_EQ(a.Take(2), "float[1] 2");
  EXPECT_EQ(first.flat<float>()[0], 1);
}

TEST(Accumulators, RowsByIndex) {
  const Tensor two = Tensor::Of<float>({2, 2}, {1, 1, 2, 2});
  const Tensor more = Tensor::Of<float>({2, 2}, {4, 4, 5, 5});
  TestAccumulator a("Sparse", DType::kFloat, PartialShape({4, 2}));
  EXPECT_TRUE(a.ApplyRows(0, {1, 3}, two).ok());
  EXPECT_TRUE(a.ApplyRows(0, {0, 1}, more, {4, 2}).ok());
  EXPECT_EQ(a.Num(), 2);
  EXPECT_EQ(a.Take(2), "int64[3] 0 1 3; float[3,2] 4 4 3 3 2 2; int64[2] 4 2");
  // Rows may come in any order, and repeat; they count as one gradient.
  EXPECT_TRUE(a.ApplyRows(1, {3, 3}, two).ok());
  EXPECT_TRUE(a.ApplyRows(1, {3, 1}, more).ok());
  EXPECT_EQ(a.Take(2), "int64[2] 1 3; float[2,2] 5 5 3.5 3.5; int64[2] 4 2");
  EXPECT_TRUE(a.ApplyRows(2, {}, Tensor(DType::kFloat, {0, 2})).ok());
  EXPECT_EQ(a.Take(1), "int64[0]; float[0,2]; int64[2] 4 2");
}

// TensorFlow's SyncReplicasOptimizer declares every sparse accumulator with the shape of a scalar,
// even if its rows are vectors.
TEST(Accumulators, RowsOfAScalarAreOfAnyShape) {
  TestAccumulator a("Sparse", DType::kFloat, PartialShape::Scalar());
  EXPECT_TRUE(a.ApplyRows(0, {1}, Tensor::Of<float>({1, 2}, {1, 2}), {4, 2}).ok());
  EXPECT_TRUE(a.ApplyRows(0, {7}, Tensor::Of<float>({1, 2}, {3, 4})).ok());
  EXPECT_FALSE(a.ApplyRows(0, {1}, Tensor(DType::kFloat, {1, 3})).ok());
  EXPECT_EQ(a.Take(2), "int64[2] 1 7; float[2,2] 1 2 3 4; int64[2] -1 2");
}

TEST(Accumulators, RowsThatDoNotFit) {
  TestAccumulator a("Sparse", DType::kFloat, PartialShape());
  const Tensor row = Tensor::Of<float>({1, 2}, {1, 2});
  for (const Status& status :
       {a.ApplyRows(0, {1, 2}, row), a.ApplyRows(0, {9}, row, {4, 2}), a.ApplyRows(0, {-1}, row),
        a.ApplyRows(0, {1}, row, {4, 3}), a.ApplyRows(0, {}, Tensor::Scalar(1.0f))}) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
  }
  EXPECT_TRUE(a.ApplyRows(0, {9}, row).ok());
  EXPECT_FALSE(a.ApplyRows(0, {1}, Tensor(DType::kFloat, {1, 3})).ok());
  EXPECT_EQ(a.Take(1), "int64[1] 9; float[1,2] 1 2; int64[2] -1 2");
}

}  // namespace
}  // namespace penstock

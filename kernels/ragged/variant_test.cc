// SPDX-License-Identifier: Apache-2.0
//
// Tests the encoding of ragged tensors as variants. The expected values are those of TensorFlow
// 2.21.
#include "core/base/check.h"
#include "gmock/gmock.h"
#include "kernels/array/testing/golden.h"
#include "kernels/ragged/ragged_value.h"

namespace penstock {
namespace {

using namespace golden;  // NOLINT: the tables below use its names
using testing::HasSubstr;
using Tensors = std::vector<Tensor>;

// Variants are compared after decoding, because they have no equality.
StatusOr<Tensor> TryEncode(Tensors splits, Tensor values, bool batched,
                           OpRunner::Known known = OpRunner::Known::kValues) {
  return OpRunner("RaggedTensorToVariant")
      .InList(std::move(splits))
      .In(std::move(values))
      .Attr("batched_input", batched)
      .Attr("Tsplits", DType::kInt64)
      .SetKnownInputs(known)
      .Run1();
}
Tensor Encode(Tensors splits, Tensor values, bool batched) {
  const auto encoded = TryEncode(std::move(splits), std::move(values), batched);
  CHECK_OK(encoded.status());
  return *encoded;
}
// Returns the error of encoding.
std::string Mistake(Tensors splits, Tensor values) {
  return std::string(
      TryEncode(std::move(splits), std::move(values), true, OpRunner::Known::kNothing)
          .status()
          .message());
}
OpCall Decode(Tensor encoded, int64_t inner, int64_t outer, DType values = DType::kFloat,
              DType splits = DType::kInt64) {
  return {"RaggedTensorFromVariant",
          {std::move(encoded)},
          {{"input_ragged_rank", inner},
           {"output_ragged_rank", outer},
           {"Tvalues", values},
           {"Tsplits", splits}}};
}
Tensor Stacked(const Tensor& variant, const Shape& shape) {
  Tensor out(DType::kVariant, shape);
  for (Variant& v : out.mutable_flat<Variant>()) v = variant.scalar<Variant>();
  return out;
}

const Tensor kOuter = L({4}, {0, 2, 2, 3}), kInner = L({4}, {0, 1, 1, 4}),
             kValues = F({4}, {1, 2, 3, 4});

TEST(RaggedVariant, RowsAndBack) {
  const Tensor rows = Encode({kOuter}, F({3}, {1, 2, 3}), true);
  EXPECT_EQ(rows.shape(), Shape({3}));
  ExpectOutputs(Decode(rows, 0, 1), {kOuter, F({3}, {1, 2, 3})});
  ExpectOutputs(Decode(rows, -1, 1), {kOuter, F({3}, {1, 2, 3})});
  const Tensor nested = Encode({kOuter, kInner}, kValues, true);
  ExpectOutputs(Decode(nested, 1, 2), {kOuter, kInner, kValues});
  const Tensor dense = Encode({}, F({2, 2}, {1, 2, 3, 4}), true);
  ExpectOutputs(Decode(dense, 0, 1), {L({3}, {0, 2, 4}), kValues});
  ExpectOutputs(Decode(rows.Slice(0, 0), 0, 1), {L({1}, {0}), F({0}, {})});
}

TEST(RaggedVariant, WholeAndStacked) {
  const Tensor whole = Encode({kOuter, kInner}, kValues, false);
  EXPECT_EQ(whole.shape(), Shape());
  ExpectOutputs(Decode(whole, 2, 2), {kOuter, kInner, kValues});
  const Tensor splits1 = L({7}, {0, 2, 2, 3, 5, 5, 6}), splits2 = L({7}, {0, 1, 1, 4, 5, 5, 8}),
               values = F({8}, {1, 2, 3, 4, 1, 2, 3, 4});
  ExpectOutputs(Decode(Stacked(whole, {2}), 2, 3), {L({3}, {0, 3, 6}), splits1, splits2, values});
  ExpectOutputs(Decode(Stacked(whole, {1, 2}), 2, 4),
                {L({2}, {0, 2}), L({3}, {0, 3, 6}), splits1, splits2, values});
}

TEST(RaggedVariant, SurvivesAMessage) {
  const Tensor whole = Encode({kOuter, kInner}, kValues, false);
  std::string metadata;
  std::vector<Tensor> parts;
  ASSERT_TRUE(whole.scalar<Variant>().value->Encode(&metadata, &parts).ok());
  const auto back = DecodeVariant(RaggedValue::kTypeName, metadata, parts);
  ASSERT_TRUE(back.ok()) << back.status();
  ExpectOutputs(Decode(Tensor::Scalar(*back), 2, 2), {kOuter, kInner, kValues});
  EXPECT_FALSE(DecodeVariant(RaggedValue::kTypeName, "", {}).ok());
  EXPECT_FALSE(DecodeVariant(RaggedValue::kTypeName, "", {F({1}, {0}), kValues}).ok());
}

TEST(RaggedVariant, GradientJoinsTheValues) {
  const Tensor rows = Encode({kOuter}, F({3}, {1, 2, 3}), true);
  const auto gradient = [&](Tensor variants, Tensor splits, Tensor shape) {
    return OpCall{"RaggedTensorToVariantGradient",
                  {std::move(variants), std::move(splits), std::move(shape)},
                  {{"Tvalues", DType::kFloat}}};
  };
  ExpectOutputs(gradient(rows, kOuter, I({1}, {3})), {F({3}, {1, 2, 3})});
  Tensor holes(DType::kVariant, Shape({3}));
  holes.mutable_data<Variant>()[2] = rows.data<Variant>()[2];
  ExpectOutputs(gradient(holes, kOuter, I({1}, {3})), {F({3}, {0, 0, 3})});
  const Tensor dense = Encode({}, F({2, 2}, {1, 2, 3, 4}), true);
  ExpectOutputs(gradient(dense, L({}, {0}), I({2}, {2, 2})), {F({2, 2}, {1, 2, 3, 4})});
  gradient(rows, L({4}, {0, 2, 3, 3}), I({1}, {3})).ExpectError("encoded_ragged_grad[1]");
  gradient(rows, L({4}, {0, 2, 2, 5}), I({1}, {3})).ExpectError("row_splits must go from 0");
}

TEST(RaggedVariant, HasZerosAndSums) {
  const Tensor whole = Encode({kOuter, kInner}, kValues, false);
  const auto run = [](const char* op, Tensors inputs) {
    OpRunner runner(op);
    if (std::string(op) == "AddN") return runner.InList(std::move(inputs)).Run1();
    return runner.In(inputs[0]).Run1();
  };
  ExpectOutputs(Decode(*run("ZerosLike", {whole}), 2, 2), {kOuter, kInner, F({4}, {0, 0, 0, 0})});
  ExpectOutputs(Decode(*run("AddN", {whole, whole}), 2, 2), {kOuter, kInner, F({4}, {2, 4, 6, 8})});
  const Tensor other = Encode({L({4}, {0, 1, 2, 3}), kInner}, kValues, false);
  EXPECT_THAT(std::string(run("AddN", {whole, other}).status().message()),
              HasSubstr("different row splits"));
}

TEST(RaggedVariant, MistakesAreNamed) {
  const Tensor three = F({3}, {1, 2, 3});
  EXPECT_THAT(Mistake({L({4}, {0, 2, 2, 5})}, three), HasSubstr("the last of splits 0 is 5"));
  EXPECT_THAT(Mistake({L({4}, {1, 2, 2, 3})}, three), HasSubstr("go from 1"));
  EXPECT_EQ(Mistake({}, F({}, {1})), "Can't unbatch rank-0 tensor.");
  const Tensor whole = Encode({kOuter, kInner}, kValues, false);
  const Tensor two = Stacked(whole, {2});
  Decode(two, 2, 3, DType::kInt32).ExpectError("Expected values Tensor dtype: int32, found: float");
  Decode(two, 2, 3, DType::kFloat, DType::kInt32)
      .ExpectError("Expected row_splits Tensor dtype: int32, found: int64");
  Decode(two, -1, 2).ExpectError("has ragged_rank=2.  Expected ragged_rank=1.");
  Decode(Tensor(DType::kVariant, Shape({1})), 0, 1).ExpectError("encoded_ragged[0] is not");
}

}  // namespace
}  // namespace penstock

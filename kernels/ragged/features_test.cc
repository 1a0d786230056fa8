// SPDX-License-Identifier: Apache-2.0
//
// Tests RaggedCross, RaggedFillEmptyRows and composite tensors. The expected numbers are those of
// TensorFlow 2.21.
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/tensor/variant.h"
#include "kernels/array/testing/golden.h"

namespace penstock {
namespace {

using namespace golden;  // NOLINT: the tests below use its names
using Types = std::vector<DType>;
using Tensors = std::vector<Tensor>;

const Tensor kLetters = S({3}, {"a", "b", "c"}), kLetterSplits = L({4}, {0, 1, 3, 3});

// Crosses [["a"], ["b", "c"], []] with other columns.
OpCall LettersCross(std::vector<OpCall::Arg> others, const char* order, DType out, Attrs attrs) {
  attrs.insert({{"input_order", order},
                {"out_values_type", out},
                {"out_row_splits_type", DType::kInt64},
                {"hashed_output", out == DType::kInt64}});
  for (const char* name : {"num_buckets", "hash_key"}) attrs.insert({name, int64_t{0}});
  return {"RaggedCross", std::move(others), attrs};
}

TEST(RaggedCross, JoinsStrings) {
  ExpectOutputs(LettersCross({Tensors{kLetters, S({4}, {"d", "e", "f", "g"})},
                              Tensors{kLetterSplits, I({4}, {0, 2, 3, 4})}, Tensors{}, Tensors{},
                              Tensors{}, Tensors{}},
                             "RR", DType::kString, {{"Nsparse", 0}}),
                {S({4}, {"a_X_d", "a_X_e", "b_X_f", "c_X_f"}), L({4}, {0, 2, 4, 4})});
  ExpectOutputs(
      LettersCross({Tensors{kLetters}, Tensors{kLetterSplits}, Tensors{}, Tensors{}, Tensors{},
                    Tensors{L({3, 2}, {1, 2, 3, 4, 5, 6})}},
                   "DR", DType::kString, {{"Nsparse", 0}}),
      {S({6}, {"1_X_a", "2_X_a", "3_X_b", "3_X_c", "4_X_b", "4_X_c"}), L({4}, {0, 2, 6, 6})});
}

TEST(RaggedCross, HashesAreTensorFlows) {
  ExpectOutputs(
      LettersCross({Tensors{kLetters}, Tensors{kLetterSplits},
                    Tensors{L({3, 2}, {0, 0, 1, 0, 2, 0})}, Tensors{L({3}, {5, 6, 7})},
                    Tensors{L({2}, {3, 1})}, Tensors{L({3, 2}, {1, 2, 3, 4, 5, 6})}},
                   "RSD", DType::kInt64, {{"Nsparse", 1}, {"num_buckets", 100}, {"hash_key", 7}}),
      {L({6}, {37, 78, 19, 37, 50, 34}), L({4}, {0, 2, 6, 6})});
}

TEST(RaggedCross, Mistakes) {
  const auto call = [](Tensor splits, Tensor dense, const char* order) {
    return LettersCross(
        {Tensors{kLetters}, Tensors{splits}, Tensors{}, Tensors{}, Tensors{}, Tensors{dense}},
        order, DType::kString, {{"Nsparse", 0}});
  };
  const Tensor dense = L({3, 1}, {1, 2, 3});
  call(L({4}, {0, 2, 1, 3}), dense, "RD").ExpectError("Invalid ragged splits");
  call(L({4}, {0, 1, 2, 4}), dense, "RD").ExpectError("Invalid ragged splits");
  call(L({0}, {}), dense, "RD").ExpectError("Invalid ragged splits");
  call(L({3}, {0, 1, 3}), dense, "RD").ExpectError("Expected batch size 2, got 3");
  call(kLetterSplits, dense, "RRD").ExpectError("input_order");
  call(kLetterSplits, dense, "RX").ExpectError("input_order");
  call(kLetterSplits, L({3}, {1, 2, 3}), "RD").ExpectError("should be a matrix");
}

TEST(RaggedFillEmptyRows, EmptyRowsGetTheDefault) {
  ExpectOutputs(
      {"RaggedFillEmptyRows", {L({3}, {2, 0, 0}), F({3}, {1, 2, 3}), L({}, {4}), F({}, {9})}},
      {L({5}, {0, 0, 1, 2, 3}), F({5}, {2, 3, 9, 1, 9}), B({4}, {false, true, false, true}),
       L({3}, {3, 0, 1})});
  ExpectOutputs(
      {"RaggedFillEmptyRows", {L({1}, {0}), S({1}, {"a"}), L({}, {3}), S({}, {"z"})}},
      {L({3}, {0, 1, 2}), S({3}, {"a", "z", "z"}), B({3}, {false, true, true}), L({1}, {0})});
  ExpectOutputs({"RaggedFillEmptyRows", {L({0}, {}), F({0}, {}), L({}, {0}), F({}, {9})}},
                {L({0}, {}), F({0}, {}), B({0}, {}), L({0}, {})});
  ExpectOutputs({"RaggedFillEmptyRowsGrad", {L({3}, {0, 1, 3}), F({5}, {1, 2, 3, 4, 5})}},
                {F({3}, {1, 2, 4}), F({}, {8})});
}

TEST(RaggedFillEmptyRows, Mistakes) {
  const auto call = [](Tensor rows, Tensor count) {
    return OpCall{"RaggedFillEmptyRows", {rows, F({2}, {1, 2}), count, F({}, {9})}};
  };
  call(L({2}, {0, 4}), L({}, {4})).ExpectError("value_rowids[1] is invalid: 4");
  call(L({2}, {0, -1}), L({}, {4})).ExpectError("is invalid: -1");
  call(L({1}, {0}), L({}, {4})).ExpectError("same length");
  call(L({2}, {0, 0}), L({}, {-1})).ExpectError("-1");
  call(L({2}, {0, 0}), L({1}, {2})).ExpectError("scalars");
  OpCall{"RaggedFillEmptyRowsGrad", {L({1}, {2}), F({2}, {1, 2})}}.ExpectError(
      "Elements in reverse index must be in [0, 2) but got 2");
}

const std::string kRaggedSpec("\x0a\x02\x08\x03", 4), kSparseSpec("\x0a\x02\x08\x01", 4);

// Variants have no equality, so an OpCall cannot compare them.
Tensor Composite(Tensors components, const std::string& metadata) {
  const auto encoded = OpRunner("CompositeTensorVariantFromComponents")
                           .InList(std::move(components))
                           .Attr("metadata", metadata)
                           .Run1();
  CHECK_OK(encoded.status());
  return *encoded;
}

TEST(CompositeTensor, ComponentsComeBack) {
  const Tensor encoded = Composite({kLetters, kLetterSplits}, kRaggedSpec);
  EXPECT_EQ(encoded.shape(), Shape());
  const auto decode = [&](const Tensor& from, const std::string& metadata, Types types) {
    return OpCall{"CompositeTensorVariantToComponents",
                  {from},
                  {{"metadata", metadata}, {"Tcomponents", std::move(types)}}};
  };
  const Types types = {DType::kString, DType::kInt64};
  ExpectOutputs(decode(encoded, kRaggedSpec, types), {kLetters, kLetterSplits});
  decode(encoded, kSparseSpec, types)
      .ExpectError(
          "Expected a SPARSE_TENSOR_SPEC (based on `type_spec`), but `encoded` contains "
          "a RAGGED_TENSOR_SPEC");
  decode(encoded, kRaggedSpec, {DType::kString}).ExpectError("has 2 tensor components; expected 1");
  decode(encoded, kRaggedSpec, {DType::kString, DType::kInt32}).ExpectError("had dtype int64");
  decode(encoded, "\x0a", types).ExpectError("Error parsing metadata");
  decode(Tensor::Scalar(Variant()), kRaggedSpec, types).ExpectError("not a valid Composite");
  decode(Tensor(DType::kVariant, {0}), kRaggedSpec, types).ExpectError("must not be an empty");
}

TEST(CompositeTensor, TravelsInMessages) {
  const Tensor encoded = Composite({kLetterSplits}, kSparseSpec);
  std::string metadata;
  Tensors tensors;
  const VariantValue& value = *encoded.data<Variant>()[0].value;
  ASSERT_TRUE(value.Encode(&metadata, &tensors).ok());
  const auto decoded = DecodeVariant(value.TypeName(), metadata, tensors);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->value->ToString(), value.ToString());
  EXPECT_FALSE(DecodeVariant(value.TypeName(), "\x0a", tensors).ok());
}

}  // namespace
}  // namespace penstock

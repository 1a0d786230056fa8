// SPDX-License-Identifier: Apache-2.0
//
// Tests sets and crossed features. The expected numbers are those of TensorFlow 2.21.
#include <gmock/gmock.h>

#include "kernels/array/testing/golden.h"

namespace penstock {
namespace {

using namespace golden;  // NOLINT: the tables below use its names

struct SetResult {
  std::vector<int64_t> places, values;
  int64_t rows, columns;
};
struct SetCase {
  const char* operation;
  SetResult expected;
};

std::vector<Tensor> Result(const SetResult& r) {
  const auto n = static_cast<int64_t>(r.values.size());
  return {L({n, 2}, r.places), L({n}, r.values), L({2}, {r.rows, r.columns})};
}

TEST(SetOperation, OfDenseSets) {
  const Tensor a = L({2, 3}, {3, 1, 1, 5, 4, 9}), b = L({2, 2}, {1, 2, 9, 9});
  const SetCase cases[] = {
      {"a-b", {{0, 0, 1, 0, 1, 1}, {3, 4, 5}, 2, 2}},
      {"b-a", {{0, 0}, {2}, 2, 1}},
      {"Intersection", {{0, 0, 1, 0}, {1, 9}, 2, 1}},
      {"union", {{0, 0, 0, 1, 0, 2, 1, 0, 1, 1, 1, 2}, {1, 2, 3, 4, 5, 9}, 2, 3}},
  };
  for (const SetCase& c : cases) {
    ExpectOutputs({"DenseToDenseSetOperation", {a, b}, {{"set_operation", c.operation}}},
                  Result(c.expected));
  }
  ExpectOutputs({"DenseToDenseSetOperation",
                 {S({1, 2}, {"b", "a"}), S({1, 2}, {"c", "a"})},
                 {{"set_operation", "union"}}},
                {L({3, 2}, {0, 0, 0, 1, 0, 2}), S({3}, {"a", "b", "c"}), L({2}, {1, 3})});
  ExpectOutputs({"DenseToDenseSetOperation",
                 {L({1, 2, 2}, {1, 2, 3, 4}), L({1, 2, 1}, {2, 3})},
                 {{"set_operation", "intersection"}}},
                {L({2, 3}, {0, 0, 0, 0, 1, 0}), L({2}, {2, 3}), L({3}, {1, 2, 1})});
  ExpectOutputs(
      {"DenseToDenseSetOperation", {L({0, 2}, {}), L({0, 3}, {})}, {{"set_operation", "union"}}},
      Result({{}, {}, 0, 0}));
}

TEST(SetOperation, OfSparseSets) {
  const Tensor a = L({2, 3}, {3, 1, 1, 5, 4, 9});
  const SetCase with_dense[] = {
      {"a-b", {{0, 0, 1, 0, 1, 1}, {3, 4, 5}, 2, 2}},
      {"b-a", {{0, 0}, {7}, 2, 1}},
      {"intersection", {{0, 0, 1, 0}, {1, 9}, 2, 1}},
      {"union", {{0, 0, 0, 1, 0, 2, 1, 0, 1, 1, 1, 2}, {1, 3, 7, 4, 5, 9}, 2, 3}},
  };
  for (const SetCase& c : with_dense) {
    ExpectOutputs({"DenseToSparseSetOperation",
                   {a, L({3, 2}, {0, 0, 0, 1, 1, 0}), L({3}, {1, 7, 9}), L({2}, {2, 2})},
                   {{"set_operation", c.operation}}},
                  Result(c.expected));
  }
  const SetCase sparse[] = {
      {"a-b", {{0, 0, 2, 0}, {5, 9}, 3, 1}},
      {"b-a", {{1, 0}, {7}, 3, 1}},
      {"intersection", {{0, 0}, {1}, 3, 1}},
      {"union", {{0, 0, 0, 1, 1, 0, 2, 0}, {1, 5, 7, 9}, 3, 2}},
  };
  for (const SetCase& c : sparse) {
    ExpectOutputs({"SparseToSparseSetOperation",
                   {L({3, 2}, {0, 0, 0, 1, 2, 0}), L({3}, {5, 1, 9}), L({2}, {3, 2}),
                    L({3, 2}, {0, 0, 1, 0, 1, 3}), L({3}, {1, 7, 7}), L({2}, {3, 4})},
                   {{"set_operation", c.operation}}},
                  Result(c.expected));
  }
}

TEST(SetOperation, Mistakes) {
  const Attrs uniting = {{"set_operation", "union"}};
  OpCall{"DenseToDenseSetOperation",
         {L({1, 2}, {1, 2}), L({1, 2}, {1, 2})},
         {{"set_operation", "xor"}}}
      .ExpectError("Invalid set_operation xor");
  OpCall{"DenseToDenseSetOperation", {L({2}, {1, 2}), L({2}, {1, 2})}, uniting}.ExpectError(
      "Invalid rank 1");
  OpCall{"DenseToDenseSetOperation", {L({1, 2}, {1, 2}), L({2, 1}, {1, 2})}, uniting}.ExpectError(
      "Mismatched shapes [1] vs [2]");
  const auto sparse = [&](const std::vector<int64_t>& places) {
    return OpCall{"DenseToSparseSetOperation",
                  {L({2, 1}, {1, 2}), L({2, 2}, places), L({2}, {1, 7}), L({2}, {2, 2})},
                  uniting};
  };
  sparse({0, 5, 1, 0}).ExpectError("indices[0] = [0,5] is out of bounds");
  sparse({1, 0, 0, 1}).ExpectError("indices[1] = [0,1] is out of order");
  sparse({1, 0, 1, 0}).ExpectError("indices[1] = [1,0] is repeated");
}

TEST(SetSize, CountsDifferentValues) {
  ExpectOutputs(
      {"SetSize", {L({4, 2}, {0, 0, 0, 1, 2, 0, 2, 1}), L({4}, {5, 5, 9, 8}), L({2}, {4, 2})}},
      {I({4}, {1, 0, 2, 0})});
  ExpectOutputs({"SetSize", {L({2, 3}, {0, 0, 0, 0, 1, 1}), S({2}, {"5", "6"}), L({3}, {1, 2, 2})}},
                {I({1, 2}, {1, 1})});
  OpCall{"SetSize", {L({1, 1}, {0}), L({1}, {5}), L({1}, {3})}}.ExpectError("Invalid rank 1");
  OpCall{"SetSize", {L({1, 2}, {5, 0}), L({1}, {5}), L({2}, {4, 2})}, {{"validate_indices", false}}}
      .ExpectError("out of bounds");
}

// Returns two sparse columns of two rows; the second one holds strings or integers.
std::vector<std::vector<Tensor>> Columns(const Tensor& second, const std::vector<Tensor>& dense) {
  return {{L({3, 2}, {0, 0, 0, 1, 1, 0}), L({3, 2}, {0, 0, 1, 0, 1, 1})},
          {S({3}, {"a", "b", "c"}), second},
          {L({2}, {2, 2}), L({2}, {2, 2})},
          dense};
}

StatusOr<std::vector<Tensor>> Cross(const char* op, const std::vector<std::vector<Tensor>>& args,
                                    const Attrs& attrs, const std::vector<Tensor>& others = {}) {
  OpRunner run(op);
  for (const auto& arg : args) run.InList(arg);
  for (const Tensor& other : others) run.In(other);
  for (const auto& [name, value] : attrs) run.Attr(name, value);
  return run.Run();
}

Attrs Joined() {
  return {{"hashed_output", false},
          {"num_buckets", 0},
          {"hash_key", 0},
          {"out_type", DType::kString},
          {"internal_type", DType::kString}};
}
Attrs Hashed(int64_t buckets, int64_t key, DType internal = DType::kInt64) {
  return {{"hashed_output", true},
          {"num_buckets", buckets},
          {"hash_key", key},
          {"out_type", DType::kInt64},
          {"internal_type", internal}};
}

void ExpectCross(const StatusOr<std::vector<Tensor>>& crossed, const Tensor& values,
                 int64_t widest) {
  ASSERT_EQ(crossed.status(), OkStatus());
  std::vector<int64_t> places;
  for (int64_t i = 0; i < 2 * widest; ++i) {
    places.push_back(i / widest);
    places.push_back(i % widest);
  }
  EXPECT_TRUE(NearTensor((*crossed)[0], L({2 * widest, 2}, places), 0));
  EXPECT_TRUE(NearTensor((*crossed)[1], values, 0));
  EXPECT_TRUE(NearTensor((*crossed)[2], L({2}, {2, widest}), 0));
}

const Tensor kNumbers = L({3}, {1, 2, 3}), kDigits = S({3}, {"1", "2", "3"});
const Tensor kLetters = S({2, 2}, {"x", "y", "z", "w"});

TEST(SparseCross, JoinsFeatures) {
  ExpectCross(Cross("SparseCross", Columns(kDigits, {}), Joined()),
              S({4}, {"a_X_1", "b_X_1", "c_X_2", "c_X_3"}), 2);
  ExpectCross(Cross("SparseCross", Columns(kDigits, {kLetters}), Joined()),
              S({8}, {"a_X_1_X_x", "a_X_1_X_y", "b_X_1_X_x", "b_X_1_X_y", "c_X_2_X_z", "c_X_2_X_w",
                      "c_X_3_X_z", "c_X_3_X_w"}),
              4);
  ExpectCross(
      Cross("SparseCrossV2", Columns(kNumbers, {kLetters, L({2, 1}, {7, 8})}), {}, {S({}, {"-"})}),
      S({8},
        {"a-1-x-7", "a-1-y-7", "b-1-x-7", "b-1-y-7", "c-2-z-8", "c-2-w-8", "c-3-z-8", "c-3-w-8"}),
      4);
  // The first row of the first column is empty, so the result's first row is empty, too.
  const auto crossed = Cross("SparseCross",
                             {{L({1, 2}, {1, 0}), L({2, 2}, {0, 0, 1, 0})},
                              {S({1}, {"a"}), S({2}, {"q", "r"})},
                              {L({2}, {3, 1}), L({2}, {3, 1})},
                              {}},
                             Joined());
  ASSERT_EQ(crossed.status(), OkStatus());
  EXPECT_TRUE(NearTensor((*crossed)[0], L({1, 2}, {1, 0}), 0));
  EXPECT_TRUE(NearTensor((*crossed)[1], S({1}, {"a_X_r"}), 0));
  EXPECT_TRUE(NearTensor((*crossed)[2], L({2}, {3, 1}), 0));
}

TEST(SparseCross, HashesFeatures) {
  ExpectCross(
      Cross("SparseCross", Columns(kNumbers, {}), Hashed(0, 123)),
      L({4}, {3238028029875276260, 286683340220915780, 4288213524885625648, 1509873584296889007}),
      2);
  ExpectCross(Cross("SparseCross", Columns(kNumbers, {kLetters, L({2, 1}, {7, 8})}),
                    Hashed(100, 0xDECAFCAFFE)),
              L({8}, {53, 12, 36, 16, 49, 1, 57, 81}), 4);
  ExpectCross(Cross("SparseCross", Columns(kDigits, {kLetters}), Hashed(1000, 5)),
              L({8}, {825, 191, 687, 790, 421, 257, 958, 779}), 4);
  ExpectCross(
      Cross("SparseCross", Columns(kDigits, {}), Hashed(0, 5, DType::kString)),
      L({4}, {897267708794190832, 5788620817688272884, 1289422282138227022, 1851233545570863987}),
      2);
}

TEST(SparseCross, HashesUnderASalt) {
  const auto cross = [](const std::vector<Tensor>& dense, int64_t buckets, bool strong) {
    return Cross(
        "SparseCrossHashed",
        {{L({3, 2}, {0, 0, 0, 1, 1, 0})}, {S({3}, {"a", "b", "c"})}, {L({2}, {2, 2})}, dense}, {},
        {L({}, {buckets}), B({}, {strong}), L({2}, {7, 9})});
  };
  const Tensor letters = S({2, 1}, {"x", "y"}), numbers = L({2, 2}, {1, 2, 3, 4});
  const auto values = [](const StatusOr<std::vector<Tensor>>& crossed) {
    CHECK_OK(crossed.status());
    return (*crossed)[1];
  };
  EXPECT_TRUE(NearTensor(values(cross({letters}, 0, false)),
                         L({3}, {598440913169127831, 4641000509844720313, 5351530424226319396}),
                         0));
  EXPECT_TRUE(NearTensor(values(cross({letters}, -1, true)),
                         L({3}, {925058549376743297, 4346703977791991300, 2023736324849995876}),
                         0));
  EXPECT_TRUE(NearTensor(values(cross({numbers, letters}, 1000, false)),
                         L({6}, {352, 386, 383, 898, 366, 93}), 0));
}

TEST(SparseCross, Mistakes) {
  const auto error = [](const std::vector<std::vector<Tensor>>& args, const Attrs& attrs) {
    return std::string(Cross("SparseCross", args, attrs).status().message());
  };
  using testing::HasSubstr;
  EXPECT_THAT(error(Columns(kNumbers, {}), Joined()), HasSubstr("features must be strings"));
  EXPECT_THAT(error(Columns(kDigits, {S({1, 1}, {"x"})}), Joined()),
              HasSubstr("Expected batch size 2, got 1 in column 2"));
  EXPECT_THAT(error(Columns(kDigits, {S({2}, {"x", "y"})}), Joined()),
              HasSubstr("should be a matrix"));
  EXPECT_THAT(
      error({{L({2, 2}, {1, 0, 0, 0})}, {S({2}, {"a", "b"})}, {L({2}, {2, 1})}, {}}, Joined()),
      HasSubstr("rows must ascend"));
  EXPECT_THAT(error({{L({1, 2}, {5, 0})}, {S({1}, {"a"})}, {L({2}, {2, 1})}, {}}, Joined()),
              HasSubstr("out of bounds"));
  Attrs attrs = Hashed(0, 0);
  attrs["out_type"] = DType::kString;
  EXPECT_THAT(error(Columns(kDigits, {}), attrs), HasSubstr("out_type string"));
}

}  // namespace
}  // namespace penstock

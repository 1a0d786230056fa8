// SPDX-License-Identifier: Apache-2.0
#include "core/op/op_def.h"

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

const OpDef& MatMulDef() {
  static const OpDef& def = *new OpDef{
      .name = "MatMul",
      .inputs = {{"a", "T"}, {"b", "T"}},
      .outputs = {{"product", "T"}},
      .types = {{"T", {DType::kFloat, DType::kDouble, DType::kInt32}}},
      .attrs = {{"transpose_a", false}, {"transpose_b", false}},
  };
  return def;
}

const OpDef& ConcatDef() {
  static const OpDef& def = *new OpDef{
      .name = "Concat",
      .inputs = {{"concat_dim", "int32"}, {"values", Repeat("N", "T")}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAllTypes}},
      .attrs = {{"N", Ints{.min = 2}}},
  };
  return def;
}

// Has an attribute of every kind.
const OpDef& KindsDef() {
  static const OpDef& def = *new OpDef{
      .name = "Kinds",
      .types = {{"U", kIndex, DType::kInt64}},
      .attrs = {{"i", Ints{}},
                {"f", Floats{}},
                {"b", Bools{}},
                {"s", Strings{}},
                {"o", OneOf{{"SAME", "VALID"}}},
                {"sh", Shapes{}},
                {"t", Tensors{}},
                {"fn", Functions{}},
                {"li", IntList{.min_length = 2}},
                {"lf", FloatList{}},
                {"lb", BoolList{}},
                {"ls", StringList{}},
                {"lt", TypeList{.min_length = 1, .allowed = kIndex}},
                {"lsh", ShapeList{}},
                {"lte", TensorList{}},
                {"lfn", FunctionList{}}},
  };
  return def;
}

Attrs GoodKinds() {
  return {{"i", 1},
          {"f", 1.0},
          {"b", true},
          {"s", "x"},
          {"o", "VALID"},
          {"sh", PartialShape()},
          {"t", Tensor::Scalar(1.0f)},
          {"fn", FunctionName{"f", nullptr}},
          {"li", std::vector<int64_t>{1, 2}},
          {"lf", EmptyList()},
          {"lb", std::vector<bool>{}},
          {"ls", std::vector<std::string>{"a"}},
          {"lt", std::vector<DType>{DType::kInt32}},
          {"lsh", EmptyList()},
          {"lte", EmptyList()},
          {"lfn", EmptyList()}};
}

TEST(CompleteAttrs, FillsInDefaultsAndKeepsTheRest) {
  Attrs attrs = GoodKinds();
  attrs["_unknown"] = "kept";
  ASSERT_TRUE(CompleteAttrs(KindsDef(), &attrs).ok());
  EXPECT_EQ(attrs["U"], AttrValue(DType::kInt64));
  EXPECT_EQ(attrs["_unknown"], AttrValue("kept"));
  // Empty lists get the kind that the op declares.
  EXPECT_STREQ(attrs["lf"].kind(), "list(float)");
  EXPECT_STREQ(attrs["lfn"].kind(), "list(func)");

  Attrs matmul = {{"T", DType::kFloat}, {"transpose_b", true}};
  ASSERT_TRUE(CompleteAttrs(MatMulDef(), &matmul).ok());
  EXPECT_EQ(matmul["transpose_a"], AttrValue(false));
  EXPECT_EQ(matmul["transpose_b"], AttrValue(true));
}

TEST(CompleteAttrs, Errors) {
  const struct {
    const OpDef& def;
    const char* attr;
    AttrValue value;
    const char* error;
  } cases[] = {
      {MatMulDef(), "T", DType::kString,
       "attribute 'T' of op 'MatMul' is string, must be one of {float, double, int32}"},
      {MatMulDef(), "T", EdgeType{DType::kFloat, true},
       "attribute 'T' of op 'MatMul' is float_ref, must be one of {float, double, int32}"},
      {MatMulDef(), "T", 1,
       "attribute 'T' of op 'MatMul' is 1, must be one of {float, double, int32}"},
      {MatMulDef(), "T", AttrValue(),
       "attribute 'T' of op 'MatMul' is missing, must be one of {float, double, int32}"},
      {MatMulDef(), "transpose_a", 1,
       "attribute 'transpose_a' of op 'MatMul' is 1 (int), must be a bool"},
      {ConcatDef(), "N", 1, "attribute 'N' of op 'Concat' is 1 (int), must be an int >= 2"},
      {ConcatDef(), "N", AttrValue(),
       "attribute 'N' of op 'Concat' is missing, must be an int >= 2"},
      {KindsDef(), "i", 1.0, "attribute 'i' of op 'Kinds' is 1 (float), must be an int"},
      {KindsDef(), "f", 1, "attribute 'f' of op 'Kinds' is 1 (int), must be a float"},
      {KindsDef(), "s", 1, "attribute 's' of op 'Kinds' is 1 (int), must be a string"},
      {KindsDef(), "o", "FULL",
       "attribute 'o' of op 'Kinds' is \"FULL\" (string), must be one of {\"SAME\", \"VALID\"}"},
      {KindsDef(), "sh", 1, "attribute 'sh' of op 'Kinds' is 1 (int), must be a shape"},
      {KindsDef(), "t", 1, "attribute 't' of op 'Kinds' is 1 (int), must be a tensor"},
      {KindsDef(), "fn", 1, "attribute 'fn' of op 'Kinds' is 1 (int), must be a func"},
      {KindsDef(), "li", std::vector<int64_t>{1},
       "attribute 'li' of op 'Kinds' is [1] (list(int)), must be a list(int) of at least 2"},
      {KindsDef(), "li", EmptyList(),
       "attribute 'li' of op 'Kinds' is [] (list(int)), must be a list(int) of at least 2"},
      {KindsDef(), "lf", std::vector<int64_t>{},
       "attribute 'lf' of op 'Kinds' is [] (list(int)), must be a list(float)"},
      {KindsDef(), "lt", std::vector<DType>{DType::kFloat},
       "attribute 'lt' of op 'Kinds' is [float] (list(type)), must be a list(type) of at least 1 "
       "from {int32, int64}"},
      {KindsDef(), "lt", std::vector<DType>{},
       "attribute 'lt' of op 'Kinds' is [] (list(type)), must be a list(type) of at least 1 from "
       "{int32, int64}"},
      {KindsDef(), "i", EmptyList(),
       "attribute 'i' of op 'Kinds' is [] (empty list), must be an int"},
  };
  for (const auto& c : cases) {
    Attrs attrs = GoodKinds();
    attrs["T"] = DType::kFloat;
    attrs["N"] = 2;
    attrs[c.attr] = c.value;
    EXPECT_EQ(CompleteAttrs(c.def, &attrs), InvalidArgument(c.error));
  }
}

std::string Types(const ArgDef& arg, const Attrs& attrs) {
  std::vector<EdgeType> types;
  const Status status = AppendArgTypes(arg, attrs, &types);
  if (!status.ok()) return std::string(status.message());
  return absl::StrJoin(types, " ", [](std::string* out, EdgeType t) { out->append(Name(t)); });
}

TEST(AppendArgTypes, Table) {
  const Attrs attrs = {{"T", DType::kHalf},
                       {"N", 3},
                       {"huge", int64_t{1} << 40},
                       {"negative", -1},
                       {"Ts", std::vector<DType>{DType::kBool, DType::kInt8}},
                       {"none", EmptyList()}};
  const struct {
    ArgType type;
    const char* expected;
  } cases[] = {
      {"int32", "int32"},
      {"T", "half"},
      {Ref("T"), "half_ref"},
      {Repeat("N", "T"), "half half half"},
      {Repeat("N", "int64"), "int64 int64 int64"},
      {Repeat("N", Ref("T")), "half_ref half_ref half_ref"},
      {List("Ts"), "bool int8"},
      {List("none"), ""},
      {"U", "attribute 'U', the type of 'x', is missing"},
      {"N", "attribute 'N', the type of 'x', is a int"},
      {Repeat("M", "T"), "attribute 'M', the number of tensors of 'x', is missing"},
      {List("T"), "attribute 'T', the types of 'x', is a type"},
      {Repeat("negative", "T"),
       "attribute 'negative', the number of tensors of 'x', is -1, must be in [0, 1000000]"},
      {Repeat("huge", "T"),
       "attribute 'huge', the number of tensors of 'x', is 1099511627776, must be in "
       "[0, 1000000]"},
  };
  for (const auto& c : cases) EXPECT_EQ(Types({"x", c.type}, attrs), c.expected);
}

constexpr EdgeType kF{DType::kFloat}, kI{DType::kInt32}, kFRef{DType::kFloat, true};

std::string Infer(const OpDef& def, const std::vector<std::vector<EdgeType>>& args,
                  const std::vector<bool>& is_list, Attrs attrs = {}) {
  const Status status = InferAttrs(def, args, is_list, &attrs);
  if (!status.ok()) return std::string(status.message());
  return absl::StrJoin(attrs, " ", [](std::string* out, const auto& attr) {
    StrAppend(out, attr.first, "=", attr.second.ToString());
  });
}

TEST(InferAttrs, TypesCountsAndLists) {
  EXPECT_EQ(Infer(MatMulDef(), {{kF}, {kF}}, {false, false}), "T=float");
  EXPECT_EQ(Infer(MatMulDef(), {{kFRef}, {kF}}, {false, false}), "T=float");
  EXPECT_EQ(Infer(ConcatDef(), {{kI}, {kF, kF, kF}}, {false, true}), "N=3 T=float");
  // An empty list determines the count, but not the type.
  EXPECT_EQ(Infer(ConcatDef(), {{kI}, {}}, {false, true}), "N=0");
  const OpDef queue = {.name = "QueueEnqueueV2",
                       .inputs = {{"handle", "resource"}, {"components", List("Tcomponents")}},
                       .attrs = {{"Tcomponents", TypeList{.min_length = 1}}}};
  EXPECT_EQ(Infer(queue, {{{DType::kResource}}, {kF, kI}}, {false, true}),
            "Tcomponents=[float, int32]");
}

TEST(InferAttrs, Errors) {
  EXPECT_EQ(Infer(MatMulDef(), {{kF}, {kI}}, {false, false}),
            "input 'b' of op 'MatMul' must be float as attribute 'T' is, got int32");
  EXPECT_EQ(Infer(MatMulDef(), {{kF}, {kF}}, {false, false}, {{"T", DType::kHalf}}),
            "input 'a' of op 'MatMul' must be half as attribute 'T' is, got float");
  EXPECT_EQ(Infer(MatMulDef(), {{kF}}, {false}), "op 'MatMul' has 2 inputs (a, b), got 1");
  EXPECT_EQ(Infer(MatMulDef(), {{kF, kF}, {kF}}, {false, false}),
            "input 'a' of op 'MatMul' is one tensor, 2 were given");
  EXPECT_EQ(Infer(MatMulDef(), {{kF}, {kF}}, {true, false}),
            "input 'a' of op 'MatMul' is one tensor, a list was given");
  EXPECT_EQ(Infer(ConcatDef(), {{kI}, {kF}}, {false, false}),
            "input 'values' of op 'Concat' is a list of tensors, one was given");
  EXPECT_EQ(Infer(ConcatDef(), {{kF}, {kF, kF}}, {false, true}),
            "input 'concat_dim' of op 'Concat' must be int32, got float");
  EXPECT_EQ(Infer(ConcatDef(), {{kI}, {kF, kI}}, {false, true}),
            "input 'values' of op 'Concat' must be float as attribute 'T' is, got int32");
  EXPECT_EQ(Infer(ConcatDef(), {{kI}, {kF, kF}}, {false, true}, {{"N", 3}}),
            "input 'values' of op 'Concat' must have 3 tensors as attribute 'N' says, got 2");
  const OpDef assign = {.name = "Assign", .inputs = {{"ref", Ref("T")}}, .types = {{"T", {}}}};
  EXPECT_EQ(Infer(assign, {{kF}}, {false}),
            "input 'ref' of op 'Assign' must be a variable, got a float tensor");
  EXPECT_EQ(Infer(assign, {{kFRef}}, {false}), "T=float");
}

TEST(AttrDefDeathTest, DefaultsThatDoNotTellTheKind) {
  EXPECT_DEATH(AttrDef("x", EmptyList()), "attribute x: a default of kind empty list");
  EXPECT_DEATH(AttrDef("x", DType::kFloat), "types belong in .types");
}

}  // namespace
}  // namespace penstock

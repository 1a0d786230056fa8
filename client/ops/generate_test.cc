// SPDX-License-Identifier: Apache-2.0
#include "client/ops/generate.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

GeneratedOps Generate(OpDef op) { return GenerateOps(Registry({std::move(op)}, {}), "x/ops.h"); }

TEST(GenerateOps, TensorsAreArgumentsAndDefaultsAreOptions) {
  const GeneratedOps ops = Generate({.name = "MatMul",
                                     .doc = "a times b.",
                                     .inputs = {{"a", "T", "the left one"}, {"b", "T"}},
                                     .outputs = {{"product", "T", "a matrix"}},
                                     .types = {{"T", kFloating}},
                                     .attrs = {{"transpose_a", false}, {"transpose_b", false}}});
  EXPECT_THAT(ops.header, HasSubstr(R"(
struct MatMulOptions {
  bool transpose_a = false;
  bool transpose_b = false;
  std::string name = "";
};
// a times b.
// a: the left one
// -> product: a matrix
Output MatMul(const Operand& a, const Operand& b, const MatMulOptions& options = {});
)"));
  EXPECT_THAT(ops.source, HasSubstr(R"(
Output MatMul(const Operand& a, const Operand& b, const MatMulOptions& options) {
  return Call("MatMul", AsInputs(nullptr, "MatMul", {{a, "T"}, {b, "T"}}), {
           {"transpose_a", options.transpose_a},
           {"transpose_b", options.transpose_b}}, options.name);
}
)"));
  EXPECT_THAT(ops.source, HasSubstr("#include \"x/ops.h\"\n"));
}

TEST(GenerateOps, WithoutTensorsTheGraphIsGiven) {
  const GeneratedOps ops = Generate({.name = "Placeholder",
                                     .outputs = {{"output", "dtype"}},
                                     .types = {{"dtype", kAllTypes}},
                                     .attrs = {{"shape", PartialShape()}}});
  EXPECT_THAT(ops.header, HasSubstr("  PartialShape shape = {};\n"));
  EXPECT_THAT(ops.header,
              HasSubstr("Output Placeholder(const LocatedSink& graph, DType dtype, const "
                        "PlaceholderOptions& options = {});\n"));
  EXPECT_THAT(ops.source, HasSubstr("return CallIn(graph.Noted(), \"Placeholder\", {}, {\n"
                                    "           {\"dtype\", dtype},\n"));
}

TEST(GenerateOps, ListsThatMayBeEmptyDoNotKnowTheGraph) {
  const auto head = [](int64_t min) {
    return Generate({.name = "Group",
                     .inputs = {{"xs", List("T")}},
                     .attrs = {{"T", TypeList{.min_length = min}}}})
        .header;
  };
  EXPECT_THAT(head(0), HasSubstr("Output Group(const LocatedSink& graph, const LocatedOutputs& xs, "
                                 "const NodeOptions& options = {});"));
  EXPECT_THAT(head(1),
              HasSubstr("Output Group(const LocatedOutputs& xs, const NodeOptions& options"));
}

TEST(GenerateOps, NumbersTakeTheTypeThatIsAskedFor) {
  const GeneratedOps ops = Generate({.name = "Mean",
                                     .inputs = {{"x", "T"}, {"axes", "Tidx"}, {"k", "int64"}},
                                     .outputs = {{"y", "T"}},
                                     .types = {{"T", kReal}, {"Tidx", kIndex, DType::kInt32}}});
  EXPECT_THAT(ops.source, HasSubstr("AsInputs(nullptr, \"Mean\", {{x, \"T\"}, "
                                    "{axes, \"Tidx\", DType::kInt32}, "
                                    "{k, \"\", DType::kInt64}})"));
}

TEST(GenerateOps, ANumberWouldNotKnowTheGraphOfItsOp) {
  const GeneratedOps one = Generate(
      {.name = "Exp", .inputs = {{"x", "T"}}, .outputs = {{"y", "T"}}, .types = {{"T", kReal}}});
  EXPECT_THAT(one.header, HasSubstr("Output Exp(const LocatedOutput& x, "));
  EXPECT_THAT(one.source, HasSubstr("Call(\"Exp\", {x.Noted()}, {"));
}

TEST(GenerateOps, SeveralOutputsHaveNames) {
  const GeneratedOps ops = Generate({.name = "TopK",
                                     .inputs = {{"input", "T"}, {"k", "int32"}},
                                     .outputs = {{"values", "T"}, {"indices", "int32"}},
                                     .types = {{"T", kReal}}});
  EXPECT_THAT(
      ops.header,
      HasSubstr("struct TopKOutputs {\n  Output values;\n  Output indices;\n};"
                "\n// The op TopK.\nTopKOutputs TopK(const Operand& input, const Operand& k, "));
  EXPECT_THAT(
      ops.source,
      HasSubstr("  return {.values = results.NextOutput(), .indices = results.NextOutput()};\n"));
}

TEST(GenerateOps, ListsOfOutputsKnowTheirLength) {
  const GeneratedOps split = Generate({.name = "Split",
                                       .inputs = {{"value", "T"}},
                                       .outputs = {{"output", Repeat("num_split", "T")}},
                                       .types = {{"T", kAllTypes}},
                                       .attrs = {{"num_split", Ints{.min = 1}}}});
  EXPECT_THAT(split.header,
              HasSubstr("Outputs Split(const LocatedOutput& value, int64_t num_split, "));
  EXPECT_THAT(split.source, HasSubstr("return results.NextOutputs(num_split);"));
  const GeneratedOps many =
      Generate({.name = "Parse",
                .inputs = {{"keys", Repeat("N", "string")}, {"dense", List("Tdense")}},
                .outputs = {{"ids", Repeat("N", "int64")},
                            {"values", List("types")},
                            {"shapes", Repeat("N", "int64")},
                            {"dense_values", List("Tdense")}},
                .attrs = {{"N", Ints{.min = 0}}, {"types", TypeList{}}, {"Tdense", TypeList{}}}});
  EXPECT_THAT(
      many.header,
      HasSubstr("ParseOutputs Parse(\n    const LocatedSink& graph,\n    const LocatedOutputs& "
                "keys,\n    const LocatedOutputs& dense,\n    const std::vector<DType>& types,\n"));
  EXPECT_THAT(many.source, HasSubstr("return {.ids = results.NextOutputs(keys.size()), "
                                     ".values = results.NextOutputs(types.size()), "
                                     ".shapes = results.NextOutputs(keys.size()), "
                                     ".dense_values = results.NextOutputs(dense.size())};"));
}

TEST(GenerateOps, EveryKindOfDefault) {
  const GeneratedOps ops =
      Generate({.name = "Op",
                .types = {{"out_type", kIndex, DType::kInt32}},
                .attrs = {{"i", -3},
                          {"f", 1e-4f},
                          {"whole", 2.0f},
                          {"s", "a\"b\n"},
                          {"mode", OneOf{{"x", "y"}}, "y"},
                          {"shape", PartialShape({2, -1})},
                          {"scalar", PartialShape::Scalar()},
                          {"strides", std::vector<int64_t>{1, 2}},
                          {"flags", std::vector<bool>{true, false}},
                          {"empty", IntList{}, EmptyList{}},
                          {"dtypes", TypeList{}, std::vector<DType>{DType::kFloat, DType::kHalf}},
                          {"tensor", Tensor::Scalar<float>(1)}}});
  for (const char* line :
       {"DType out_type = DType::kInt32;", "int64_t i = -3;", "float f = 9.99999975e-05f;",
        "float whole = 2.0f;", "std::string s = \"a\\\"b\\n\";", "std::string mode = \"y\";",
        "PartialShape shape = PartialShape({2, -1});",
        "PartialShape scalar = PartialShape::Scalar();", "std::vector<int64_t> strides = {1, 2};",
        "std::vector<bool> flags = {true, false};", "std::vector<int64_t> empty = {};",
        "std::vector<DType> dtypes = {DType::kFloat, DType::kHalf};", "Tensor tensor = {};"}) {
    EXPECT_THAT(ops.header, HasSubstr(StrCat("  ", line, "\n")));
  }
  // An option whose type has no C++ literal leaves the attribute at the op's default, unless the
  // option is given.
  EXPECT_THAT(ops.source,
              HasSubstr("options.tensor.valid() ? AttrValue(options.tensor) : AttrValue()"));
}

TEST(GenerateOps, NamesThatCppDoesNotAllow) {
  const GeneratedOps ops = Generate({.name = "Cast",
                                     .inputs = {{"default", "float"}},
                                     .outputs = {{"new", "float"}, {"y", "float"}}});
  EXPECT_THAT(ops.header, HasSubstr("CastOutputs Cast(const LocatedOutput& default_, "));
  EXPECT_THAT(ops.header, HasSubstr("  Output new_;\n"));
}

TEST(GenerateOps, LongDocumentationIsWrapped) {
  std::string doc;
  for (int i = 0; i < 40; ++i) doc += "seven77 ";
  const GeneratedOps ops = Generate({.name = "Op", .doc = doc});
  size_t column = 0;
  for (const char c : ops.header) {
    column = c == '\n' ? 0 : column + 1;
    ASSERT_LE(column, 100);
  }
}

TEST(GenerateOps, OpsOfTheRuntimeAreLeftOut) {
  EXPECT_THAT(Generate({.name = "_Send"}).header, Not(HasSubstr("_Send")));
}

}  // namespace
}  // namespace penstock::client

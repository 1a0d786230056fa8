// SPDX-License-Identifier: Apache-2.0
//
// Tests Einsum. The elements of each input are 1, 2, 3, ... The expected numbers are those of
// TensorFlow 2.21.
#include "core/op/flops.h"
#include "core/op/registry.h"
#include "kernels/array/testing/golden.h"

namespace penstock {
namespace {

using namespace golden;  // NOLINT: the tables below use its names

Tensor Counting(const Shape& shape) {
  Tensor x(DType::kFloat, shape);
  for (int64_t i = 0; i < x.num_elements(); ++i) x.mutable_data<float>()[i] = i + 1;
  return x;
}

OpCall Einsum(const char* equation, std::vector<Tensor> inputs) {
  return {"Einsum", {OpCall::Arg(std::move(inputs))}, {{"equation", equation}}};
}

TEST(Einsum, DoesWhatTheEquationSays) {
  const struct {
    const char* equation;
    std::vector<Shape> shapes;
    Tensor y;
  } cases[] = {
      {"ij,jk->ik", {{2, 3}, {3, 2}}, F({2, 2}, {22, 28, 49, 64})},
      {"ii->i", {{3, 3}}, F({3}, {1, 5, 9})},
      {"ii->", {{3, 3}}, F({}, {15})},
      {"ij->j", {{2, 3}}, F({3}, {5, 7, 9})},
      {"ij->ji", {{2, 3}}, F({3, 2}, {1, 4, 2, 5, 3, 6})},
      {"i->ii", {{2}}, F({2, 2}, {1, 0, 0, 2})},
      {"...i->i...", {{2, 3}}, F({3, 2}, {1, 4, 2, 5, 3, 6})},
      {"i...->...", {{2, 3}}, F({3}, {5, 7, 9})},
      {"a,b->ba", {{2}, {3}}, F({3, 2}, {1, 2, 2, 4, 3, 6})},
      {",->", {Shape(), Shape()}, F({}, {1})},
      {"a,->a", {{2}, Shape()}, F({2}, {1, 2})},
      {"...ij,...jk->...ik",
       {{2, 1, 2, 3}, {3, 3, 2}},
       F({2, 3, 2, 2}, {22, 28,  49,  64,  58,  64,  139, 154, 94,  100, 229, 244,
                        76, 100, 103, 136, 220, 244, 301, 334, 364, 388, 499, 532})},
      {"...ij,jk->...ik", {{2, 2, 3}, {3, 2}}, F({2, 2, 2}, {22, 28, 49, 64, 76, 100, 103, 136})},
      {"ij...,jk...->ik...",
       {{2, 3, 2}, {3, 2, 1}},
       F({2, 2, 2}, {35, 44, 44, 56, 89, 98, 116, 128})},
      {"ij,ij->", {{2, 3}, {2, 3}}, F({}, {91})},
      {"iij,jk->ki", {{2, 2, 3}, {3, 2}}, F({2, 2}, {22, 103, 28, 136})},
      {"ij,k->i", {{2, 3}, {2}}, F({2}, {18, 45})},
      {"ij->ijj", {{2, 3}}, F({2, 3, 3}, {1, 0, 0, 0, 2, 0, 0, 0, 3, 4, 0, 0, 0, 5, 0, 0, 0, 6})},
      {"i,j->ij", {{0}, {3}}, F({0, 3}, {})},
      {"ij,jk->ik", {{2, 0}, {0, 3}}, F({2, 3}, {0, 0, 0, 0, 0, 0})},
      {"bqhd,bkhd->bhqk",
       {{1, 2, 2, 2}, {1, 2, 2, 2}},
       F({1, 2, 2, 2}, {5, 17, 17, 61, 25, 53, 53, 113})},
      {"Ab,bA->A", {{2, 3}, {3, 2}}, F({2}, {22, 64})},
      {"ij,kj->ki", {{2, 3}, {2, 3}}, F({2, 2}, {14, 32, 32, 77})},
      {"i...,i...->...", {{2, 3}, {2, 3}}, F({3}, {17, 29, 45})},
      {"ij->i...", {{2, 3}}, F({2}, {6, 15})},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.equation);
    std::vector<Tensor> inputs;
    for (const Shape& shape : c.shapes) inputs.push_back(Counting(shape));
    ExpectOutputs(Einsum(c.equation, inputs), {c.y});
  }
}

TEST(Einsum, MultipliesNumbersOfEveryKind) {
  const Tensor a = Z({2}, {{1, 2}, {0, 1}}), b = Z({2}, {{0, 1}, {3, 0}});
  ExpectOutputs(Einsum("i,i->", {a, b}), {Z({}, {{-2, 4}})});
  ExpectOutputs(Einsum("ij->j", {H({2, 2}, {1, 2, 3, 4})}), {H({2}, {4, 6})});
  ExpectOutputs(Einsum("i,j->ji", {BF({2}, {1, 2}), BF({2}, {3, 4})}), {BF({2, 2}, {3, 6, 4, 8})});
  ExpectOutputs(Einsum("ij,j->i", {L({1, 2}, {1, 2}), L({2}, {int64_t{1} << 62, 1})}),
                {L({1}, {(int64_t{1} << 62) + 2})});
}

TEST(Einsum, SaysWhatDoesNotFit) {
  const Tensor matrix = Counting({2, 3});
  const auto fails = [&](const char* equation, const char* words) {
    Einsum(equation, {matrix}).ExpectError(words);
  };
  fails("ij", "equation 'ij' must have exactly one '->'");
  fails("ij->i->j", "must have exactly one '->'");
  fails("ij,jk->ik", "speaks of 2 inputs, there are 1");
  fails("i1->i", "subscripts 'i1' must be letters and at most one '...'");
  fails("i......->i", "subscripts 'i......' must be letters");
  fails("ij->ik", "no input has the output's label 'k'");
  fails("ijk->i", "input 0 must have rank 3 for subscripts 'ijk', has shape [2,3]");
  fails("ijk...->i", "must have rank 3 or more");
  fails("ii->i", "dimension 1 of input 0, of shape [2,3], must be 2 for subscripts 'ii'");
  fails("i...->i", "the output's subscripts 'i' lack the '...' of 1 dimensions");
  Einsum("ij,jk->ik", {matrix, Counting({1, 3})})
      .ExpectError("dimension 0 of input 1, of shape [1,3], must be 3 for subscripts 'jk'");
  Einsum("...i,...i->...", {matrix, Counting({3, 3})}).ExpectError("must be 2 for subscripts");
}

double FlopsOf(const char* equation, std::vector<PartialShape> inputs, PartialShape output) {
  const OpDef& op = *Registry::Global().FindOp("Einsum");
  const Attrs attrs = {{"equation", equation}};
  const std::vector<PartialShape> outputs = {std::move(output)};
  EXPECT_NE(op.flops, nullptr);
  return op.flops == nullptr ? 0 : op.flops({.attrs = attrs, .inputs = inputs, .outputs = outputs});
}

TEST(Einsum, CountsTheOperationsOfItsProduct) {
  EXPECT_EQ(FlopsOf("ij,jk->ik", {{20, 30}, {30, 40}}, {20, 40}), 2.0 * 20 * 30 * 40);
  EXPECT_EQ(FlopsOf("bqhd,bkhd->bhqk", {{2, 5, 3, 7}, {2, 11, 3, 7}}, {2, 3, 5, 11}),
            2.0 * 2 * 3 * 5 * 11 * 7);
  EXPECT_EQ(FlopsOf("...ij,jk->...ik", {{9, 2, 3}, {3, 4}}, {9, 2, 4}), 2.0 * 9 * 2 * 3 * 4);
  EXPECT_EQ(FlopsOf("ij,k->i", {{20, 30}, {40}}, {20}), 20 * 30 + 40 + 2 * 20)
      << "each is summed before they are multiplied";
  EXPECT_EQ(FlopsOf("ij->ji", {{20, 30}}, {30, 20}), 0) << "only moves";
  EXPECT_EQ(FlopsOf("ij->j", {{20, 30}}, {30}), 20 * 30);
  EXPECT_GT(FlopsOf("ij,jk->ik", {{}, {}}, {}), 0) << "unknown ranks";
}

}  // namespace
}  // namespace penstock

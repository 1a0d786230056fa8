// SPDX-License-Identifier: Apache-2.0
//
// Tests string ops. The expected values are those of TensorFlow 2.21.
#include "kernels/array/testing/golden.h"

namespace penstock {
namespace {

using namespace golden;  // NOLINT: the tables below use its names

TEST(String, Join) {
  ExpectOutputs({"StringJoin",
                 {std::vector<Tensor>{S({2}, {"a", "b"}), S({}, {"x"}), S({2}, {"c", "d"})}},
                 {{"separator", "-"}}},
                {S({2}, {"a-x-c", "b-x-d"})});
  OpCall{"StringJoin", {std::vector<Tensor>{S({2}, {"a", "b"}), S({1}, {"c"})}}}.ExpectError(
      "Input shapes do not match");
  ExpectOutputs({"StringJoin", {std::vector<Tensor>{S({2}, {"a", "b"})}}, {{"separator", "-"}}},
                {S({2}, {"a", "b"})});
  ExpectOutputs(
      {"ReduceJoin", {S({2, 2}, {"a", "b", "c", "d"}), I({1}, {0})}, {{"separator", "-"}}},
      {S({2}, {"a-c", "b-d"})});
  ExpectOutputs(
      {"ReduceJoin", {S({2, 2}, {"a", "b", "c", "d"}), I({1}, {1})}, {{"separator", "-"}}},
      {S({2}, {"a-b", "c-d"})});
  ExpectOutputs(
      {"ReduceJoin", {S({2, 2}, {"a", "b", "c", "d"}), I({1}, {-1})}, {{"separator", "-"}}},
      {S({2}, {"a-b", "c-d"})});
  ExpectOutputs(
      {"ReduceJoin", {S({2, 2}, {"a", "b", "c", "d"}), I({2}, {0, 1})}, {{"separator", "-"}}},
      {S({}, {"a-c-b-d"})});
  ExpectOutputs(
      {"ReduceJoin", {S({2, 2}, {"a", "b", "c", "d"}), I({2}, {1, 0})}, {{"separator", "-"}}},
      {S({}, {"a-b-c-d"})});
  ExpectOutputs({"ReduceJoin", {S({2, 2}, {"a", "b", "c", "d"}), I({0}, {})}, {{"separator", "-"}}},
                {S({2, 2}, {"a", "b", "c", "d"})});
  ExpectOutputs(
      {"ReduceJoin", {S({2, 2}, {"a", "b", "c", "d"}), I({}, {0})}, {{"keep_dims", true}}},
      {S({1, 2}, {"ac", "bd"})});
  ExpectOutputs({"ReduceJoin", {S({0, 2}, {}), I({1}, {0})}}, {S({2}, {"", ""})});
  OpCall{"ReduceJoin", {S({2, 2}, {"a", "b", "c", "d"}), I({1}, {2})}}.ExpectError(
      "Invalid reduction dimension 2 for input with 2 dimension(s)");
  OpCall{"ReduceJoin", {S({2, 2}, {"a", "b", "c", "d"}), I({2}, {0, 0})}}.ExpectError(
      "Duplicate reduction dimension 0");
}

TEST(String, AsString) {
  ExpectOutputs(
      {"AsString", {F({7}, {1.5f, -2, NAN, INFINITY, 1e+30f, 1.2345679e+08f, 0.1f})}},
      {S({7}, {"1.500000", "-2.000000", "nan", "inf", "1000000015047466219876688855040.000000",
               "123456792.000000", "0.100000"})});
  ExpectOutputs({"AsString", {F({2}, {1.5f, 1e+30f})}, {{"precision", 2}}},
                {S({2}, {"1.50", "1000000015047466219876688855040.00"})});
  ExpectOutputs({"AsString", {F({2}, {1.5f, 1e+30f})}, {{"scientific", true}}},
                {S({2}, {"1.500000e+00", "1.000000e+30"})});
  ExpectOutputs({"AsString", {F({4}, {1.5f, 1e-30f, 1e+05f, 0.1f})}, {{"shortest", true}}},
                {S({4}, {"1.5", "1e-30", "100000", "0.1"})});
  ExpectOutputs({"AsString", {F({2}, {1.5f, 2})}, {{"width", 10}, {"fill", "0"}}},
                {S({2}, {"001.500000", "002.000000"})});
  ExpectOutputs({"AsString", {F({2}, {1.5f, 2})}, {{"width", 10}, {"fill", "-"}}},
                {S({2}, {"1.500000  ", "2.000000  "})});
  ExpectOutputs({"AsString", {F({2}, {1.5f, -2})}, {{"width", 10}, {"fill", " "}}},
                {S({2}, {"  1.500000", " -2.000000"})});
  ExpectOutputs({"AsString", {F({2}, {1.5f, 2})}, {{"width", 10}, {"fill", "+"}}},
                {S({2}, {" +1.500000", " +2.000000"})});
  ExpectOutputs({"AsString", {F({1}, {1})}, {{"shortest", true}, {"precision", 3}}},
                {S({1}, {"1"})});
  ExpectOutputs({"AsString", {I({2}, {1, -20})}}, {S({2}, {"1", "-20"})});
  const Tensor texts = S({3}, {std::string("a\0b", 3), "abc", "abcdefg"});
  const Tensor right = S({3}, {std::string("  a\0b", 5), "  abc", "abcdefg"});
  for (const char* fill : {"", "0", "+", "#", " "}) {
    ExpectOutputs({"AsString", {texts}, {{"width", 5}, {"fill", fill}}}, {right});
  }
  ExpectOutputs({"AsString", {texts}, {{"width", 5}, {"fill", "-"}}},
                {S({3}, {std::string("a\0b  ", 5), "abc  ", "abcdefg"})});
  ExpectOutputs({"AsString", {texts}, {{"width", 5}, {"precision", 2}}},
                {S({3}, {std::string("   a\0", 5), "   ab", "   ab"})});
  ExpectOutputs({"AsString", {texts}, {{"precision", 2}}}, {texts});
  ExpectOutputs({"AsString", {I({2}, {1, -20})}, {{"width", 5}, {"fill", "0"}}},
                {S({2}, {"00001", "-0020"})});
  ExpectOutputs({"AsString", {L({1}, {INT64_MIN})}}, {S({1}, {"-9223372036854775808"})});
  ExpectOutputs({"AsString", {B({2}, {true, false})}, {{"width", 6}}}, {S({2}, {"true", "false"})});
  ExpectOutputs({"AsString", {C({2}, {{1, 2}, {-1.5f, 0}})}, {{"precision", 1}}},
                {S({2}, {"(1.0,2.0)", "(-1.5,0.0)"})});
  ExpectOutputs({"AsString", {C({2}, {{1, 2}, {-1.5f, 0}})}, {{"width", 10}}},
                {S({2}, {"(  1.000000,  2.000000)", "( -1.500000,  0.000000)"})});
  ExpectOutputs({"AsString", {S({2}, {"a", ""})}}, {S({2}, {"a", ""})});
  ExpectOutputs({"AsString", {S({2}, {"a", "bcdefgh"})}, {{"width", 6}}},
                {S({2}, {"     a", "bcdefgh"})});
  ExpectOutputs({"AsString", {H({2}, {1.5, 0.0999755859})}}, {S({2}, {"1.500000", "0.099976"})});
  ExpectOutputs({"AsString", {D({2}, {0.1, 0.3333333333333333})}, {{"precision", 12}}},
                {S({2}, {"0.100000000000", "0.333333333333"})});
  ExpectOutputs({"AsString", {U8({1}, {200})}}, {S({1}, {"200"})});
  ExpectOutputs({"AsString", {U64({1}, {9223372036854775808ULL})}},
                {S({1}, {"9223372036854775808"})});
  ExpectOutputs({"AsString", {I8({1}, {-3})}, {{"width", 6}}}, {S({1}, {"    -3"})});
  OpCall{"AsString", {F({1}, {1})}, {{"scientific", true}, {"shortest", true}}}.ExpectError(
      "Cannot select both");
  OpCall{"AsString", {I({1}, {1})}, {{"scientific", true}}}.ExpectError(
      "scientific and shortest format not supported for datatype int32");
  OpCall{"AsString", {I({1}, {1})}, {{"precision", 2}}}.ExpectError(
      "precision not supported for datatype int32");
  OpCall{"AsString", {F({1}, {1})}, {{"width", 10}, {"fill", "x"}}}.ExpectError(
      "Fill argument not supported: \042x\042");
}

TEST(String, Format) {
  ExpectOutputs({"StringFormat",
                 {std::vector<Tensor>{F({2, 2}, {1, 2.5f, 3, 4}), I({}, {3})}},
                 {{"template", "x=%s y=%s"}}},
                {S({}, {"x=[[1 2.5]\012 [3 4]] y=3"})});
  ExpectOutputs({"StringFormat",
                 {std::vector<Tensor>{F({10}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9})}},
                 {{"template", "%s"}}},
                {S({}, {"[0 1 2 ... 7 8 9]"})});
  ExpectOutputs({"StringFormat",
                 {std::vector<Tensor>{F({10}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9})}},
                 {{"template", "%s"}, {"summarize", -1}}},
                {S({}, {"[0 1 2 3 4 5 6 7 8 9]"})});
  ExpectOutputs({"StringFormat", {std::vector<Tensor>{S({2}, {"a", "b"})}}, {{"template", "%s!"}}},
                {S({}, {"[\042a\042 \042b\042]!"})});
  ExpectOutputs(
      {"StringFormat", {std::vector<Tensor>{B({2}, {true, false})}}, {{"template", "%s!"}}},
      {S({}, {"[1 0]!"})});
  ExpectOutputs({"StringFormat",
                 {std::vector<Tensor>{S({}, {"a"})}},
                 {{"template", "{}"}, {"placeholder", "{}"}}},
                {S({}, {"\042a\042"})});
  ExpectOutputs({"StringFormat", {std::vector<Tensor>{F({0}, {})}}, {{"template", "%s"}}},
                {S({}, {"[]"})});
  ExpectOutputs(
      {"StringFormat",
       {std::vector<Tensor>{F({6}, {1e+10f, 1e-07f, 0.1f, NAN, -INFINITY, 1.2345679e+08f})}},
       {{"template", "%s"}, {"summarize", 5}}},
      {S({}, {"[1e+10 1e-07 0.1 nan -inf 123456792]"})});
  ExpectOutputs({"StringFormat", {std::vector<Tensor>{C({1}, {{1, 2}})}}, {{"template", "%s"}}},
                {S({}, {"[?]"})});
  ExpectOutputs(
      {"StringFormat",
       {std::vector<Tensor>{I({3, 3, 3}, {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13,
                                          14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26})}},
       {{"template", "%s"}, {"summarize", 1}}},
      {S({}, {"[[[0 ... 2]\012  ...\012  [6 ... 8]]\012\012 ...\012\012 [[18 ... 20]\012  ...\012  "
              "[24 ... 26]]]"})});
  ExpectOutputs({"StringFormat",
                 {std::vector<Tensor>{I({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7})}},
                 {{"template", "%s"}}},
                {S({}, {"[[[0 1]\012  [2 3]]\012\012 [[4 5]\012  [6 7]]]"})});
  ExpectOutputs({"StringFormat",
                 {std::vector<Tensor>{D({2}, {0.1, 0.3333333333333333})}},
                 {{"template", "%s"}}},
                {S({}, {"[0.1 0.33333333333333331]"})});
  ExpectOutputs(
      {"StringFormat", {std::vector<Tensor>{H({1}, {0.0999755859})}}, {{"template", "%s"}}},
      {S({}, {"[0.0999755859]"})});
  ExpectOutputs({"StringFormat", {std::vector<Tensor>{U8({1}, {3})}}, {{"template", "%s"}}},
                {S({}, {"[3]"})});
  ExpectOutputs({"StringFormat",
                 {std::vector<Tensor>{I({5}, {0, 1, 2, 3, 4})}},
                 {{"template", "%s"}, {"summarize", 2}}},
                {S({}, {"[0 1 ... 3 4]"})});
  ExpectOutputs({"StringFormat",
                 {std::vector<Tensor>{I({2, 2}, {0, 1, 2, 3}), I({2}, {4, 5}), I({}, {6})}},
                 {{"template", "%s,%s,%s"}, {"summarize", 0}}},
                {S({}, {"[\012 ...],[ ...],..."})});
  ExpectOutputs({"StringFormat",
                 {std::vector<Tensor>{F({2, 0}, {}), F({2, 0, 2}, {}), F({0, 3}, {})}},
                 {{"template", "%s,%s,%s"}}},
                {S({}, {"[\012 ...],[\012\012 ...],[]"})});
  OpCall{"StringFormat", {std::vector<Tensor>{I({}, {1})}}, {{"template", "%s %s"}}}.ExpectError(
      "must match: 2 vs. 1");
}

// Calls StringNGrams also with the other attributes: padding, and whether short rows are kept.
OpCall NGrams(std::vector<int64_t> splits, std::vector<int64_t> widths, int64_t padding = -1,
              bool keep_short = false) {
  const auto count = static_cast<int64_t>(splits.size());
  return {"StringNGrams",
          {S({6}, {"a", "b", "c", "d", "e", "f"}), L({count}, splits)},
          {{"separator", "|"},
           {"ngram_widths", std::move(widths)},
           {"left_pad", "<"},
           {"right_pad", ">"},
           {"pad_width", padding},
           {"preserve_short_sequences", keep_short}}};
}

TEST(String, NGrams) {
  ExpectOutputs(NGrams({0, 4, 6}, {3}), {S({10}, {"<|<|a", "<|a|b", "a|b|c", "b|c|d", "c|d|>",
                                                  "d|>|>", "<|<|e", "<|e|f", "e|f|>", "f|>|>"}),
                                         L({3}, {0, 6, 10})});
  ExpectOutputs(NGrams({0, 4, 6}, {3}, 0), {S({2}, {"a|b|c", "b|c|d"}), L({3}, {0, 2, 2})});
  ExpectOutputs(
      NGrams({0, 4, 6}, {3}, 1),
      {S({6}, {"<|a|b", "a|b|c", "b|c|d", "c|d|>", "<|e|f", "e|f|>"}), L({3}, {0, 4, 6})});
  ExpectOutputs(NGrams({0, 4, 6}, {4, 1}, 0),
                {S({7}, {"a|b|c|d", "a", "b", "c", "d", "e", "f"}), L({3}, {0, 5, 7})});
  ExpectOutputs(NGrams({0, 4, 6, 6}, {5}, 0, true),
                {S({2}, {"a|b|c|d", "e|f"}), L({4}, {0, 1, 2, 2})});
  ExpectOutputs(NGrams({0, 5, 6}, {6}, 1, true),
                {S({3}, {"<|a|b|c|d|e", "a|b|c|d|e|>", "<|f|>"}), L({3}, {0, 2, 3})});
  ExpectOutputs(
      NGrams({0, 0, 6}, {2}),
      {S({8}, {"<|>", "<|a", "a|b", "b|c", "c|d", "d|e", "e|f", "f|>"}), L({3}, {0, 1, 8})});
  ExpectOutputs(NGrams({0, 6}, {}), {S({0}, {}), L({2}, {0, 0})});
  NGrams({0, 6}, {0}).ExpectError("ngram_widths must contain positive values");
  NGrams({1, 6}, {3}).ExpectError("First split value must be 0, got 1");
  NGrams({0, 5}, {3}).ExpectError("Last split value must be data size. Expected 6, got 5");
  NGrams({0, 4, 3, 6}, {3}).ExpectError("Invalid split value");
  NGrams({0, 6}, {1 << 20}).ExpectError("words in the n-grams");
}

TEST(String, Split) {
  ExpectOutputs(
      {"StringSplit", {S({4}, {"hello world", "", "a,b , c ab d", "  x "}), S({}, {" "})}},
      {L({8, 2}, {0, 0, 0, 1, 2, 0, 2, 1, 2, 2, 2, 3, 2, 4, 3, 0}),
       S({8}, {"hello", "world", "a,b", ",", "c", "ab", "d", "x"}), L({2}, {4, 5})});
  ExpectOutputs({"StringSplit",
                 {S({4}, {"hello world", "", "a,,b ", ",x,"}), S({}, {" "})},
                 {{"skip_empty", false}}},
                {L({5, 2}, {0, 0, 0, 1, 2, 0, 2, 1, 3, 0}),
                 S({5}, {"hello", "world", "a,,b", "", ",x,"}), L({2}, {4, 2})});
  ExpectOutputs(
      {"StringSplitV2", {S({4}, {"hello world", "", "a,b ,, c ab d", "  x "}), S({}, {" "})}},
      {L({12, 2}, {0, 0, 0, 1, 1, 0, 2, 0, 2, 1, 2, 2, 2, 3, 2, 4, 3, 0, 3, 1, 3, 2, 3, 3}),
       S({12}, {"hello", "world", "", "a,b", ",,", "c", "ab", "d", "", "", "x", ""}),
       L({2}, {4, 5})});
  ExpectOutputs(
      {"StringSplitV2",
       {S({4}, {"hello big  world", "a,b,,c", "1ab2ab3", " x  y "}), S({}, {" "})},
       {{"maxsplit", 1}}},
      {L({6, 2}, {0, 0, 0, 1, 1, 0, 2, 0, 3, 0, 3, 1}),
       S({6}, {"hello", "big  world", "a,b,,c", "1ab2ab3", "", "x  y "}), L({2}, {4, 2})});
  ExpectOutputs({"StringSplit", {S({4}, {"hello world", "", "a,b , c ab d", "  x "}), S({}, {""})}},
                {L({27, 2}, {0, 0, 0, 1,  0, 2, 0, 3,  0, 4,  0, 5, 0, 6, 0, 7, 0, 8,
                             0, 9, 0, 10, 2, 0, 2, 1,  2, 2,  2, 3, 2, 4, 2, 5, 2, 6,
                             2, 7, 2, 8,  2, 9, 2, 10, 2, 11, 3, 0, 3, 1, 3, 2, 3, 3}),
                 S({27}, {"h", "e", "l", "l", "o", " ", "w", "o", "r", "l", "d", "a", ",", "b",
                          " ", ",", " ", "c", " ", "a", "b", " ", "d", " ", " ", "x", " "}),
                 L({2}, {4, 12})});
  ExpectOutputs({"StringSplit",
                 {S({4}, {"hello world", "", "a,,b ", ",x,"}), S({}, {""})},
                 {{"skip_empty", false}}},
                {L({19, 2}, {0, 0, 0,  1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8, 0,
                             9, 0, 10, 2, 0, 2, 1, 2, 2, 2, 3, 2, 4, 3, 0, 3, 1, 3, 2}),
                 S({19}, {"h", "e", "l", "l", "o", " ", "w", "o", "r", "l", "d", "a", ",", ",", "b",
                          " ", ",", "x", ","}),
                 L({2}, {4, 11})});
  ExpectOutputs(
      {"StringSplitV2", {S({4}, {"hello world", "", "a,b ,, c ab d", "  x "}), S({}, {""})}},
      {L({8, 2}, {0, 0, 0, 1, 2, 0, 2, 1, 2, 2, 2, 3, 2, 4, 3, 0}),
       S({8}, {"hello", "world", "a,b", ",,", "c", "ab", "d", "x"}), L({2}, {4, 5})});
  ExpectOutputs(
      {"StringSplitV2",
       {S({4}, {"hello big  world", "a,b,,c", "1ab2ab3", " x  y "}), S({}, {""})},
       {{"maxsplit", 1}}},
      {L({8, 2}, {0, 0, 0, 1, 1, 0, 1, 1, 2, 0, 2, 1, 3, 0, 3, 1}),
       S({8}, {"hello", "big  world", "a,b,,c", "", "1ab2ab3", "", "x", "y "}), L({2}, {4, 2})});
  ExpectOutputs({"StringSplitV2", {S({3}, {"", " a b ", "  "}), S({}, {""})}, {{"maxsplit", 1}}},
                {L({2, 2}, {1, 0, 1, 1}), S({2}, {"a", "b "}), L({2}, {3, 2})});
  ExpectOutputs({"StringSplitV2", {S({2}, {"", " a b "}), S({}, {""})}, {{"maxsplit", 9}}},
                {L({2, 2}, {1, 0, 1, 1}), S({2}, {"a", "b"}), L({2}, {2, 2})});
  ExpectOutputs({"StringSplitV2", {S({2}, {"", " a b "}), S({}, {""})}, {{"maxsplit", 0}}},
                {L({2, 2}, {0, 0, 1, 0}), S({2}, {"", " a b "}), L({2}, {2, 1})});
  ExpectOutputs(
      {"StringSplit", {S({4}, {"hello world", "", "a,b , c ab d", "  x "}), S({}, {","})}},
      {L({5, 2}, {0, 0, 2, 0, 2, 1, 2, 2, 3, 0}),
       S({5}, {"hello world", "a", "b ", " c ab d", "  x "}), L({2}, {4, 3})});
  ExpectOutputs({"StringSplit",
                 {S({4}, {"hello world", "", "a,,b ", ",x,"}), S({}, {","})},
                 {{"skip_empty", false}}},
                {L({7, 2}, {0, 0, 2, 0, 2, 1, 2, 2, 3, 0, 3, 1, 3, 2}),
                 S({7}, {"hello world", "a", "", "b ", "", "x", ""}), L({2}, {4, 3})});
  ExpectOutputs(
      {"StringSplitV2", {S({4}, {"hello world", "", "a,b ,, c ab d", "  x "}), S({}, {","})}},
      {L({7, 2}, {0, 0, 1, 0, 2, 0, 2, 1, 2, 2, 2, 3, 3, 0}),
       S({7}, {"hello world", "", "a", "b ", "", " c ab d", "  x "}), L({2}, {4, 4})});
  ExpectOutputs({"StringSplitV2",
                 {S({4}, {"hello big  world", "a,b,,c", "1ab2ab3", " x  y "}), S({}, {","})},
                 {{"maxsplit", 1}}},
                {L({5, 2}, {0, 0, 1, 0, 1, 1, 2, 0, 3, 0}),
                 S({5}, {"hello big  world", "a", "b,,c", "1ab2ab3", " x  y "}), L({2}, {4, 2})});
  ExpectOutputs(
      {"StringSplit", {S({4}, {"hello world", "", "a,b , c ab d", "  x "}), S({}, {"ab"})}},
      {L({5, 2}, {0, 0, 2, 0, 2, 1, 2, 2, 3, 0}),
       S({5}, {"hello world", ",", " , c ", " d", "  x "}), L({2}, {4, 3})});
  ExpectOutputs({"StringSplit",
                 {S({4}, {"hello world", "", "a,,b ", ",x,"}), S({}, {"ab"})},
                 {{"skip_empty", false}}},
                {L({5, 2}, {0, 0, 2, 0, 2, 1, 2, 2, 3, 0}),
                 S({5}, {"hello world", "", ",,", " ", ",x,"}), L({2}, {4, 3})});
  ExpectOutputs(
      {"StringSplitV2", {S({4}, {"hello world", "", "a,b ,, c ab d", "  x "}), S({}, {"ab"})}},
      {L({5, 2}, {0, 0, 1, 0, 2, 0, 2, 1, 3, 0}),
       S({5}, {"hello world", "", "a,b ,, c ", " d", "  x "}), L({2}, {4, 2})});
  ExpectOutputs({"StringSplitV2",
                 {S({4}, {"hello big  world", "a,b,,c", "1ab2ab3", " x  y "}), S({}, {"ab"})},
                 {{"maxsplit", 1}}},
                {L({5, 2}, {0, 0, 1, 0, 2, 0, 2, 1, 3, 0}),
                 S({5}, {"hello big  world", "a,b,,c", "1", "2ab3", " x  y "}), L({2}, {4, 2})});
  ExpectOutputs(
      {"StringSplit", {S({4}, {"hello world", "", "a,b , c ab d", "  x "}), S({}, {" ,"})}},
      {L({8, 2}, {0, 0, 0, 1, 2, 0, 2, 1, 2, 2, 2, 3, 2, 4, 3, 0}),
       S({8}, {"hello", "world", "a", "b", "c", "ab", "d", "x"}), L({2}, {4, 5})});
  ExpectOutputs({"StringSplit",
                 {S({4}, {"hello world", "", "a,,b ", ",x,"}), S({}, {" ,"})},
                 {{"skip_empty", false}}},
                {L({9, 2}, {0, 0, 0, 1, 2, 0, 2, 1, 2, 2, 2, 3, 3, 0, 3, 1, 3, 2}),
                 S({9}, {"hello", "world", "a", "", "b", "", "", "x", ""}), L({2}, {4, 4})});
  ExpectOutputs(
      {"StringSplitV2", {S({4}, {"hello world", "", "a,b ,, c ab d", "  x "}), S({}, {" ,"})}},
      {L({5, 2}, {0, 0, 1, 0, 2, 0, 2, 1, 3, 0}),
       S({5}, {"hello world", "", "a,b", ", c ab d", "  x "}), L({2}, {4, 2})});
  ExpectOutputs({"StringSplitV2",
                 {S({4}, {"hello big  world", "a,b,,c", "1ab2ab3", " x  y "}), S({}, {" ,"})},
                 {{"maxsplit", 1}}},
                {L({4, 2}, {0, 0, 1, 0, 2, 0, 3, 0}),
                 S({4}, {"hello big  world", "a,b,,c", "1ab2ab3", " x  y "}), L({2}, {4, 1})});
  ExpectOutputs({"StringSplitV2", {S({1}, {"a b c"}), S({}, {""})}, {{"maxsplit", 0}}},
                {L({1, 2}, {0, 0}), S({1}, {"a b c"}), L({2}, {1, 1})});
  ExpectOutputs({"StringSplitV2", {S({1}, {"a b c"}), S({}, {"b"})}, {{"maxsplit", 0}}},
                {L({1, 2}, {0, 0}), S({1}, {"a b c"}), L({2}, {1, 1})});
  OpCall{"StringSplit", {S({1, 1}, {"a"}), S({}, {" "})}}.ExpectError("input must be a vector");
  OpCall{"StringSplitV2", {S({}, {"a"}), S({}, {" "})}}.ExpectError("input must be a vector");
}

TEST(String, Parts) {
  ExpectOutputs({"StringLength", {S({4}, {"h\303\251llo", "", "\377\200a", "abc"})}},
                {I({4}, {6, 0, 3, 3})});
  ExpectOutputs(
      {"StringLength", {S({4}, {"h\303\251llo", "", "\377\200a", "abc"})}, {{"unit", "UTF8_CHAR"}}},
      {I({4}, {5, 0, 2, 3})});
  ExpectOutputs({"Substr", {S({2}, {"hello", "world"}), I({}, {1}), I({}, {3})}},
                {S({2}, {"ell", "orl"})});
  ExpectOutputs({"Substr", {S({2}, {"hello", "world"}), L({2}, {-3, 1}), L({2}, {2, 9})}},
                {S({2}, {"ll", "orld"})});
  ExpectOutputs({"Substr", {S({}, {"hello"}), I({2}, {1, 2}), I({2}, {1, 2})}},
                {S({2}, {"e", "ll"})});
  ExpectOutputs({"Substr", {S({1}, {"hello"}), I({}, {5}), I({}, {3})}}, {S({1}, {""})});
  ExpectOutputs({"Substr", {S({1}, {"hello"}), I({}, {1}), I({}, {-3})}}, {S({1}, {"ello"})});
  ExpectOutputs(
      {"Substr", {S({1}, {"h\303\251llo"}), I({}, {1}), I({}, {2})}, {{"unit", "UTF8_CHAR"}}},
      {S({1}, {"\303\251l"})});
  ExpectOutputs(
      {"Substr", {S({1}, {"h\303\251llo"}), I({}, {-4}), I({}, {2})}, {{"unit", "UTF8_CHAR"}}},
      {S({1}, {"\303\251l"})});
  ExpectOutputs({"Substr", {S({2, 1}, {"hello", "world"}), I({2}, {1, 2}), I({2}, {1, 2})}},
                {S({2, 2}, {"e", "ll", "o", "rl"})});
  OpCall{"Substr", {S({2}, {"hello", "wo"}), I({}, {3}), I({}, {3})}}.ExpectError(
      "pos 3 out of range for string of length 2 at index 1");
  OpCall{"Substr", {S({1}, {"hello"}), I({}, {-6}), I({}, {3})}}.ExpectError("pos -6 out of range");
  OpCall{"Substr", {S({1}, {"h\303\251llo"}), I({}, {7}), I({}, {2})}, {{"unit", "UTF8_CHAR"}}}
      .ExpectError("pos 7 out of range");
  OpCall{"Substr", {S({2}, {"hello", "world"}), I({3}, {1, 2, 3}), I({3}, {1, 2, 3})}}.ExpectError(
      "cannot be broadcast");
  OpCall{"Substr", {S({2}, {"hello", "world"}), I({1}, {1}), I({2}, {1, 2})}}.ExpectError(
      "same shape");
  ExpectOutputs({"StringStrip", {S({3}, {" a b \012\011", "\013\014\015x", ""})}},
                {S({3}, {"a b", "x", ""})});
  ExpectOutputs({"StringLower", {S({1}, {"aBC \303\211"})}}, {S({1}, {"abc \303\211"})});
  ExpectOutputs({"StringUpper", {S({1}, {"abc \303\251\303\237"})}},
                {S({1}, {"ABC \303\251\303\237"})});
  OpCall{"StringUpper", {S({1}, {"a"})}, {{"encoding", "x"}}}.ExpectError("only utf-8");
}

TEST(String, ToNumber) {
  ExpectOutputs({"StringToNumber",
                 {S({15}, {"1", "-1.5", " 2 ", "1e3", "inf", "nan", "0x10", "99999999999", "+5",
                           "1e400", ".5", "-inf", "Infinity", "1e-50", "1."})},
                 {{"out_type", DType::kFloat}}},
                {F({15}, {1, -1.5f, 2, 1e+03f, INFINITY, NAN, 16, 1e+11f, 5, INFINITY, 0.5f,
                          -INFINITY, INFINITY, 0, 1})});
  ExpectOutputs({"StringToNumber",
                 {S({15}, {"1", "-1.5", " 2 ", "1e3", "inf", "nan", "0x10", "99999999999", "+5",
                           "1e400", ".5", "-inf", "Infinity", "1e-50", "1."})},
                 {{"out_type", DType::kDouble}}},
                {D({15}, {1, -1.5, 2, 1e+03, INFINITY, NAN, 16, 99999999999, 5, INFINITY, 0.5,
                          -INFINITY, INFINITY, 1e-50, 1})});
  ExpectOutputs(
      {"StringToNumber", {S({4}, {"1", "-1", " 2 ", "+5"})}, {{"out_type", DType::kInt32}}},
      {I({4}, {1, -1, 2, 5})});
  ExpectOutputs({"StringToNumber", {S({1}, {"99999999999"})}, {{"out_type", DType::kInt64}}},
                {L({1}, {99999999999LL})});
  ExpectOutputs(
      {"StringToNumber", {S({1}, {"18446744073709551615"})}, {{"out_type", DType::kUint64}}},
      {U64({1}, {18446744073709551615ULL})});
  ExpectOutputs({"StringToNumber", {S({1}, {"4294967295"})}, {{"out_type", DType::kUint32}}},
                {U32({1}, {4294967295})});
  OpCall{"StringToNumber", {S({1}, {"abc"})}, {{"out_type", DType::kFloat}}}.ExpectError(
      "could not correctly convert string: abc");
  OpCall{"StringToNumber", {S({1}, {""})}, {{"out_type", DType::kFloat}}}.ExpectError(
      "could not correctly convert string: ");
  OpCall{"StringToNumber", {S({1}, {"1 2"})}, {{"out_type", DType::kDouble}}}.ExpectError(
      "could not correctly convert string: 1 2");
  OpCall{"StringToNumber", {S({1}, {"1.5"})}, {{"out_type", DType::kInt32}}}.ExpectError(
      "could not correctly convert string: 1.5");
  OpCall{"StringToNumber", {S({1}, {"99999999999"})}, {{"out_type", DType::kInt32}}}.ExpectError(
      "could not correctly convert string: 99999999999");
  OpCall{"StringToNumber", {S({1}, {"-1"})}, {{"out_type", DType::kUint32}}}.ExpectError(
      "could not correctly convert string: -1");
  OpCall{"StringToNumber", {S({1}, {"18446744073709551615"})}, {{"out_type", DType::kInt64}}}
      .ExpectError("could not correctly convert string: 18446744073709551615");
}

TEST(String, HashBuckets) {
  ExpectOutputs(
      {"StringToHashBucket",
       {S({9}, {"", "a", "hello", "xxxxxxx", "yyyyyyyy", "zzzzzzzzzzzzzzzzz",
                "wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww",
                "abcdefghabcdefghabcdefghabcdefghabcdefghabcdefghabcdefghabcdefghabcdefgh",
                std::string("\377\000\200", 3)})},
       {{"num_buckets", 9223372036854775807}}},
      {L({9}, {105434511174508092LL, 2996632905371535868LL, 5943547241907780938LL,
               3860022913985354176LL, 3087770898797174513LL, 6079677648541187785LL,
               5225999827688135318LL, 5469296920437776449LL, 1363801051741087969LL})});
  ExpectOutputs(
      {"StringToHashBucket",
       {S({9}, {"", "a", "hello", "xxxxxxx", "yyyyyyyy", "zzzzzzzzzzzzzzzzz",
                "wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww",
                "abcdefghabcdefghabcdefghabcdefghabcdefghabcdefghabcdefghabcdefghabcdefgh",
                std::string("\377\000\200", 3)})},
       {{"num_buckets", 1000}}},
      {L({9}, {899, 868, 938, 983, 513, 592, 318, 449, 969})});
  ExpectOutputs(
      {"StringToHashBucketFast",
       {S({9}, {"", "a", "hello", "xxxxxxx", "yyyyyyyy", "zzzzzzzzzzzzzzzzz",
                "wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww",
                "abcdefghabcdefghabcdefghabcdefghabcdefghabcdefghabcdefghabcdefghabcdefgh",
                std::string("\377\000\200", 3)})},
       {{"num_buckets", 9223372036854775807}}},
      {L({9}, {1936946117179621456LL, 3694432073954588132LL, 3786372426573024489LL,
               5839026154326413872LL, 3441460688694223233LL, 7575292924748619168LL,
               1065610773926128235LL, 2345324454234571926LL, 5840852254093664639LL})});
  ExpectOutputs(
      {"StringToHashBucketFast",
       {S({9}, {"", "a", "hello", "xxxxxxx", "yyyyyyyy", "zzzzzzzzzzzzzzzzz",
                "wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww",
                "abcdefghabcdefghabcdefghabcdefghabcdefghabcdefghabcdefghabcdefghabcdefgh",
                std::string("\377\000\200", 3)})},
       {{"num_buckets", 1000}}},
      {L({9}, {263, 939, 296, 679, 233, 168, 42, 926, 639})});
  ExpectOutputs(
      {"StringToHashBucketStrong",
       {S({9}, {"", "a", "hello", "xxxxxxx", "yyyyyyyy", "zzzzzzzzzzzzzzzzz",
                "wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww",
                "abcdefghabcdefghabcdefghabcdefghabcdefghabcdefghabcdefghabcdefghabcdefgh",
                std::string("\377\000\200", 3)})},
       {{"num_buckets", 9223372036854775807}, {"key", std::vector<int64_t>{1, -2}}}},
      {L({9}, {1583518726171341606LL, 3067518542778738979LL, 2121554780776262445LL,
               3486630191277597704LL, 7050099910757870301LL, 7105650554578143258LL,
               9044228981387059859LL, 3310265241366905506LL, 3712258089686131481LL})});
  ExpectOutputs(
      {"StringToHashBucketStrong",
       {S({9}, {"", "a", "hello", "xxxxxxx", "yyyyyyyy", "zzzzzzzzzzzzzzzzz",
                "wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww",
                "abcdefghabcdefghabcdefghabcdefghabcdefghabcdefghabcdefghabcdefghabcdefgh",
                std::string("\377\000\200", 3)})},
       {{"num_buckets", 1000}, {"key", std::vector<int64_t>{1, -2}}}},
      {L({9}, {606, 979, 252, 511, 301, 258, 666, 506, 481})});
  OpCall{"StringToHashBucketStrong",
         {S({9}, {"", "a", "hello", "xxxxxxx", "yyyyyyyy", "zzzzzzzzzzzzzzzzz",
                  "wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww",
                  "abcdefghabcdefghabcdefghabcdefghabcdefghabcdefghabcdefghabcdefghabcdefgh",
                  std::string("\377\000\200", 3)})},
         {{"num_buckets", 5}, {"key", std::vector<int64_t>{1}}}}
      .ExpectError("Key must have 2 elements");
}

TEST(String, Regex) {
  ExpectOutputs({"RegexReplace", {S({2}, {"abcabc", "xyz"}), S({}, {"b(.)"}), S({}, {"[\1341]"})}},
                {S({2}, {"a[c]a[c]", "xyz"})});
  ExpectOutputs({"RegexReplace",
                 {S({2}, {"abcabc", "xyz"}), S({}, {"b(.)"}), S({}, {"[\1341]"})},
                 {{"replace_global", false}}},
                {S({2}, {"a[c]abc", "xyz"})});
  OpCall{"RegexReplace", {S({2}, {"abcabc", "xyz"}), S({}, {"("}), S({}, {"a"})}}.ExpectError(
      "Invalid pattern: (, error: missing )");
  OpCall{"RegexReplace", {S({2}, {"abcabc", "xyz"}), S({1}, {"a"}), S({}, {"x"})}}.ExpectError(
      "must be scalar");
  ExpectOutputs({"RegexFullMatch", {S({2}, {"abc", "abcd"}), S({}, {"a.c"})}},
                {B({2}, {true, false})});
  ExpectOutputs({"StaticRegexFullMatch", {S({2}, {"abc", "abcd"})}, {{"pattern", "a.c"}}},
                {B({2}, {true, false})});
  ExpectOutputs(
      {"StaticRegexReplace", {S({2}, {"abcabc", "xyz"})}, {{"pattern", "b"}, {"rewrite", "x"}}},
      {S({2}, {"axcaxc", "xyz"})});
  OpCall{"StaticRegexFullMatch", {S({2}, {"abcabc", "xyz"})}, {{"pattern", "("}}}.ExpectError(
      "Invalid pattern");
}

TEST(String, Base64) {
  ExpectOutputs({"EncodeBase64", {S({5}, {"", "a", "ab", "abc", "\377\376\375"})}},
                {S({5}, {"", "YQ", "YWI", "YWJj", "__79"})});
  ExpectOutputs({"EncodeBase64", {S({2}, {"a", "ab"})}, {{"pad", true}}},
                {S({2}, {"YQ==", "YWI="})});
  ExpectOutputs({"DecodeBase64", {S({7}, {"", "YQ", "YQ==", "YWI", "YWI=", "YWJj", "__79"})}},
                {S({7}, {"", "a", "a", "ab", "ab", "abc", "\377\376\375"})});
  OpCall{"DecodeBase64", {S({1}, {"//79"})}}.ExpectError("Invalid character found in base64.");
  OpCall{"DecodeBase64", {S({1}, {"YQ="})}}.ExpectError("Invalid character found in base64.");
  OpCall{"DecodeBase64", {S({1}, {"YQ\012"})}}.ExpectError("Invalid character found in base64.");
  OpCall{"DecodeBase64", {S({1}, {"a b"})}}.ExpectError("Invalid character found in base64.");
  OpCall{"DecodeBase64", {S({1}, {"Y"})}}.ExpectError("cannot be 1 modulo 4");
}

TEST(String, DecodeRaw) {
  ExpectOutputs({"DecodeRaw",
                 {S({2}, {"\001\002\003\004", "\005\006\007\010"})},
                 {{"out_type", DType::kInt16}}},
                {I16({2, 2}, {513, 1027, 1541, 2055})});
  ExpectOutputs({"DecodeRaw",
                 {S({2}, {"\001\002\003\004", "\005\006\007\010"})},
                 {{"out_type", DType::kInt16}, {"little_endian", false}}},
                {I16({2, 2}, {258, 772, 1286, 1800})});
  ExpectOutputs({"DecodeRaw",
                 {S({1}, {std::string("\000\000\200?\000\000\000@", 8)})},
                 {{"out_type", DType::kComplex64}}},
                {C({1, 1}, {{1, 2}})});
  ExpectOutputs({"DecodeRaw",
                 {S({1}, {std::string("?\200\000\000@\000\000\000", 8)})},
                 {{"out_type", DType::kComplex64}, {"little_endian", false}}},
                {C({1, 1}, {{1, 2}})});
  ExpectOutputs(
      {"DecodeRaw", {S({}, {std::string("\000\001\002", 3)})}, {{"out_type", DType::kBool}}},
      {B({3}, {false, true, true})});
  ExpectOutputs({"DecodeRaw", {S({2}, {"", ""})}, {{"out_type", DType::kInt16}}},
                {I16({2, 0}, {})});
  ExpectOutputs({"DecodeRaw", {S({0}, {})}, {{"out_type", DType::kInt16}}}, {I16({0, 0}, {})});
  OpCall{"DecodeRaw", {S({1}, {"\001\002\003"})}, {{"out_type", DType::kInt16}}}.ExpectError(
      "has length 3 that is not a multiple of 2, the size of int16");
  OpCall{"DecodeRaw", {S({2}, {"\001\002", "\001"})}, {{"out_type", DType::kUint8}}}.ExpectError(
      "element 1 has size 2 != 1");
}

}  // namespace
}  // namespace penstock

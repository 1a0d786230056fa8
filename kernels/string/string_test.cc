// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "kernels/array/testing/op_check.h"

namespace penstock {
namespace {

Tensor Text(const std::string& s) { return Tensor::Scalar<std::string>(s); }
Tensor Texts(const std::vector<std::string>& s) { return Tensor::Vector<std::string>(s); }

TEST(StringJoin, JoinsPlaceByPlace) {
  const auto join = [](std::vector<Tensor> parts, const char* separator = "") {
    return OpCall{"StringJoin", {OpCall::Arg(std::move(parts))}, {{"separator", separator}}};
  };
  EXPECT_TRUE(SameTensor(join({Texts({"a", "b"}), Text("-"), Texts({"c", ""})}).Run1(),
                         Texts({"a-c", "b-"})));
  EXPECT_TRUE(SameTensor(join({Text("a"), Text("b"), Text("")}, "/").Run1(), Text("a/b/")));
  EXPECT_EQ(join({Texts({}), Text("b")}).Run1().shape(), Shape({0}));
  join({Texts({"a"}), Texts({"b", "c"})}).ExpectError("Input shapes do not match: [1] vs. [2]");
}

TEST(Regex, MatchesTheWholeString) {
  const Tensor paths = Texts({"s3://bucket/x", "/tmp/s3://", "s3://"});
  const Tensor expected = Tensor::Of<bool>({3}, {true, false, true});
  EXPECT_TRUE(SameTensor(OpCall{"StaticRegexFullMatch", {paths}, {{"pattern", "^s3://.*"}}}.Run1(),
                         expected));
  EXPECT_TRUE(SameTensor(OpCall{"RegexFullMatch", {paths, Text("s3://.*")}}.Run1(), expected));
  OpCall{"StaticRegexFullMatch", {paths}, {{"pattern", "("}}}.ExpectError("Invalid pattern: (");
  OpCall{"RegexFullMatch", {paths, Text("[")}}.ExpectError("Invalid pattern: [");
  OpCall{"RegexFullMatch", {paths, paths}}.ExpectError("Pattern must be scalar");
}

TEST(Regex, Replaces) {
  const Tensor text = Texts({"abcabc", "x"});
  const auto replace = [&](bool global) {
    return OpCall{"StaticRegexReplace",
                  {text},
                  {{"pattern", "(b)c"}, {"rewrite", "<\\1>"}, {"replace_global", global}}};
  };
  EXPECT_TRUE(SameTensor(replace(true).Run1(), Texts({"a<b>a<b>", "x"})));
  EXPECT_TRUE(SameTensor(replace(false).Run1(), Texts({"a<b>abc", "x"})));
  EXPECT_TRUE(SameTensor(OpCall{"RegexReplace", {text, Text("[ax]"), Text("")}}.Run1(),
                         Texts({"bcbc", ""})));
  EXPECT_TRUE(SameTensor(OpCall{"RegexReplace", {text, Text("a"), Text("\\1")}}.Run1(), text));
}

}  // namespace
}  // namespace penstock

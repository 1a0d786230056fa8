// SPDX-License-Identifier: Apache-2.0
//
// Tests the Unicode ops. The expected values are TensorFlow's.
#include <string>
#include <vector>

#include "core/op/testing/op_runner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Strings = std::vector<std::string>;

// Code points of one to four bytes; an empty string; malformed bytes; control characters; a
// surrogate; a truncated character.
const Strings kTexts = {"a\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80",
                        "",
                        "x\xFFy\xC3",
                        "\x01\x7F\xC2\x85z",
                        "\xED\xA0\x80q",
                        "\xF0\x9F\x98"};

StatusOr<std::vector<Tensor>> Decode(const Strings& texts, const std::string& encoding,
                                     const Attrs& attrs = {}) {
  OpRunner run("UnicodeDecodeWithOffsets");
  for (const auto& [name, value] : attrs) run.Attr(name, value);
  return run.In(Tensor::Vector(texts)).Attr("input_encoding", encoding).Run();
}
template <class Splits, class Points, class Offsets>
void ExpectDecoded(const StatusOr<std::vector<Tensor>>& decoded, const Splits& splits,
                   const Points& points, const Offsets& offsets) {
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_THAT((*decoded)[0].flat<int64_t>(), splits);
  EXPECT_THAT((*decoded)[1].flat<int32_t>(), points);
  EXPECT_THAT((*decoded)[2].flat<int64_t>(), offsets);
}

TEST(UnicodeDecode, MalformedBytesAreReplacedOrIgnored) {
  ExpectDecoded(Decode(kTexts, "UTF-8"), ElementsAre(0, 4, 4, 8, 12, 16, 17),
                ElementsAre(97, 233, 20013, 128512, 120, 65533, 121, 65533, 1, 127, 133, 122, 65533,
                            65533, 65533, 113, 65533),
                ElementsAre(0, 1, 3, 6, 0, 1, 2, 3, 0, 1, 2, 4, 0, 1, 2, 3, 0));
  ExpectDecoded(
      Decode(kTexts, "UTF-8", {{"errors", "ignore"}, {"replace_control_characters", true}}),
      ElementsAre(0, 4, 4, 6, 9, 10, 10),
      ElementsAre(97, 233, 20013, 128512, 120, 121, 127, 133, 122, 113),
      ElementsAre(0, 1, 3, 6, 0, 2, 1, 2, 4, 3));
  EXPECT_THAT(Decode(kTexts, "UTF-8", {{"errors", "strict"}}).status().message(),
              HasSubstr("Invalid formatting on input string"));
}

TEST(UnicodeDecode, KnowsEncodings) {
  using namespace std::string_literals;  // NOLINT: strings with zero bytes
  ExpectDecoded(Decode({"\0a\xD8\x3D\xDE\0\xD8\0\0b"s, "\0"s}, "UTF-16-BE"), ElementsAre(0, 4, 5),
                ElementsAre(97, 128512, 65533, 98, 65533), ElementsAre(0, 2, 6, 8, 0));
  ExpectDecoded(Decode({"\xFF\xFE\x61\0"s, "\0a"s}, "UTF-16"), ElementsAre(0, 1, 2),
                ElementsAre(97, 97), ElementsAre(0, 0));
  ExpectDecoded(Decode({"\x82\xA0"}, "shift_jis"), ElementsAre(0, 1), ElementsAre(12354),
                ElementsAre(0));
  EXPECT_THAT(Decode({"a"}, "nope").status().message(),
              HasSubstr("Could not create converter for input encoding: 'nope'"));
  EXPECT_FALSE(Decode({"a"}, "").ok());
  // A byte order mark, or an escape sequence back to ASCII, is not a code point of its own.
  ExpectDecoded(Decode({"\xFF\xFE", "\0b"s}, "UTF-16", {{"errors", "strict"}}),
                ElementsAre(0, 0, 1), ElementsAre(98), ElementsAre(0));
  ExpectDecoded(Decode({"a\x1B$B$\"\x1B(B"}, "ISO-2022-JP", {{"errors", "strict"}}),
                ElementsAre(0, 2), ElementsAre(97, 12354), ElementsAre(0, 1));
}

Strings Transcode(const std::string& encoding, const Attrs& attrs = {}) {
  OpRunner run("UnicodeTranscode");
  for (const auto& [name, value] : attrs) run.Attr(name, value);
  const auto texts = run.In(Tensor::Vector(kTexts))
                         .Attr("input_encoding", "UTF-8")
                         .Attr("output_encoding", encoding)
                         .Run1();
  EXPECT_TRUE(texts.ok()) << texts.status();
  const auto flat = texts->flat<std::string>();
  return {flat.begin(), flat.end()};
}

TEST(UnicodeTranscode, Encodes) {
  using namespace std::string_literals;  // NOLINT: strings with zero bytes
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_THAT(Transcode("UTF-8"), ElementsAre(kTexts[0], "", "x" + bad + "y" + bad, kTexts[3],
                                              bad + bad + bad + "q", bad));
  const Strings utf16 = Transcode("UTF-16-BE");
  EXPECT_EQ(utf16[0], "\0a\0\xE9N-\xD8=\xDE\0"s);
  EXPECT_EQ(Transcode("UTF-32-BE")[0], "\0\0\0a\0\0\0\xE9\0\0N-\0\x01\xF6\0"s);
  EXPECT_THAT(
      Transcode("UTF-8", {{"replacement_char", int64_t{32}}, {"replace_control_characters", true}}),
      ElementsAre(kTexts[0], "", "x y ", " \x7F\xC2\x85z", "   q", " "));
}

TEST(UnicodeTranscode, StrictRefusesControlsThatAreReplaced) {
  const auto transcode = [](const char* op, bool replace_controls) {
    OpRunner run(op);
    run.In(Tensor::Vector<std::string>({"a\x01"})).Attr("input_encoding", "UTF-8");
    if (op == std::string("UnicodeTranscode")) run.Attr("output_encoding", "UTF-8");
    return run.Attr("errors", "strict")
        .Attr("replace_control_characters", replace_controls)
        .Run()
        .status();
  };
  EXPECT_EQ(transcode("UnicodeTranscode", false), OkStatus());
  EXPECT_THAT(transcode("UnicodeTranscode", true).message(), HasSubstr("byte 1"));
  EXPECT_EQ(transcode("UnicodeDecode", true), OkStatus());
}

StatusOr<Tensor> Encode(const std::vector<int64_t>& splits, const std::string& errors) {
  return OpRunner("UnicodeEncode")
      .In(Tensor::Vector<int32_t>({97, 0x1F600, 0xD800, 0x110000, -1, 0, 65}))
      .In(Tensor::Vector(splits))
      .Attr("output_encoding", "UTF-8")
      .Attr("errors", errors)
      .Run1();
}

TEST(UnicodeEncode, Encodes) {
  using namespace std::string_literals;  // NOLINT: strings with zero bytes
  const auto ignored = Encode({0, 2, 2, 7}, "ignore");
  ASSERT_TRUE(ignored.ok()) << ignored.status();
  EXPECT_THAT(ignored->flat<std::string>(), ElementsAre("a\xF0\x9F\x98\x80", "", "\0A"s));
  const auto replaced = Encode({0, 2, 2, 7}, "replace");
  ASSERT_TRUE(replaced.ok()) << replaced.status();
  EXPECT_EQ(replaced->flat<std::string>()[2], "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\0A"s);
}

TEST(UnicodeEncode, MistakesAreNamed) {
  const auto mistake = [](const std::vector<int64_t>& splits) {
    return std::string(Encode(splits, "replace").status().message());
  };
  EXPECT_THAT(mistake({1, 7}), HasSubstr("First value in input_splits"));
  EXPECT_THAT(mistake({0, 8}), HasSubstr("Last value in input_splits must be 7"));
  EXPECT_THAT(mistake({0, 9, 7}), HasSubstr("must not fall"));
  EXPECT_THAT(mistake({}), HasSubstr("input_splits"));
  EXPECT_THAT(Encode({0, 7}, "strict").status().message(), HasSubstr("input_values[2] is 55296"));
}

TEST(UnicodeScript, IsIcus) {
  const auto scripts =
      OpRunner("UnicodeScript")
          .In(Tensor::Vector<int32_t>({97, 0x3B1, 0x4E2D, 0x661, -1, 0x110000, 0x1F600, 0xD800}))
          .Run1();
  ASSERT_TRUE(scripts.ok()) << scripts.status();
  EXPECT_THAT(scripts->flat<int32_t>(), ElementsAre(25, 14, 17, 2, -1, -1, 0, 103));
}

}  // namespace
}  // namespace penstock

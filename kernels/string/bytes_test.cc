// SPDX-License-Identifier: Apache-2.0
//
// Tests ops on the bytes of strings. The expected values are those of TensorFlow 2.21.
#include <zlib.h>

#include "kernels/array/testing/golden.h"

namespace penstock {
namespace {

using namespace golden;  // NOLINT: the tables below use its names

Tensor Method(const char* name = "farmhash64") { return S({}, {name}); }

TEST(Fingerprint, IsTensorFlows) {
  ExpectOutputs(
      {"Fingerprint", {I({2, 2}, {1, 2, 3, 4}), Method()}},
      {U8({2, 8}, {76, 18, 253, 133, 168, 204, 240, 10, 254, 162, 60, 240, 103, 244, 53, 255})});
  ExpectOutputs(
      {"Fingerprint", {S({2}, {"abc", "d"}), Method()}},
      {U8({2, 8}, {105, 243, 231, 116, 160, 179, 165, 36, 33, 154, 125, 149, 99, 228, 10, 62})});
  ExpectOutputs({"Fingerprint", {S({1, 2}, {"abc", "d"}), Method()}},
                {U8({1, 8}, {42, 36, 211, 10, 152, 245, 170, 130})});
  ExpectOutputs({"Fingerprint", {F({0, 3}, {}), Method()}}, {U8({0, 8}, {})});
  ExpectOutputs({"Fingerprint", {F({1, 0}, {}), Method()}},
                {U8({1, 8}, {79, 64, 144, 47, 59, 106, 225, 154})});
  OpCall{"Fingerprint", {I({}, {3}), Method()}}.ExpectError("should have at least one dimension");
  OpCall{"Fingerprint", {I({1}, {3}), Method("xx")}}.ExpectError(
      "Unsupported fingerprint method: xx");
}

TEST(UnsortedSegmentJoin, JoinsRows) {
  const auto join = [](Tensor inputs, Tensor ids, int32_t segments) {
    return OpCall{"UnsortedSegmentJoin",
                  {std::move(inputs), std::move(ids), I({}, {segments})},
                  {{"separator", ":"}}};
  };
  const Tensor three = S({3}, {"a", "b", "c"}), square = S({2, 2}, {"a", "b", "c", "d"});
  ExpectOutputs(join(three, I({3}, {0, 2, 0}), 3), {S({3}, {"a:c", "", "b"})});
  ExpectOutputs(join(square, L({2}, {1, 0}), 2), {S({2, 2}, {"c", "d", "a", "b"})});
  ExpectOutputs(join(square, I({2}, {1, 1}), 2), {S({2, 2}, {"", "", "a:c", "b:d"})});
  ExpectOutputs(join(square, I({2, 2}, {1, 1, 0, 1}), 2), {S({2}, {"c", "a:b:d"})});
  ExpectOutputs(join(S({2}, {"", ""}), I({2}, {0, 0}), 1), {S({1}, {":"})});
  join(three, I({3}, {0, -1, 0}), 3).ExpectError("negative values");
  join(three, I({3}, {0, 3, 0}), 3).ExpectError("exceed num_segments");
  join(three, I({2}, {0, 1}), 3).ExpectError("Segment dimension is 2 while input dimension is 3");
  join(three, I({3}, {0, 1, 1}), -3).ExpectError("-3");
  join(S({}, {"a"}), I({}, {0}), 2).ExpectError("Segment_id cannot have rank 0");
}

TEST(DecodePaddedRaw, CutsAndPads) {
  const auto decode = [](Tensor bytes, int32_t length, DType type, bool little = true) {
    return OpCall{"DecodePaddedRaw",
                  {std::move(bytes), I({}, {length})},
                  {{"out_type", type}, {"little_endian", little}}};
  };
  ExpectOutputs(decode(S({3}, {"abcd", "a", ""}), 4, DType::kUint8),
                {U8({3, 4}, {97, 98, 99, 100, 97, 0, 0, 0, 0, 0, 0, 0})});
  const Tensor texts = S({3}, {"abcdefgh", "abc", ""});
  ExpectOutputs(decode(texts, 4, DType::kUint16, false),
                {U16({3, 2}, {24930, 25444, 24930, 25344, 0, 0})});
  ExpectOutputs(decode(texts, 4, DType::kUint16), {U16({3, 2}, {25185, 25699, 25185, 99, 0, 0})});
  ExpectOutputs(decode(S({}, {"abcdefgh"}), 10, DType::kUint16),
                {U16({5}, {25185, 25699, 26213, 26727, 0})});
  decode(texts, 3, DType::kUint16)
      .ExpectError("fixed_length (3) must be a multiple of the size of out_type (2)");
  decode(texts, 0, DType::kUint16).ExpectError("fixed_length (0) must be greater than zero.");
}

std::string Compressed(const std::string& text, bool gzip) {
  z_stream zlib = {};
  CHECK(deflateInit2(&zlib, 6, Z_DEFLATED, MAX_WBITS + (gzip ? 16 : 0), 8, 0) == Z_OK);
  std::string out(1000, '\0');
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  zlib.avail_in = static_cast<uInt>(text.size());
  zlib.next_out = reinterpret_cast<Bytef*>(out.data());
  zlib.avail_out = static_cast<uInt>(out.size());
  CHECK(deflate(&zlib, Z_FINISH) == Z_STREAM_END);
  out.resize(out.size() - zlib.avail_out);
  deflateEnd(&zlib);
  return out;
}

TEST(DecodeCompressed, Decompresses) {
  const std::string text(100'000, 'x'), zlib = Compressed(text, false),
                                        gzip = Compressed("hello", true);
  const auto decode = [](std::vector<std::string> bytes, const char* type) {
    return OpCall{"DecodeCompressed", {Tensor::Vector(bytes)}, {{"compression_type", type}}};
  };
  ExpectOutputs(decode({zlib, ""}, "ZLIB"), {S({2}, {text, ""})});
  ExpectOutputs(decode({gzip + gzip}, "GZIP"), {S({1}, {"hellohello"})});
  ExpectOutputs(decode({"junk"}, ""), {S({1}, {"junk"})});
  decode({"junk"}, "GZIP").ExpectError("inflate() failed with error -3: incorrect header check");
  decode({zlib.substr(0, zlib.size() / 2)}, "ZLIB").ExpectError("the data end too early");
  decode({"junk"}, "SNAPPY").ExpectError("Only ZLIB, GZIP or NONE are supported");
}

TEST(StringCase, OfUtf8) {
  const auto change = [](const char* op, const char* encoding, const std::string& text) {
    return OpCall{op, {S({1}, {text})}, {{"encoding", encoding}}};
  };
  ExpectOutputs(change("StringLower", "utf-8", "ÀÉǄσΣ"), {S({1}, {"àéǆσς"})});
  ExpectOutputs(change("StringUpper", "utf-8", "àéßﬁ i"), {S({1}, {"ÀÉSSFI I"})});
  ExpectOutputs(change("StringLower", "utf-8",
                       "\xff\xfe"
                       "AB"),
                {S({1}, {"\xef\xbf\xbd\xef\xbf\xbd"
                         "ab"})});
  ExpectOutputs(change("StringLower", "", "ÀB"), {S({1}, {"Àb"})});
  change("StringUpper", "latin-1", "a").ExpectError("only utf-8");
}

}  // namespace
}  // namespace penstock

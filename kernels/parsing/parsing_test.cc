// SPDX-License-Identifier: Apache-2.0
//
// Tests ParseExample and similar ops, DecodeCSV, DecodeJSONExample, SerializeTensor, ParseTensor.
// Values and error texts are those of TensorFlow 2.21 for the same calls.
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <random>

#include "core/op/testing/op_runner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/tensorflow/example.pb.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

tensorflow::Feature Floats(std::vector<float> values) {
  tensorflow::Feature feature;
  for (const float v : values) feature.mutable_float_list()->add_value(v);
  return feature;
}
tensorflow::Feature Longs(std::vector<int64_t> values) {
  tensorflow::Feature feature;
  for (const int64_t v : values) feature.mutable_int64_list()->add_value(v);
  return feature;
}
tensorflow::Feature Bytes(std::vector<std::string> values) {
  tensorflow::Feature feature;
  feature.mutable_bytes_list();
  for (const std::string& v : values) feature.mutable_bytes_list()->add_value(v);
  return feature;
}

std::string RecordA() {
  tensorflow::Example example;
  auto& features = *example.mutable_features()->mutable_feature();
  features["x"] = Floats({1, 2});
  features["y"] = Longs({3});
  features["s"] = Bytes({"a", "b"});
  return example.SerializeAsString();
}
std::string RecordB() {
  tensorflow::Example example;
  auto& features = *example.mutable_features()->mutable_feature();
  features["x"] = Floats({5, 6});
  features["s"] = Bytes({"c"});
  features["none"];  // a feature without a kind counts as missing
  return example.SerializeAsString();
}

Tensor Strings(std::vector<std::string> values) { return Tensor::Vector<std::string>(values); }

// One call of ParseExampleV2.
struct Call {
  Tensor serialized = Strings({RecordA(), RecordB()});
  std::vector<std::string> names = {}, sparse = {}, dense = {}, ragged = {};
  std::vector<DType> sparse_types = {};
  std::vector<Tensor> defaults = {};
  std::vector<PartialShape> shapes = {};
  std::vector<DType> ragged_types = {}, split_types = {};

  StatusOr<std::vector<Tensor>> Run() const {
    std::vector<DType> dense_types;
    for (const Tensor& value : defaults) dense_types.push_back(value.dtype());
    return OpRunner("ParseExampleV2")
        .In(serialized)
        .In(Strings(names))
        .In(Strings(sparse))
        .In(Strings(dense))
        .In(Strings(ragged))
        .InList(defaults)
        .Attr("num_sparse", static_cast<int64_t>(sparse.size()))
        .Attr("sparse_types", sparse_types)
        .Attr("Tdense", dense_types)
        .Attr("dense_shapes", shapes)
        .Attr("ragged_value_types", ragged_types)
        .Attr("ragged_split_types", split_types)
        .Run();
  }
  std::vector<Tensor> Get() const {
    auto outputs = Run();
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    return outputs.ok() ? *outputs : std::vector<Tensor>(9, Tensor::Scalar(0.f));
  }
  void ExpectError(const char* words) const {
    const auto outputs = Run();
    EXPECT_EQ(outputs.status().code(), StatusCode::kInvalidArgument) << words;
    EXPECT_THAT(std::string(outputs.status().message()), HasSubstr(words));
  }
};

template <class T>
Tensor Empty() {
  return Tensor::Vector<T>({});
}

TEST(ParseExampleTest, DenseFeatures) {
  const Call call = {.dense = {"x", "y"},
                     .defaults = {Empty<float>(), Tensor::Vector<int64_t>({7})},
                     .shapes = {{2}, {1}}};
  const auto out = call.Get();
  EXPECT_EQ(out[0].shape(), Shape({2, 2}));
  EXPECT_THAT(out[0].flat<float>(), ElementsAre(1, 2, 5, 6));
  EXPECT_EQ(out[1].shape(), Shape({2, 1}));
  EXPECT_THAT(out[1].flat<int64_t>(), ElementsAre(3, 7));
}

TEST(ParseExampleTest, DenseFeaturesOfVariableLengthArePadded) {
  const Call call = {
      .dense = {"s", "x", "y"},
      .defaults = {Strings({"pad"}), Tensor::Vector<float>({0.5}), Tensor::Vector<int64_t>({7})},
      .shapes = {{-1}, {-1, 2}, {-1}}};
  const auto out = call.Get();
  EXPECT_EQ(out[0].shape(), Shape({2, 2}));
  EXPECT_THAT(out[0].flat<std::string>(), ElementsAre("a", "b", "c", "pad"));
  EXPECT_EQ(out[1].shape(), Shape({2, 1, 2}));
  EXPECT_THAT(out[2].flat<int64_t>(), ElementsAre(3, 7));
}

TEST(ParseExampleTest, SparseFeatures) {
  const Call call = {.sparse = {"q", "s"}, .sparse_types = {DType::kInt64, DType::kString}};
  const auto out = call.Get();  // indices, indices, values, values, shape, shape
  EXPECT_EQ(out[0].shape(), Shape({0, 2}));
  EXPECT_THAT(out[1].flat<int64_t>(), ElementsAre(0, 0, 0, 1, 1, 0));
  EXPECT_EQ(out[2].shape(), Shape({0}));
  EXPECT_THAT(out[3].flat<std::string>(), ElementsAre("a", "b", "c"));
  EXPECT_THAT(out[4].flat<int64_t>(), ElementsAre(2, 0));
  EXPECT_THAT(out[5].flat<int64_t>(), ElementsAre(2, 2));
}

TEST(ParseExampleTest, RaggedFeatures) {
  Call call = {.ragged = {"s", "y"},
               .ragged_types = {DType::kString, DType::kInt64},
               .split_types = {DType::kInt32, DType::kInt64}};
  auto out = call.Get();
  EXPECT_THAT(out[0].flat<std::string>(), ElementsAre("a", "b", "c"));
  EXPECT_THAT(out[1].flat<int64_t>(), ElementsAre(3));
  EXPECT_THAT(out[2].flat<int32_t>(), ElementsAre(0, 2, 3));
  EXPECT_THAT(out[3].flat<int64_t>(), ElementsAre(0, 1, 1));

  call.serialized = Tensor::Scalar<std::string>(RecordA());
  out = call.Get();
  EXPECT_THAT(out[0].flat<std::string>(), ElementsAre("a", "b"));
  EXPECT_EQ(out[2].shape(), Shape({0}));
}

TEST(ParseExampleTest, OneRecordAloneHasNoLeadingDimension) {
  const Call call = {.serialized = Tensor::Scalar<std::string>(RecordA()),
                     .sparse = {"s"},
                     .dense = {"x"},
                     .sparse_types = {DType::kString},
                     .defaults = {Empty<float>()},
                     .shapes = {{2}}};
  const auto out = call.Get();
  EXPECT_EQ(out[0].shape(), Shape({2, 1}));
  EXPECT_THAT(out[2].flat<int64_t>(), ElementsAre(2));
  EXPECT_THAT(out[3].flat<float>(), ElementsAre(1, 2));
  const auto single = OpRunner("ParseSingleExample")
                          .In(Tensor::Scalar<std::string>(RecordA()))
                          .InList({Empty<float>()})
                          .Attr("num_sparse", 1)
                          .Attr("sparse_keys", std::vector<std::string>{"s"})
                          .Attr("dense_keys", std::vector<std::string>{"x"})
                          .Attr("sparse_types", std::vector<DType>{DType::kString})
                          .Attr("dense_shapes", std::vector<PartialShape>{{2}})
                          .Run();
  ASSERT_TRUE(single.ok()) << single.status();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(AttrValue((*single)[i]), AttrValue(out[i])) << i;
}

TEST(ParseExampleTest, KeysAsInputs) {
  const auto out = OpRunner("ParseExample")
                       .In(Strings({RecordA(), RecordB()}))
                       .In(Strings({}))
                       .InList({Tensor::Scalar<std::string>("s")})
                       .InList({Tensor::Scalar<std::string>("x")})
                       .InList({Empty<float>()})
                       .Attr("sparse_types", std::vector<DType>{DType::kString})
                       .Attr("dense_shapes", std::vector<PartialShape>{{2}})
                       .Run();
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT((*out)[1].flat<std::string>(), ElementsAre("a", "b", "c"));
  EXPECT_THAT((*out)[3].flat<float>(), ElementsAre(1, 2, 5, 6));
}

TEST(ParseExampleTest, MistakesNameRowAndKey) {
  const auto y = [](Tensor value, PartialShape shape) {
    return Call{.dense = {"y"}, .defaults = {std::move(value)}, .shapes = {std::move(shape)}};
  };
  Call named = y(Empty<int64_t>(), {1});
  named.ExpectError(
      "Name: <unknown>, Feature: y (data type: int64) is required but could not be found.");
  named.names = {"n", "m"};
  named.ExpectError("Name: m, Feature: y");
  named.names = {"n", "m", "o"};
  named.ExpectError("names has 3 elements, serialized 2");
  y(Empty<float>(), {1})
      .ExpectError(
          "Name: <unknown>, Key: y, Index: 0.  Data types don't match. Data type: int64 but "
          "expected "
          "type: float");
  y(Tensor::Vector<int64_t>({1, 2, 3}), {3})
      .ExpectError(
          "Key: y, Index: 0.  Number of int64 values != expected.  Values size: 1 but output "
          "shape: "
          "[3]");
  y(Tensor::Vector<int64_t>({7, 8}), {1})
      .ExpectError("def_value[0].shape() == [2] is not compatible with dense_shapes_[0] == [1]");
  y(Empty<int64_t>(), {-1}).ExpectError("dense_shape[0] is a variable length shape: [?]");
  y(Empty<int64_t>(), {2, -1}).ExpectError("only the first dimension may be unknown");
  Call{.dense = {"s"}, .defaults = {Strings({"p"})}, .shapes = {{-1, 2}}}.ExpectError(
      "Key: s, Index: 1.  Number of string values is not a multiple of stride length. Saw 1 values "
      "but output shape is: [?,2]");
  Call{.serialized = Strings({RecordA(), RecordA().substr(1)})}.ExpectError(
      "Index: 1: Could not parse example input");
  Call{.sparse = {"s"}}.ExpectError("num_sparse is 1, there are 0 sparse_types");
}

// Reads feature "x" with protobuf. Returns nullopt if the feature is not a list of floats.
std::optional<std::vector<float>> FloatsOf(const tensorflow::Example& example) {
  const auto& features = example.features().feature();
  const auto x = features.find("x");
  if (x == features.end() || x->second.kind_case() == tensorflow::Feature::KIND_NOT_SET) {
    return std::vector<float>{};
  }
  if (!x->second.has_float_list()) return std::nullopt;
  const auto& list = x->second.float_list().value();
  return std::vector<float>(list.begin(), list.end());
}

TEST(ParseExampleTest, DamagedRecordsAreWhatProtobufMakesOfThem) {
  const google::protobuf::LogSilencer quiet;  // silences errors about bad UTF-8
  std::mt19937 random(3);
  const std::string good = RecordA();
  int compared = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string bytes = good;
    for (int n = random() % 4; n >= 0; --n) {
      const size_t place = random() % bytes.size();
      bytes[place] = static_cast<char>(random());
    }
    const Call call = {.serialized = Strings({bytes}),
                       .dense = {"x"},
                       .defaults = {Tensor::Vector<float>({0})},
                       .shapes = {{-1}}};
    const auto out = call.Run();
    if (!out.ok()) {
      EXPECT_EQ(out.status().code(), StatusCode::kInvalidArgument);
    }
    tensorflow::Example example;
    if (!example.ParseFromString(bytes)) continue;
    const auto expected = FloatsOf(example);
    EXPECT_EQ(out.ok(), expected.has_value()) << i << ": " << out.status();
    if (!out.ok() || !expected) continue;
    const auto floats = (*out)[0].flat<float>();
    const auto same_bits = [](float a, float b) { return memcmp(&a, &b, sizeof a) == 0; };
    EXPECT_TRUE(
        std::equal(floats.begin(), floats.end(), expected->begin(), expected->end(), same_bits))
        << i;
    ++compared;
  }
  EXPECT_GT(compared, 200);  // about 500: the order of features varies
}

TEST(ParseExampleTest, NumbersNeedNotBePacked) {
  const auto field = [](char tag, const std::string& bytes) {  // length-delimited
    return std::string{tag, static_cast<char>(bytes.size())} + bytes;
  };
  const std::string one = {0, 0, char(0x80), 0x3f};
  // Two lists of one feature are concatenated; packed values may be mixed with others.
  const std::string floats = field(0x12, "\x0d" + one) + field(0x12, field(0x0a, one + one));
  const std::string ints = field(0x1a, {0x08, 7, 0x0a, 2, 8, 9, 0x08, char(0x96), 1});
  const std::string example = field(0x0a, field(0x0a, field(0x0a, "f") + field(0x12, floats)) +
                                              field(0x0a, field(0x0a, "i") + field(0x12, ints)));
  Call call = {.serialized = Strings({example}),
               .dense = {"f", "i"},
               .defaults = {Tensor::Vector<float>({0}), Tensor::Vector<int64_t>({0})},
               .shapes = {{-1}, {-1}}};
  const auto out = call.Get();
  EXPECT_THAT(out[0].flat<float>(), ElementsAre(1, 1, 1));
  EXPECT_THAT(out[1].flat<int64_t>(), ElementsAre(7, 8, 9, 150));
}

TEST(ParseExampleTest, AFeatureThatNobodyAsksForMayHoldAnything) {
  std::string bytes = RecordA();
  // Puts the end of a group that never began into the floats of x.
  bytes[bytes.find("\x12\x0a\x0a\x08") + 2] = 0x7f;
  Call call = {.serialized = Strings({bytes}),
               .dense = {"y"},
               .defaults = {Empty<int64_t>()},
               .shapes = {{1}}};
  EXPECT_THAT(call.Get()[0].flat<int64_t>(), ElementsAre(3));
  call.dense = {"x"};
  call.defaults = {Empty<float>()};
  call.ExpectError(
      "Index: 0: Could not parse example input: the 12 bytes are no tensorflow.Feature");
}

class SequenceTest : public testing::Test {
 protected:
  SequenceTest() {
    (*record_.mutable_context()->mutable_feature())["c"] = Longs({9});
    auto& lists = *record_.mutable_feature_lists()->mutable_feature_list();
    *lists["d"].add_feature() = Floats({1, 2});
    *lists["d"].add_feature() = Floats({3, 4});
    for (const auto& step : {Bytes({"q"}), Bytes({}), Bytes({"r", "s"})}) {
      *lists["v"].add_feature() = step;
    }
  }

  StatusOr<std::vector<Tensor>> Parse(const std::string& dense, DType dtype, PartialShape shape,
                                      std::vector<std::string> may_miss = {}) {
    const auto key = [](const char* name) { return Tensor::Scalar<std::string>(name); };
    return OpRunner("ParseSingleSequenceExample")
        .In(Tensor::Scalar(record_.SerializeAsString()))
        .In(Strings(may_miss))
        .InList({key("c")})
        .InList({key("c")})
        .InList({key("v"), key("none")})
        .InList({key(dense.c_str())})
        .InList({Empty<int64_t>()})
        .In(key("nm"))
        .Attr("context_sparse_types", std::vector<DType>{DType::kInt64})
        .Attr("context_dense_shapes", std::vector<PartialShape>{{1}})
        .Attr("feature_list_sparse_types", std::vector<DType>{DType::kString, DType::kInt64})
        .Attr("feature_list_dense_types", std::vector<DType>{dtype})
        .Attr("feature_list_dense_shapes", std::vector<PartialShape>{shape})
        .Run();
  }

  tensorflow::SequenceExample record_;
};

TEST_F(SequenceTest, ContextAndLists) {
  const auto found = Parse("d", DType::kFloat, {2});
  ASSERT_TRUE(found.ok()) << found.status();
  const std::vector<Tensor>& out = *found;
  EXPECT_THAT(out[1].flat<int64_t>(), ElementsAre(9));  // the sparse feature of the context
  EXPECT_THAT(out[2].flat<int64_t>(), ElementsAre(1));
  EXPECT_THAT(out[3].flat<int64_t>(), ElementsAre(9));  // the dense feature of the context
  EXPECT_THAT(out[4].flat<int64_t>(), ElementsAre(0, 0, 2, 0, 2, 1));
  EXPECT_EQ(out[5].shape(), Shape({0, 2}));
  EXPECT_THAT(out[6].flat<std::string>(), ElementsAre("q", "r", "s"));
  EXPECT_THAT(out[8].flat<int64_t>(), ElementsAre(3, 2));
  EXPECT_THAT(out[9].flat<int64_t>(), ElementsAre(0, 0));
  EXPECT_EQ(out[10].shape(), Shape({2, 2}));
  EXPECT_THAT(out[10].flat<float>(), ElementsAre(1, 2, 3, 4));
}

TEST_F(SequenceTest, MissingLists) {
  const auto missing = Parse("zz", DType::kFloat, {2});
  EXPECT_THAT(std::string(missing.status().message()),
              HasSubstr("Name: nm, Feature list 'zz' is required but could not be found.  Did you "
                        "mean to include it in feature_list_dense_missing_assumed_empty"));
  const auto empty = Parse("zz", DType::kFloat, {2}, {"zz"});
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_EQ((*empty)[10].shape(), Shape({0, 2}));
}

TEST_F(SequenceTest, Mistakes) {
  EXPECT_THAT(
      std::string(Parse("d", DType::kFloat, {3}).status().message()),
      HasSubstr("Name: nm, Feature list: d, Index: 0.  Number of float values != expected.  "
                "Values size: 2 but output shape: [3]"));
  EXPECT_THAT(std::string(Parse("d", DType::kInt64, {2}).status().message()),
              HasSubstr("Data types don't match"));
}

StatusOr<std::vector<Tensor>> Csv(const std::string& record) {
  return OpRunner("DecodeCSV")
      .In(Strings({record}))
      .InList({Empty<int32_t>(), Tensor::Vector<float>({1.5}), Strings({"dd"})})
      .Run();
}

TEST(DecodeCsvTest, Records) {
  struct {
    const char* record;
    int32_t a;
    float b;
    const char* c;
  } const cases[] = {
      {"1,2.5,x", 1, 2.5, "x"},
      {"1,,", 1, 1.5, "dd"},
      {"\"1\",\"2\",\"a\"\"b\"", 1, 2, "a\"b"},
      {" 1, 2 ,c", 1, 2, "c"},
      {"1,2,\"a\nb,\"", 1, 2, "a\nb,"},
  };
  for (const auto& c : cases) {
    const auto out = Csv(c.record);
    ASSERT_TRUE(out.ok()) << c.record << ": " << out.status();
    EXPECT_EQ((*out)[0].scalar<int32_t>(), c.a);
    EXPECT_EQ((*out)[1].scalar<float>(), c.b);
    EXPECT_EQ((*out)[2].scalar<std::string>(), c.c);
  }
}

TEST(DecodeCsvTest, BadRecords) {
  const std::pair<const char*, const char*> cases[] = {
      {"1,2", "Expect 3 fields but have 2 in record 0"},
      {"1,2,3,4", "Expect 3 fields but have 4 in record 0"},
      {"", "Expect 3 fields but have 0 in record 0"},
      {"x,2,3", "Field 0 in record 0 is not a valid int32: x"},
      {"99999999999,2,c", "Field 0 in record 0 is not a valid int32: 99999999999"},
      {",2,3", "Field 0 is required but missing in record 0!"},
      {"1,2,a\"b", "Unquoted fields cannot have quotes/CRLFs inside"},
      {"1,2,c\r\n", "Unquoted fields cannot have quotes/CRLFs inside"},
      {"1,2,\"ab", "Quoted field has to end with quote followed by delim or end"},
      {"1,2,\"ab\"c", "Quote inside a string has to be escaped by another quote"},
  };
  for (const auto& [record, words] : cases) {
    EXPECT_THAT(std::string(Csv(record).status().message()), HasSubstr(words)) << record;
  }
}

TEST(DecodeCsvTest, Attributes) {
  const auto run = [](const char* record, Attrs attrs) {
    OpRunner op("DecodeCSV");
    op.In(Strings({record})).InList({Tensor::Vector<int32_t>({4}), Strings({"dd"})});
    for (const auto& [name, value] : attrs) op.Attr(name, value);
    return op.Run();
  };
  auto out = run("NA;z", {{"field_delim", ";"}, {"na_value", "NA"}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].scalar<int32_t>(), 4);
  out = run("1,2,3,4", {{"select_cols", std::vector<int64_t>{0, 2}}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[1].scalar<std::string>(), "3");
  out = run("1,\"2", {{"use_quote_delim", false}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[1].scalar<std::string>(), "\"2");
  const auto error = [&](Attrs attrs) {
    return std::string(run("1,2", std::move(attrs)).status().message());
  };
  EXPECT_THAT(error({{"select_cols", std::vector<int64_t>{2, 0}}}),
              HasSubstr("strictly increasing"));
  EXPECT_THAT(error({{"select_cols", std::vector<int64_t>{0, 5}}}),
              HasSubstr("Expect 2 fields but have 1 in record 0"));
  EXPECT_THAT(error({{"field_delim", ",,"}}), HasSubstr("field_delim should be only 1 char"));
}

// Two records, with lists of two steps and of one step.
class SequenceBatchTest : public testing::Test {
 protected:
  static std::string Record(const std::vector<tensorflow::Feature>& steps) {
    tensorflow::SequenceExample record;
    auto& lists = *record.mutable_feature_lists()->mutable_feature_list();
    for (const auto& step : steps) *lists["x"].add_feature() = step;
    return record.SerializeAsString();
  }
  static OpRunner Parse(const char* kind, std::vector<std::string> records) {
    const bool dense = kind == std::string("dense");
    OpRunner run("ParseSequenceExample");
    run.In(Strings(std::move(records)))
        .In(Strings({}))
        .InList({})
        .Attr(StrCat("Nfeature_list_", kind), int64_t{1})
        .Attr(StrCat("feature_list_", kind, "_keys"), std::vector<std::string>{"x"})
        .Attr(StrCat("feature_list_", kind, "_types"), std::vector<DType>{DType::kFloat});
    if (dense) run.Attr("feature_list_dense_shapes", std::vector<PartialShape>{{2}});
    return run;
  }
  static void ExpectError(OpRunner run, const char* words) {
    const auto outputs = run.Run();
    EXPECT_EQ(outputs.status().code(), StatusCode::kInvalidArgument) << words;
    EXPECT_THAT(std::string(outputs.status().message()), HasSubstr(words));
  }
  const std::string two_ = Record({Floats({1, 2}), Floats({3, 4})}),
                    one_ = Record({Floats({5, 6})});
};

TEST_F(SequenceBatchTest, DenseListsArePaddedToTheLongest) {
  const auto out = *Parse("dense", {one_, two_}).Run();
  EXPECT_EQ(out[0].shape(), (Shape{2, 2, 2}));
  EXPECT_THAT(out[0].flat<float>(), ElementsAre(5, 6, 0, 0, 1, 2, 3, 4));
  EXPECT_THAT(out[1].flat<int64_t>(), ElementsAre(1, 2));
}

TEST_F(SequenceBatchTest, SparseListsHaveRecordStepAndPlace) {
  const auto out = *Parse("sparse", {one_, Record({Floats({}), Floats({7})})}).Run();
  EXPECT_THAT(out[0].flat<int64_t>(), ElementsAre(0, 0, 0, 0, 0, 1, 1, 1, 0));
  EXPECT_THAT(out[1].flat<float>(), ElementsAre(5, 6, 7));
  EXPECT_THAT(out[2].flat<int64_t>(), ElementsAre(2, 2, 2));
}

TEST_F(SequenceBatchTest, MistakesNameRecordListAndStep) {
  ExpectError(Parse("dense", {two_, Record({})}), "Feature list 'x' is required");
  ExpectError(Parse("dense", {two_, Record({Floats({1, 2}), Floats({1})})}),
              "Feature list: x, Index: 1.  Number of float values != expected.  Values size: 1 but "
              "output shape: [2]");
  ExpectError(Parse("dense", {Record({Longs({1, 2})})}),
              "Index: 0.  Data types don't match. Data type: int64 but expected type: float");
  ExpectError(Parse("sparse", {two_, two_.substr(1)}), "Index: 1: Could not parse");
  ExpectError(Parse("sparse", {two_}).Attr("Nfeature_list_dense", int64_t{1}),
              "Nfeature_list_dense is 1");
}

TEST(SerializeTensorTest, ParseTensorReadsItBack) {
  for (const Tensor& tensor :
       {Tensor::Of<float>({2, 2}, {1, 2, 3, 4}), Strings({"a", "", "bc"}), Empty<int64_t>()}) {
    const auto bytes = OpRunner("SerializeTensor").In(tensor).Run1();
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    const auto back = OpRunner("ParseTensor").In(*bytes).Attr("out_type", tensor.dtype()).Run1();
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->shape(), tensor.shape());
    EXPECT_EQ(back->ToString(), tensor.ToString());
    const auto other = OpRunner("ParseTensor").In(*bytes).Attr("out_type", DType::kInt8).Run1();
    EXPECT_THAT(std::string(other.status().message()), HasSubstr("Type mismatch"));
  }
  const auto bad = OpRunner("ParseTensor")
                       .In(Tensor::Scalar<std::string>("\xff\xff"))
                       .Attr("out_type", DType::kFloat)
                       .Run1();
  EXPECT_EQ(bad.status().code(), StatusCode::kInvalidArgument) << bad.status();
}

TEST(DecodeJsonExampleTest, IsTheSameRecord) {
  const char* const json =
      R"({"features": {"feature": {"x": {"floatList": {"value": [1, 2]}},
          "y": {"int64List": {"value": ["3"]}},
          "s": {"bytesList": {"value": ["YQ==", "Yg=="]}}}}})";
  const auto bytes = OpRunner("DecodeJSONExample").In(Strings({json})).Run1();
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  tensorflow::Example example, expected;
  ASSERT_TRUE(example.ParseFromString(bytes->scalar<std::string>()));
  ASSERT_TRUE(expected.ParseFromString(RecordA()));
  EXPECT_EQ(example.DebugString(), expected.DebugString());
  const auto bad = OpRunner("DecodeJSONExample").In(Strings({"{x"})).Run1();
  EXPECT_THAT(std::string(bad.status().message()), HasSubstr("Error while parsing JSON Example 0"));
}

}  // namespace
}  // namespace penstock

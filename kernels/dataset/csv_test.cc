// SPDX-License-Identifier: Apache-2.0
//
// Tests CSVDataset. The expected elements are those of TensorFlow 2.21.
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/dataset/testing/iterate.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Csv {
  std::string text;
  std::vector<Tensor> defaults;
  bool header = false;
  std::string na_value = "";
  std::vector<int64_t> select = {}, exclude = {};
  std::string delimiter = ",";

  StatusOr<Tensor> Make() const {
    const std::string path = testing::TempDir() + "/records.csv";
    std::ofstream(path) << text;
    std::vector<DType> types;
    for (const Tensor& value : defaults) types.push_back(value.dtype());
    return DatasetRunner("CSVDatasetV2", types, std::vector<PartialShape>(types.size()))
        .In(Tensor::Vector<std::string>({path}))
        .In(Tensor::Scalar<std::string>(""))
        .In(Int(0))
        .In(Tensor::Scalar(header))
        .In(Tensor::Scalar(delimiter))
        .In(Tensor::Scalar(true))
        .In(Tensor::Scalar(na_value))
        .In(Tensor::Vector(select))
        .InList(defaults)
        .In(Tensor::Vector(exclude))
        .Run1();
  }
};

// Returns the next element as "1|2.5|text", "end", or the error.
std::string NextRecord(Place& place, DatasetIterator& iterator) {
  Element element;
  bool end = false;
  const Status status = iterator.GetNext(place.Context(), &element, &end);
  if (!status.ok()) return std::string(status.message());
  if (end) return "end";
  std::string text;
  for (const Tensor& field : element) {
    if (!text.empty()) text += "|";
    if (field.dtype() == DType::kString) {
      text += field.scalar<std::string>();
    } else {
      text += field.ToString().substr(field.ToString().rfind(' ') + 1);
    }
  }
  return text;
}

std::vector<std::string> Records(const Csv& csv) {
  Place place;
  const IteratorPtr iterator = NewIterator(place, Must(csv.Make()));
  std::vector<std::string> records;
  do {
    records.push_back(NextRecord(place, *iterator));
  } while (records.back() != "end" && records.size() < 50);
  return records;
}

const Tensor kZero = Tensor::Vector<int32_t>({0}), kOne = Tensor::Vector<float>({1}),
             kEmpty = Tensor::Vector<std::string>({""});
constexpr char kText[] =
    "h1,h2,h3\n1,2.5,\"a \"\"q\"\", b\"\n,3,x\n\n4,NA,\"two\nlines\"\n5,6\n7,8,9,10\n";

TEST(Csv, ReadsRecords) {
  const Tensor required(DType::kFloat, Shape({0})), text(DType::kString, Shape({0}));
  EXPECT_THAT(Records({.text = kText, .defaults = {kZero, required, text}, .header = true}),
              ElementsAre("1|2.5|a \"q\", b", "0|3|x", "Expect 3 fields but have 1 in record",
                          "Field 1 in record is not a valid float: NA",
                          "Expect 3 fields but have 2 in record",
                          "Expect 3 fields but have more in record", "end"));
  EXPECT_THAT(Records({.text = "1,,z\n", .defaults = {kZero, required, text}}),
              ElementsAre("Field 1 is required but missing in record!", "end"));
}

TEST(Csv, TakesDefaultsForMissingFields) {
  EXPECT_THAT(
      Records({.text = kText, .defaults = {kZero, kOne, kEmpty}, .header = true, .na_value = "NA"}),
      ElementsAre("1|2.5|a \"q\", b", "0|3|x", "Expect 3 fields but have 1 in record",
                  "4|1|two\nlines", "Expect 3 fields but have 2 in record",
                  "Expect 3 fields but have more in record", "end"));
  EXPECT_THAT(Records({.text = "1\n\n2", .defaults = {Tensor::Vector<int32_t>({9})}}),
              ElementsAre("1", "9", "2", "end"));
}

TEST(Csv, SelectsColumns) {
  EXPECT_THAT(
      Records({.text = kText, .defaults = {kZero, kEmpty}, .header = true, .select = {0, 2}}),
      ElementsAre("1|a \"q\", b", "0|x", "Expect 2 fields but have 1 in record", "4|two\nlines",
                  "Expect 2 fields but have 1 in record", "7|9", "end"));
  EXPECT_THAT(Records({.text = kText, .defaults = {kZero, kEmpty}, .header = true, .exclude = {1}}),
              ElementsAre("1|a \"q\", b", "0|x", "Expect 2 fields but have 1 in record",
                          "4|two\nlines", "Expect 2 fields but have 1 in record",
                          "Expect 2 fields but have more in record", "end"));
  EXPECT_THAT(Records({.text = "1;x\n", .defaults = {kZero, kEmpty}, .delimiter = ";"}),
              ElementsAre("1|x", "end"));
}

TEST(Csv, KeepsLineEndsInQuotes) {
  EXPECT_THAT(Records({.text = "\"a\r\nb\",1\r\n\"\"\"\",2\r\n", .defaults = {kEmpty, kZero}}),
              ElementsAre("a\r\nb|1", "\"|2", "end"));
  EXPECT_THAT(Records({.text = "1,\"open\n2,3", .defaults = {kZero, kEmpty}}),
              ElementsAre(HasSubstr("Reached end of file without closing quoted field"), "end"));
}

TEST(Csv, GoesOnFromASavedState) {
  const Csv csv = {.text = kText, .defaults = {kZero, kEmpty}, .header = true, .select = {0, 2}};
  for (int taken = 0; taken < 7; ++taken) {
    Place place;
    const IteratorPtr first = NewIterator(place, Must(csv.Make()));
    for (int i = 0; i < taken; ++i) NextRecord(place, *first);
    StateReader reader(Save(place, *first));
    const IteratorPtr second = NewIterator(place, Must(csv.Make()));
    ASSERT_TRUE(second->Restore(place.Context(), &reader).ok());
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(NextRecord(place, *second), NextRecord(place, *first)) << taken;
    }
  }
}

TEST(Csv, MistakesAreNamed) {
  const auto error = [](const Csv& csv) { return std::string(csv.Make().status().message()); };
  EXPECT_THAT(error({.defaults = {kZero}, .delimiter = "ab"}), HasSubstr("field_delim"));
  EXPECT_THAT(error({.defaults = {kZero}, .select = {1, 2}}), HasSubstr("select_cols"));
  EXPECT_THAT(error({.defaults = {kZero}, .exclude = {2, 1}}), HasSubstr("exclude_cols"));
  EXPECT_THAT(error({.defaults = {kZero}, .select = {1}, .exclude = {2}}),
              HasSubstr("Either select_cols or exclude_cols should be empty"));
  EXPECT_THAT(error({.defaults = {Tensor::Vector<int32_t>({1, 2})}}),
              HasSubstr("only be 1 default per field"));
}

}  // namespace
}  // namespace penstock

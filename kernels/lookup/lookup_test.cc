// SPDX-License-Identifier: Apache-2.0
//
// Tests tables through the ops with ref edges and with resource handles, and tensors kept in a
// session. Expected values and error texts are TensorFlow 2.21's.
#include <gmock/gmock.h>

#include <cmath>
#include <fstream>

#include "kernels/array/testing/golden.h"

namespace penstock {
namespace {

using namespace golden;  // NOLINT
using testing::HasSubstr;

// A table for one test, and ops on it.
class Table {
 public:
  Table(std::string op, DType key, DType value, Attrs attrs = {}, std::vector<Tensor> inputs = {},
        std::shared_ptr<ResourceStore> store = std::make_shared<ResourceStore>())
      : v2_(op.ends_with("V2") ? "V2" : ""), store_(std::move(store)) {
    OpRunner run(op, store_);
    for (const Tensor& input : inputs) run.In(input);
    for (const auto& [name, attr] : attrs) run.Attr(name, attr);
    const auto handle = run.Attr("key_dtype", key).Attr("value_dtype", value).Run1();
    status_ = handle.status();
    if (handle.ok()) handle_ = *handle;
  }

  const Status& status() const { return status_; }
  const std::shared_ptr<ResourceStore>& store() const { return store_; }

  StatusOr<std::vector<Tensor>> Do(const std::string& op, std::vector<Tensor> inputs = {},
                                   Attrs attrs = {}) {
    OpRunner run(op + v2_, store_);
    run.In(handle_);
    for (const Tensor& input : inputs) run.In(input);
    for (const auto& [name, attr] : attrs) run.Attr(name, attr);
    return run.Run();
  }
  Tensor Find(const Tensor& keys, const Tensor& default_value) {
    const auto found = Do("LookupTableFind", {keys, default_value});
    CHECK_OK(found.status());
    return (*found)[0];
  }
  int64_t Size() { return (*Do("LookupTableSize"))[0].scalar<int64_t>(); }

 private:
  const std::string v2_;
  std::shared_ptr<ResourceStore> store_;
  Status status_;
  Tensor handle_;
};

std::string Message(const StatusOr<std::vector<Tensor>>& result) {
  return std::string(result.status().message());
}

const Attrs kShared = {{"shared_name", "t"}};

class BothForms : public testing::TestWithParam<const char*> {
 protected:
  std::string V(const char* op) const { return std::string(op) + GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Lookup, BothForms, testing::Values("", "V2"),
                         [](const auto& info) { return *info.param == 0 ? "Ref" : "Resource"; });

TEST_P(BothForms, AHashTableIsFilledOnce) {
  Table table(V("HashTable"), DType::kString, DType::kInt64, kShared);
  ASSERT_TRUE(table.status().ok()) << table.status();
  EXPECT_EQ(table.Size(), 0);
  EXPECT_EQ(table.Do("LookupTableFind", {S({1}, {"a"}), L({}, {-1})}).status().code(),
            StatusCode::kFailedPrecondition);
  ASSERT_TRUE(table.Do("InitializeTable", {S({2}, {"a", "b"}), L({2}, {1, 2})}).ok());
  EXPECT_EQ(table.Size(), 2);
  EXPECT_TRUE(
      SameTensor(table.Find(S({1, 3}, {"b", "z", "a"}), L({}, {-1})), L({1, 3}, {2, -1, 1})));
  // A second initialization with the same number of entries does nothing; with another number of
  // entries it fails.
  EXPECT_TRUE(table.Do("InitializeTable", {S({2}, {"a", "c"}), L({2}, {8, 9})}).ok());
  EXPECT_TRUE(SameTensor(table.Find(S({}, {"a"}), L({}, {-1})), L({}, {1})));
  EXPECT_THAT(Message(table.Do("InitializeTable", {S({1}, {"q"}), L({1}, {8})})),
              HasSubstr("Table already initialized."));
  EXPECT_EQ(table.Do("LookupTableInsert", {S({1}, {"q"}), L({1}, {8})}).status().code(),
            StatusCode::kUnimplemented);
}

TEST_P(BothForms, TablesAreSharedByName) {
  Table first(V("MutableHashTable"), DType::kString, DType::kInt64, kShared);
  Table second(V("MutableHashTable"), DType::kString, DType::kInt64, kShared, {}, first.store());
  ASSERT_TRUE(first.Do("LookupTableInsert", {S({1}, {"a"}), L({1}, {7})}).ok());
  EXPECT_TRUE(SameTensor(second.Find(S({1}, {"a"}), L({}, {0})), L({1}, {7})));
  Table other(V("MutableHashTable"), DType::kString, DType::kFloat, kShared, {}, first.store());
  EXPECT_THAT(std::string(other.status().message()), HasSubstr("Conflicting key/value dtypes"));
  Table kind(V("HashTable"), DType::kString, DType::kInt64, kShared, {}, first.store());
  EXPECT_FALSE(kind.status().ok());
}

TEST(Lookup, AMutableTableTakesAndLosesEntries) {
  Table table("MutableHashTableV2", DType::kString, DType::kInt64);
  ASSERT_TRUE(table.Do("LookupTableInsert", {S({3}, {"a", "b", "a"}), L({3}, {1, 2, 3})}).ok());
  EXPECT_TRUE(SameTensor(table.Find(S({2}, {"a", "q"}), L({}, {-1})), L({2}, {3, -1})));
  EXPECT_TRUE(SameTensor(table.Find(S({2}, {"a", "q"}), L({2}, {-1, -2})), L({2}, {3, -2})));
  ASSERT_TRUE(table.Do("LookupTableRemove", {S({2}, {"a", "z"})}).ok());
  EXPECT_EQ(table.Size(), 1);
  const auto all =
      *table.Do("LookupTableExport", {}, {{"Tkeys", DType::kString}, {"Tvalues", DType::kInt64}});
  EXPECT_TRUE(SameTensor(all[0], S({1}, {"b"})));
  EXPECT_TRUE(SameTensor(all[1], L({1}, {2})));
  ASSERT_TRUE(table.Do("LookupTableImport", {S({2}, {"x", "y"}), L({2}, {7, 8})}).ok());
  EXPECT_TRUE(SameTensor(table.Find(S({3}, {"b", "x", "y"}), L({}, {-1})), L({3}, {-1, 7, 8})));
  EXPECT_THAT(Message(table.Do("LookupTableInsert", {S({2}, {"a", "b"}), L({1}, {1})})),
              HasSubstr("Expected shape [2] for value, got [1]"));
  EXPECT_THAT(Message(table.Do("LookupTableInsert", {S({1}, {"a"}), F({1}, {1})})),
              HasSubstr("Signature mismatch"));
  EXPECT_THAT(Message(table.Do("InitializeTable", {S({1}, {"a"}), L({1}, {1})})),
              HasSubstr("is not initializable"));
  EXPECT_THAT(Message(table.Do("LookupTableExport", {},
                               {{"Tkeys", DType::kString}, {"Tvalues", DType::kInt32}})),
              HasSubstr("Signature mismatch"));
}

TEST(Lookup, ValuesMayBeVectorsAndStrings) {
  Table table("MutableHashTableOfTensorsV2", DType::kInt64, DType::kString,
              {{"value_shape", Shape({2})}});
  ASSERT_TRUE(
      table.Do("LookupTableInsert", {L({3}, {1, 2, 3}), S({3, 2}, {"a", "b", "c", "d", "e", "f"})})
          .ok());
  ASSERT_TRUE(table.Do("LookupTableRemove", {L({1}, {1})}).ok());
  EXPECT_TRUE(SameTensor(table.Find(L({3}, {3, 1, 2}), S({2}, {"-", "+"})),
                         S({3, 2}, {"e", "f", "-", "+", "c", "d"})));
  EXPECT_FALSE(table.Do("LookupTableFind", {L({1}, {1}), S({}, {"-"})}).ok());
  EXPECT_FALSE(Table("MutableHashTableOfTensorsV2", DType::kInt64, DType::kFloat,
                     {{"value_shape", Shape({2, 2})}})
                   .status()
                   .ok());
}

TEST(Lookup, DenseTablesReserveTwoKeys) {
  Table table("MutableDenseHashTableV2", DType::kInt64, DType::kFloat,
              {{"value_shape", Shape({2})}, {"initial_num_buckets", 4}},
              {L({2}, {0, 0}), L({2}, {1, 1})});
  ASSERT_TRUE(table.status().ok()) << table.status();
  ASSERT_TRUE(
      table.Do("LookupTableInsert", {L({2, 2}, {1, 2, 3, 4}), F({2, 2}, {1, 2, 3, 4})}).ok());
  EXPECT_TRUE(
      SameTensor(table.Find(L({2, 2}, {3, 4, 9, 9}), F({2}, {-1, -2})), F({2, 2}, {3, 4, -1, -2})));
  EXPECT_THAT(Message(table.Do("LookupTableInsert", {L({1, 2}, {0, 0}), F({1, 2}, {1, 2})})),
              HasSubstr("Using the empty_key as a table key is not allowed"));
  EXPECT_THAT(Message(table.Do("LookupTableFind", {L({1, 2}, {1, 1}), F({2}, {1, 2})})),
              HasSubstr("Using the deleted_key as a table key is not allowed"));
  // Reserved keys mark free buckets, as in TensorFlow's exports.
  ASSERT_TRUE(
      table.Do("LookupTableImport", {L({2, 2}, {0, 0, 5, 6}), F({2, 2}, {0, 0, 7, 8})}).ok());
  EXPECT_EQ(table.Size(), 1);
  const auto make = [](const Tensor& empty, const Tensor& deleted, int buckets) {
    return std::string(Table("MutableDenseHashTableV2", DType::kInt64, DType::kFloat,
                             {{"initial_num_buckets", buckets}}, {empty, deleted})
                           .status()
                           .message());
  };
  EXPECT_THAT(make(L({}, {0}), L({}, {0}), 4), HasSubstr("cannot be equal"));
  EXPECT_THAT(make(L({}, {0}), L({1}, {1}), 4), HasSubstr("must have same shape"));
  EXPECT_THAT(make(L({}, {0}), L({}, {1}), 3), HasSubstr("must be a power of 2, got: 3"));
}

// Expected values are those of TensorFlow 2.21.
TEST(Lookup, DenseTablesExportTheirBuckets) {
  Table table("MutableDenseHashTableV2", DType::kInt64, DType::kInt64, {{"initial_num_buckets", 8}},
              {L({}, {-1}), L({}, {-2})});
  const auto exported = [&] {
    return *table.Do("LookupTableExport", {},
                     {{"Tkeys", DType::kInt64}, {"Tvalues", DType::kInt64}});
  };
  ASSERT_TRUE(table.Do("LookupTableInsert", {L({3}, {5, 6, 11}), L({3}, {50, 60, 110})}).ok());
  ASSERT_TRUE(table.Do("LookupTableRemove", {L({2}, {6, 77})}).ok());
  EXPECT_EQ(table.Size(), 2);
  EXPECT_TRUE(SameTensor(exported()[0], L({8, 1}, {-1, -1, -1, 11, -1, 5, -2, -1})));
  EXPECT_TRUE(SameTensor(exported()[1], L({8, 1}, {0, 0, 0, 110, 0, 50, 60, 0})));
  ASSERT_TRUE(table.Do("LookupTableInsert", {L({1}, {14}), L({1}, {140})}).ok());
  EXPECT_TRUE(SameTensor(exported()[0], L({8, 1}, {-1, -1, -1, 11, -1, 5, 14, -1})));
  // The table grows if its entries and the inserted keys together exceed 8 * 0.8, even if some of
  // the keys are in the table already.
  const std::vector<int64_t> nine = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  ASSERT_TRUE(table.Do("LookupTableInsert", {L({9}, nine), L({9}, nine)}).ok());
  EXPECT_EQ(table.Size(), 11);
  EXPECT_TRUE(SameTensor(exported()[0],
                         L({16, 1}, {0, 1, 2, 3, 4, 5, 6, 7, 8, -1, -1, 11, -1, -1, 14, -1})));
  const auto all = exported();
  ASSERT_TRUE(table.Do("LookupTableImport", all).ok());
  EXPECT_EQ(table.Size(), 11);
  EXPECT_TRUE(SameTensor(exported()[0], all[0]));
  EXPECT_TRUE(SameTensor(table.Find(L({2}, {14, 10}), L({}, {-9})), L({2}, {140, -9})));
}

TEST(Lookup, DenseTablesExportVectorsAsMatrices) {
  Table table("MutableDenseHashTableV2", DType::kString, DType::kFloat,
              {{"value_shape", Shape({1, 2})}, {"initial_num_buckets", 2}},
              {S({}, {""}), S({}, {"-"})});
  ASSERT_TRUE(table.Do("LookupTableInsert", {S({1}, {"a"}), F({1, 1, 2}, {3, 4})}).ok());
  const auto all =
      *table.Do("LookupTableExport", {}, {{"Tkeys", DType::kString}, {"Tvalues", DType::kFloat}});
  EXPECT_EQ(all[0].shape(), Shape({2, 1}));
  EXPECT_EQ(all[1].shape(), Shape({2, 2}));
  ASSERT_TRUE(table.Do("LookupTableImport", all).ok());
  EXPECT_TRUE(SameTensor(table.Find(S({1}, {"a"}), F({1, 2}, {0, 0})), F({1, 1, 2}, {3, 4})));
}

TEST_P(BothForms, FilesFillTables) {
  const std::string path = testing::TempDir() + "/vocabulary.txt";
  std::ofstream(path) << "x 10\ny 20\nz 30\n";
  const auto fill = [&](DType key, DType value, Attrs attrs) {
    auto table = std::make_unique<Table>(V("HashTable"), key, value, kShared);
    const auto done = table->Do("InitializeTableFromTextFile", {S({}, {path})}, attrs);
    return std::pair(std::move(table), Message(done));
  };
  using A = Attrs;
  const DType s = DType::kString, l = DType::kInt64;
  auto [lines, ok] = fill(s, l, A{{"key_index", -2}, {"value_index", -1}, {"offset", 1}});
  EXPECT_EQ(ok, "");
  EXPECT_TRUE(SameTensor(lines->Find(S({2}, {"z 30", "x"}), L({}, {-1})), L({2}, {3, -1})));
  auto [columns, fine] =
      fill(s, l, A{{"key_index", 0}, {"value_index", 1}, {"delimiter", " "}, {"vocab_size", 2}});
  EXPECT_EQ(fine, "");
  EXPECT_TRUE(SameTensor(columns->Find(S({2}, {"y", "z"}), L({}, {-1})), L({2}, {20, -1})));
  EXPECT_THAT(fill(s, l, A{{"key_index", 0}, {"value_index", 1}}).second,
              HasSubstr("line 0 (x 10) : expected at least 2 got 1"));
  EXPECT_THAT(fill(s, l, A{{"key_index", -2}, {"value_index", -1}, {"vocab_size", 5}}).second,
              HasSubstr("expected 5 but got 3"));
  EXPECT_THAT(fill(s, l, A{{"key_index", 0}, {"value_index", 0}, {"delimiter", " "}}).second,
              HasSubstr("Field x in line 0 is not a valid int64."));
  EXPECT_THAT(fill(s, l, A{{"key_index", -1}, {"value_index", -1}}).second,
              HasSubstr("line number requires table Key dtype of int64, got string"));
  EXPECT_THAT(fill(l, s, A{{"key_index", -2}, {"value_index", -1}}).second,
              HasSubstr("line number requires table Value dtype of int64, got string"));
  EXPECT_THAT(fill(s, DType::kFloat, A{{"key_index", -2}, {"value_index", -2}}).second,
              HasSubstr("whole line requires table Value dtype of string or integer, got float"));
  EXPECT_THAT(fill(l, l, A{{"key_index", -2}, {"value_index", -1}}).second,
              HasSubstr("Field x 10 in line 0 is not a valid int64."));
  std::ofstream(path) << "7\n-3\n12\n";
  auto [numbers, read] = fill(l, l, A{{"key_index", -2}, {"value_index", -1}});
  EXPECT_EQ(read, "");
  EXPECT_TRUE(SameTensor(numbers->Find(L({3}, {12, -3, 1}), L({}, {-1})), L({3}, {2, 1, -1})));
}

TEST(SessionTensor, StaysUntilItIsDeleted) {
  const Tensor value = F({2}, {1, 2});
  OpRunner keep("GetSessionHandle");
  const Tensor handle = *keep.In(value).Run1();
  EXPECT_THAT(handle.scalar<std::string>(), HasSubstr("GetSessionHandle;"));
  const auto get = [&](DType dtype) {
    return OpRunner("GetSessionTensor", keep.resources()).In(handle).Attr("dtype", dtype).Run1();
  };
  EXPECT_TRUE(SameTensor(*get(DType::kFloat), value));
  EXPECT_FALSE(get(DType::kInt32).ok());
  const auto remove = [&] {
    return OpRunner("DeleteSessionTensor", keep.resources()).In(handle).Run().ok();
  };
  EXPECT_TRUE(remove());
  EXPECT_FALSE(remove());
  EXPECT_THAT(std::string(get(DType::kFloat).status().message()),
              HasSubstr("is not in the session store."));
}

TEST(Debug, CountsNan) {
  EXPECT_TRUE(SameTensor(OpCall{"DebugNanCount", {F({3}, {1, NAN, NAN})}}.Run1(), L({1}, {2})));
  EXPECT_TRUE(SameTensor(OpCall{"DebugNanCount", {I({1}, {1})}}.Run1(), L({1}, {0})));
  OpCall{"DebugIdentity", {F({}, {1})}, {{"debug_urls", std::vector<std::string>{"file:///tmp/x"}}}}
      .ExpectError("publishing tensors");
}

}  // namespace
}  // namespace penstock

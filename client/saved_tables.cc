// SPDX-License-Identifier: Apache-2.0
#include "client/saved_tables.h"

#include <iterator>

#include "core/op/gradient.h"

namespace penstock::client {
namespace {

struct Column {
  const char* name;
  DType dtype;
};
constexpr Column kColumns[] = {{"keys", DType::kInt64},
                               {"values", DType::kFloat},
                               {"slots", DType::kFloat},
                               {"updates", DType::kInt64},
                               {"steps", DType::kInt64}};

// The attribute, if it is there and of type T.
template <class T>
const T* Find(const Node& node, const char* attr) {
  const auto it = node.attrs().find(attr);
  return it == node.attrs().end() ? nullptr : it->second.get<T>();
}

}  // namespace

std::vector<std::string> SavedTable::TensorNames() const {
  std::vector<std::string> names;
  for (const Column& column : kColumns) {
    for (const int64_t bucket : buckets) {
      names.push_back(StrCat(name, "/bucket_", bucket, "_of_", num_buckets, "/", column.name));
    }
  }
  return names;
}

std::vector<DType> SavedTable::TensorTypes() const {
  std::vector<DType> types;
  for (const Column& column : kColumns) types.insert(types.end(), buckets.size(), column.dtype);
  return types;
}

Outputs SavedTable::Export() const {
  Program& program = static_cast<Program&>(*handle.sink);
  const auto here = program.ColocateWith(handle);
  Outputs rows = CallN("DynamicTableExport", {handle},
                       {{"N", std::ssize(buckets)}, {"buckets", num_buckets}, {"wanted", buckets}});
  rows.resize(buckets.size() * std::size(kColumns), {&program, -1, 0});  // fewer after a mistake
  return rows;
}

Output SavedTable::Import(const Outputs& tensors) const {
  Program& program = static_cast<Program&>(*handle.sink);
  const auto here = program.ColocateWith(handle);
  std::vector<NodeInput> inputs = {handle};
  for (size_t i = 0; i < std::size(kColumns); ++i) {
    const auto begin = tensors.begin() + static_cast<int64_t>(i * buckets.size());
    inputs.emplace_back(Outputs(begin, begin + static_cast<int64_t>(buckets.size())));
  }
  return CallIn(program, "DynamicTableImport", inputs, {});
}

std::vector<SavedTable> SavedTablesOf(Program& program) {
  std::vector<SavedTable> tables;
  for (const Node* node : program.graph().nodes()) {
    const auto* const name = Find<std::string>(*node, kTableNameAttr);
    const auto* const part = Find<int64_t>(*node, kTablePartAttr);
    const auto* const parts = Find<int64_t>(*node, kTablePartsAttr);
    const auto* const buckets = Find<int64_t>(*node, kTableBucketsAttr);
    const auto* const ready = Find<std::string>(*node, kTableReadyAttr);
    if (name == nullptr || part == nullptr || parts == nullptr || buckets == nullptr ||
        ready == nullptr) {
      continue;
    }
    SavedTable table{
        .handle = program.OutputOf(node), .name = *name, .ready = *ready, .num_buckets = *buckets};
    for (int64_t bucket = *part; bucket < *buckets; bucket += *parts) {
      table.buckets.push_back(bucket);
    }
    tables.push_back(std::move(table));
  }
  return tables;
}

}  // namespace penstock::client

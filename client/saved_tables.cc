// SPDX-License-Identifier: Apache-2.0
#include "client/saved_tables.h"

#include <iterator>

#include "absl/types/span.h"
#include "client/ops/line_scope.h"
#include "core/checkpoint/base_checkpoints.h"
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
                               {"steps", DType::kInt64},
                               // present only in a checkpoint of changes
                               {"dropped", DType::kInt64},
                               {kBaseSuffix + 1, DType::kString}};

absl::Span<const Column> Columns(bool changes) {
  return absl::MakeConstSpan(kColumns).first(changes ? std::size(kColumns) : 5);
}

Attrs BucketAttrs(const SavedTable& table) {
  return {
      {"N", std::ssize(table.buckets)}, {"buckets", table.num_buckets}, {"wanted", table.buckets}};
}

// Returns the inputs of an op that takes the table and a list of tensors for each column.
std::vector<NodeInput> WithColumns(const SavedTable& table, const Outputs& tensors) {
  std::vector<NodeInput> inputs = {table.handle};
  const auto n = std::ssize(table.buckets);
  for (auto begin = tensors.begin(); begin != tensors.end(); begin += n) {
    inputs.emplace_back(Outputs(begin, begin + n));
  }
  return inputs;
}

// Returns the attribute; null if it is missing or not of type T.
template <class T>
const T* Find(const Node& node, const char* attr) {
  const auto it = node.attrs().find(attr);
  return it == node.attrs().end() ? nullptr : it->second.get<T>();
}

}  // namespace

std::vector<std::string> SavedTable::TensorNames(bool changes) const {
  std::vector<std::string> names;
  for (const Column& column : Columns(changes)) {
    for (const int64_t bucket : buckets) {
      names.push_back(StrCat(name, "/bucket_", bucket, "_of_", num_buckets, "/", column.name));
    }
  }
  return names;
}

std::vector<DType> SavedTable::TensorTypes(bool changes) const {
  std::vector<DType> types;
  for (const Column& column : Columns(changes)) {
    types.insert(types.end(), buckets.size(), column.dtype);
  }
  return types;
}

Outputs SavedTable::Export(SourceLine line) const {
  const CallerLine source(handle, line);
  Program& program = static_cast<Program&>(*handle.sink);
  const auto device_scope = program.ColocateWith(handle);
  Outputs rows = CallN("DynamicTableExport", {handle}, BucketAttrs(*this));
  rows.resize(TensorNames(/*changes=*/false).size(),
              {&program, -1, 0});  // CallN returns fewer outputs after an error
  return rows;
}

Outputs SavedTable::ExportChanges(Output mark, Output base_mark, Output base,
                                  SourceLine line) const {
  const CallerLine source(handle, line);
  Program& program = static_cast<Program&>(*handle.sink);
  const auto device_scope = program.ColocateWith(handle);
  Outputs rows =
      CallN("DynamicTableExportChanges", {handle, mark, base_mark, base}, BucketAttrs(*this));
  rows.resize(TensorNames(/*changes=*/true).size(), {&program, -1, 0});
  return rows;
}

Output SavedTable::Import(const Outputs& tensors, SourceLine line) const {
  const CallerLine source(handle, line);
  Program& program = static_cast<Program&>(*handle.sink);
  const auto device_scope = program.ColocateWith(handle);
  return CallIn(program, "DynamicTableImport", WithColumns(*this, tensors), {});
}

Output SavedTable::Merge(const Outputs& tensors, SourceLine line) const {
  const CallerLine source(handle, line);
  Program& program = static_cast<Program&>(*handle.sink);
  const auto device_scope = program.ColocateWith(handle);
  Attrs attrs = BucketAttrs(*this);
  attrs.erase("N");  // the lengths of the lists give N
  return CallIn(program, "DynamicTableMerge", WithColumns(*this, tensors), std::move(attrs));
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

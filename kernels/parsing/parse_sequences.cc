// SPDX-License-Identifier: Apache-2.0
#include "kernels/parsing/parse_sequences.h"

#include <utility>

#include "kernels/parsing/list_columns.h"

namespace penstock {
namespace {

Status CheckCount(const KernelInit& node, const char* attr, size_t expected) {
  if (!node.attrs.contains(attr)) return OkStatus();
  int64_t count = 0;
  RETURN_IF_ERROR(node.Attr(attr, &count));
  if (count == static_cast<int64_t>(expected)) return OkStatus();
  return InvalidArgument(attr, " is ", count, ", there are types for ", expected);
}

StatusOr<std::vector<SequenceRecord>> ParseRecords(KernelContext& ctx, int names_input,
                                                   ColumnRows* rows) {
  const Tensor &serialized = ctx.input(0), &names = ctx.input(names_input);
  if (serialized.rank() > 1) {
    return InvalidArgument("Expected serialized to be a scalar or vector, got shape: ",
                           serialized.shape().ToString());
  }
  if (names.num_elements() > 0 && names.num_elements() != serialized.num_elements()) {
    return InvalidArgument("debug_name has ", names.num_elements(), " elements, serialized ",
                           serialized.num_elements());
  }
  rows->names = &names;
  rows->batched = serialized.rank() == 1;
  const auto bytes = serialized.flat<std::string>();
  std::vector<SequenceRecord> records(bytes.size());
  constexpr int64_t kRecordNanos = 400;
  RETURN_IF_ERROR(ForEachRow(*rows, serialized.num_elements(), kRecordNanos, ctx, [&](int64_t i) {
    auto record = SequenceRecord::Parse(bytes[i]);
    if (record.ok()) records[i] = *std::move(record);
    return record.status();
  }));
  return records;
}

Status ParseLists(const FeatureListRequest& lists, const std::vector<SequenceRecord>& records,
                  const ColumnRows& rows, int output, KernelContext& ctx) {
  const int sparse = static_cast<int>(lists.sparse_keys.size());
  for (int i = 0; i < sparse; ++i, ++output) {
    ASSIGN_OR_RETURN(const ListColumn column,
                     ListColumn::Make(records, rows, lists.sparse_keys[i], lists.sparse_types[i],
                                      /*may_miss=*/true));
    RETURN_IF_ERROR(column.ToSparse(ctx, {output, output + sparse, output + 2 * sparse}));
  }
  output += 2 * sparse;
  const int dense = static_cast<int>(lists.dense_keys.size());
  for (int i = 0; i < dense; ++i, ++output) {
    ASSIGN_OR_RETURN(const ListColumn column,
                     ListColumn::Make(records, rows, lists.dense_keys[i], lists.dense_types[i],
                                      lists.may_miss[i]));
    RETURN_IF_ERROR(
        column.ToDense(lists.dense_shapes[i], ctx, output, lists.lengths ? output + dense : -1));
  }
  if (lists.lengths) output += dense;
  const int ragged = static_cast<int>(lists.ragged_keys.size());
  for (int i = 0; i < ragged; ++i, ++output) {
    ASSIGN_OR_RETURN(const ListColumn column,
                     ListColumn::Make(records, rows, lists.ragged_keys[i], lists.ragged_types[i],
                                      /*may_miss=*/true));
    RETURN_IF_ERROR(column.ToRagged(ctx, output, output + ragged, output + 2 * ragged));
  }
  return OkStatus();
}

}  // namespace

Status ParseSequencesKernel::Init(const KernelInit& node) {
  RETURN_IF_ERROR(node.Attr("context_sparse_types", &context_.sparse_types));
  RETURN_IF_ERROR(node.Attr("Tcontext_dense", &context_dense_types_));
  RETURN_IF_ERROR(node.Attr("context_dense_shapes", &context_dense_shapes_));
  RETURN_IF_ERROR(node.Attr("feature_list_sparse_types", &lists_.sparse_types));
  RETURN_IF_ERROR(node.Attr("feature_list_dense_types", &lists_.dense_types));
  RETURN_IF_ERROR(node.Attr("feature_list_dense_shapes", &lists_.dense_shapes));
  RETURN_IF_ERROR(CheckSameSize("context_dense_shapes", context_dense_shapes_, "Tcontext_dense",
                                context_dense_types_));
  RETURN_IF_ERROR(CheckSameSize("feature_list_dense_shapes", lists_.dense_shapes,
                                "feature_list_dense_types", lists_.dense_types));
  RETURN_IF_ERROR(CheckCount(node, "Ncontext_sparse", context_.sparse_types.size()));
  RETURN_IF_ERROR(CheckCount(node, "Ncontext_dense", context_dense_types_.size()));
  RETURN_IF_ERROR(CheckCount(node, "Nfeature_list_sparse", lists_.sparse_types.size()));
  return CheckCount(node, "Nfeature_list_dense", lists_.dense_types.size());
}

Status ParseSequencesKernel::Parse(FeatureRequest context, FeatureListRequest lists,
                                   const Inputs& inputs, KernelContext& ctx) const {
  RETURN_IF_ERROR(CheckSameSize("context_sparse_keys", context.sparse_keys, "context_sparse_types",
                                context.sparse_types));
  RETURN_IF_ERROR(CheckSameSize("context_dense_keys", context.dense_keys, "Tcontext_dense",
                                context_dense_types_));
  RETURN_IF_ERROR(CheckSameSize("context_ragged_keys", context.ragged_keys,
                                "context_ragged_value_types", context.ragged_types));
  RETURN_IF_ERROR(CheckSameSize("feature_list_sparse_keys", lists.sparse_keys,
                                "feature_list_sparse_types", lists.sparse_types));
  RETURN_IF_ERROR(CheckSameSize("feature_list_dense_keys", lists.dense_keys,
                                "feature_list_dense_types", lists.dense_types));
  RETURN_IF_ERROR(CheckSameSize("feature_list_ragged_keys", lists.ragged_keys,
                                "feature_list_ragged_value_types", lists.ragged_types));
  for (size_t i = 0; i < context_dense_types_.size(); ++i) {
    context.dense.push_back({context_dense_types_[i], context_dense_shapes_[i],
                             ctx.input(inputs.defaults + static_cast<int>(i))});
    RETURN_IF_ERROR(context.dense.back().Check(static_cast<int>(i)));
  }
  ColumnRows rows;
  ASSIGN_OR_RETURN(const std::vector<SequenceRecord> records,
                   ParseRecords(ctx, inputs.names, &rows));
  RETURN_IF_ERROR(ParseFeatures(
      context, [&](int64_t i) -> const ExampleRecord& { return records[i].context(); },
      static_cast<int64_t>(records.size()), &rows, ctx));
  return ParseLists(lists, records, rows, context.num_outputs(), ctx);
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// ParseSingleSequenceExample: one serialized SequenceExample: the features of its context, and its
// lists of features, as dense and sparse tensors.
#include <algorithm>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/parsing/columns.h"
#include "kernels/parsing/example.h"

namespace penstock {
namespace {

const DTypes kFeature = {DType::kFloat, DType::kInt64, DType::kString};

// One side of the record, the context or the lists: its inputs and attributes.
struct Side {
  std::vector<DType> sparse_types, dense_types;
  std::vector<PartialShape> dense_shapes;

  int num_sparse() const { return static_cast<int>(sparse_types.size()); }
  int num_dense() const { return static_cast<int>(dense_types.size()); }
};

Status ReadSide(const KernelInit& node, const std::string& prefix, const std::string& dense_types,
                Side* side) {
  RETURN_IF_ERROR(node.Attr(prefix + "_sparse_types", &side->sparse_types));
  RETURN_IF_ERROR(node.Attr(dense_types, &side->dense_types));
  RETURN_IF_ERROR(node.Attr(prefix + "_dense_shapes", &side->dense_shapes));
  int num_sparse = 0, num_dense = 0;
  RETURN_IF_ERROR(node.Attr("N" + prefix + "_sparse", &num_sparse));
  RETURN_IF_ERROR(node.Attr("N" + prefix + "_dense", &num_dense));
  for (const DType dtype : side->sparse_types) RETURN_IF_ERROR(CheckFeatureType(dtype, prefix));
  for (const DType dtype : side->dense_types) RETURN_IF_ERROR(CheckFeatureType(dtype, prefix));
  if (num_sparse != side->num_sparse() || num_dense != side->num_dense() ||
      side->dense_shapes.size() != side->dense_types.size()) {
    return InvalidArgument(prefix, ": ", num_sparse, " sparse and ", num_dense, " dense keys, but ",
                           side->num_sparse(), " sparse_types, ", side->num_dense(),
                           " dense types and ", side->dense_shapes.size(), " dense_shapes");
  }
  return OkStatus();
}

StatusOr<std::string> Key(const KernelContext& ctx, int input, string_view name) {
  const Tensor& key = ctx.input(input);
  if (key.num_elements() == 1) return key.scalar<std::string>();
  return InvalidArgument("Expected ", name, " to be scalars, got shape: ", key.shape().ToString());
}

class ParseSingleSequenceExampleKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(ReadSide(node, "context", "Tcontext_dense", &context_));
    RETURN_IF_ERROR(ReadSide(node, "feature_list", "feature_list_dense_types", &lists_));
    for (const PartialShape& shape : lists_.dense_shapes) {
      if (!shape.fully_known()) {
        return InvalidArgument("feature_list_dense_shapes: ", shape.ToString(),
                               " is not fully defined");
      }
    }
    return OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& serialized = ctx.input(0);
    const Tensor& empty = ctx.input(1);  // which dense lists may be missing
    const Tensor& name = ctx.input(ctx.num_inputs() - 1);
    if (serialized.rank() != 0) {
      return InvalidArgument("Expected serialized to be a scalar, got shape: ",
                             serialized.shape().ToString());
    }
    if (empty.rank() != 1) {
      return InvalidArgument(
          "Expected feature_list_dense_missing_assumed_empty to be a vector, "
          "got shape: ",
          empty.shape().ToString());
    }
    auto example = SequenceRecord::Parse(serialized.scalar<std::string>());
    ColumnRows rows;
    rows.names = &name;
    rows.batched = false;
    if (!example.ok()) {
      return InvalidArgument(rows.NameOf(0),
                             ", Could not parse SequenceExample: ", example.status().message());
    }
    RETURN_IF_ERROR(ParseContext(example->context(), rows, ctx));
    return ParseLists(*example, rows, ctx);
  }

 private:
  // Inputs: serialized, missing_assumed_empty, context sparse keys, context dense keys, list sparse
  // keys, list dense keys, context defaults, debug_name.
  static constexpr int kFirstKey = 2;

  Status ParseContext(const ExampleRecord& context, ColumnRows& rows, KernelContext& ctx) const {
    const int sparse = context_.num_sparse(), dense = context_.num_dense();
    const int defaults = kFirstKey + sparse + dense + lists_.num_sparse() + lists_.num_dense();
    for (int i = 0; i < sparse + dense; ++i) {
      ASSIGN_OR_RETURN(rows.key, Key(ctx, kFirstKey + i, "context keys"));
      ASSIGN_OR_RETURN(auto feature, context.Find(rows.key));
      rows.features = {std::move(feature)};
      if (i < sparse) {
        RETURN_IF_ERROR(ParseSparseColumn(rows, context_.sparse_types[i], ctx,
                                          {i, sparse + i, 2 * sparse + i}));
        continue;
      }
      const int d = i - sparse;
      const DenseColumn column = {context_.dense_types[d], context_.dense_shapes[d],
                                  ctx.input(defaults + d)};
      RETURN_IF_ERROR(column.Check(d));
      RETURN_IF_ERROR(column.Parse(rows, ctx, 3 * sparse + d));
    }
    return OkStatus();
  }

  Status ParseLists(const SequenceRecord& example, ColumnRows& rows, KernelContext& ctx) const {
    const int first_key = kFirstKey + context_.num_sparse() + context_.num_dense();
    const int first_output = 3 * context_.num_sparse() + context_.num_dense();
    const int sparse = lists_.num_sparse();
    rows.batched = true;  // steps are rows
    for (int i = 0; i < sparse + lists_.num_dense(); ++i) {
      ASSIGN_OR_RETURN(rows.key, Key(ctx, first_key + i, "feature_list keys"));
      RETURN_IF_ERROR(TakeSteps(example, i >= sparse, ctx, &rows));
      const int output = first_output + i;
      if (i < sparse) {
        RETURN_IF_ERROR(ParseSparseColumn(rows, lists_.sparse_types[i], ctx,
                                          {output, output + sparse, output + 2 * sparse}));
        continue;
      }
      const int d = i - sparse;
      const DenseColumn column = {lists_.dense_types[d], lists_.dense_shapes[d],
                                  Tensor(lists_.dense_types[d], Shape({0}))};
      RETURN_IF_ERROR(column.Parse(rows, ctx, first_output + 3 * sparse + d));
    }
    return OkStatus();
  }

  // The steps of the list rows->key, as rows. A dense list must be there, or be named as one that
  // is empty where it is not.
  static Status TakeSteps(const SequenceRecord& example, bool required, const KernelContext& ctx,
                          ColumnRows* rows) {
    rows->features.clear();
    ASSIGN_OR_RETURN(auto steps, example.FindList(rows->key));
    const auto may_miss = ctx.input(1).flat<std::string>();
    if (!steps && required &&
        std::find(may_miss.begin(), may_miss.end(), rows->key) == may_miss.end()) {
      return InvalidArgument(rows->NameOf(0), ", Feature list '", rows->key,
                             "' is required but could not be found.  Did you mean to include it in "
                             "feature_list_dense_missing_assumed_empty or "
                             "feature_list_dense_defaults?");
    }
    if (!steps) return OkStatus();
    for (Feature& step : *steps) {
      const bool empty = step.dtype == DType::kInvalid;
      rows->features.push_back(empty ? std::nullopt : std::optional(std::move(step)));
    }
    return OkStatus();
  }

  Side context_, lists_;
};

Status ParseSingleSequenceExampleShape(ShapeScope& s) {
  constexpr int64_t kUnknown = PartialShape::kUnknown;
  RETURN_IF_ERROR(s.WithRank(0, 0).status());
  int output = 0;
  const auto sparse = [&](string_view count, string_view types, int64_t rank) -> Status {
    ASSIGN_OR_RETURN(const int n, NumSparse(s, count, types));
    for (int i = 0; i < n; ++i, ++output) {
      s.set_output(output, PartialShape({kUnknown, rank}));
      s.set_output(output + n, PartialShape({kUnknown}));
      s.set_output(output + 2 * n, PartialShape({rank}));
    }
    output += 2 * n;
    return OkStatus();
  };
  const auto dense = [&](const char* shapes, bool steps) {
    const auto* list = s.attrs().find(shapes)->second.get<std::vector<PartialShape>>();
    if (list == nullptr) return;
    for (const PartialShape& each : *list) {
      if (output == s.num_outputs()) return;
      Dims dims(each.dims().begin(), each.dims().end());
      if (steps) dims.insert(dims.begin(), kUnknown);
      s.set_output(output++, each.known_rank() ? PartialShape(dims) : PartialShape());
    }
  };
  RETURN_IF_ERROR(sparse("Ncontext_sparse", "context_sparse_types", 1));
  dense("context_dense_shapes", false);
  RETURN_IF_ERROR(sparse("Nfeature_list_sparse", "feature_list_sparse_types", 2));
  dense("feature_list_dense_shapes", true);
  return OkStatus();
}

OP(ParseSingleSequenceExample,
   {
       .doc = "The context and the feature lists of one serialized SequenceExample.",
       .inputs = {{"serialized", "string"},
                  {"feature_list_dense_missing_assumed_empty", "string"},
                  {"context_sparse_keys", Repeat("Ncontext_sparse", "string")},
                  {"context_dense_keys", Repeat("Ncontext_dense", "string")},
                  {"feature_list_sparse_keys", Repeat("Nfeature_list_sparse", "string")},
                  {"feature_list_dense_keys", Repeat("Nfeature_list_dense", "string")},
                  {"context_dense_defaults", List("Tcontext_dense")},
                  {"debug_name", "string"}},
       .outputs = {{"context_sparse_indices", Repeat("Ncontext_sparse", "int64")},
                   {"context_sparse_values", List("context_sparse_types")},
                   {"context_sparse_shapes", Repeat("Ncontext_sparse", "int64")},
                   {"context_dense_values", List("Tcontext_dense")},
                   {"feature_list_sparse_indices", Repeat("Nfeature_list_sparse", "int64")},
                   {"feature_list_sparse_values", List("feature_list_sparse_types")},
                   {"feature_list_sparse_shapes", Repeat("Nfeature_list_sparse", "int64")},
                   {"feature_list_dense_values", List("feature_list_dense_types")}},
       .attrs = {{"Ncontext_sparse", Ints{.min = 0}, 0},
                 {"Ncontext_dense", Ints{.min = 0}, 0},
                 {"Nfeature_list_sparse", Ints{.min = 0}, 0},
                 {"Nfeature_list_dense", Ints{.min = 0}, 0},
                 {"context_sparse_types", TypeList{.allowed = kFeature}, EmptyList()},
                 {"Tcontext_dense", TypeList{.allowed = kFeature}, EmptyList()},
                 {"feature_list_dense_types", TypeList{.allowed = kFeature}, EmptyList()},
                 {"context_dense_shapes", ShapeList{}, EmptyList()},
                 {"feature_list_sparse_types", TypeList{.allowed = kFeature}, EmptyList()},
                 {"feature_list_dense_shapes", ShapeList{}, EmptyList()}},
       .shape = ParseSingleSequenceExampleShape,
       .gradient = NoGradient,
   });
KERNEL_ANY_TYPE(ParseSingleSequenceExample, ParseSingleSequenceExampleKernel);

}  // namespace
}  // namespace penstock

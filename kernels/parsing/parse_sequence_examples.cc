// SPDX-License-Identifier: Apache-2.0
//
// ParseSequenceExample, ParseSequenceExampleV2: parse the contexts and the feature lists of a batch
// of serialized SequenceExamples, or of a single one.
#include <algorithm>
#include <utility>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/parsing/columns.h"
#include "kernels/parsing/parse_sequences.h"

namespace penstock {
namespace {

// The keys are attributes; there are no ragged columns.
class ParseSequenceExampleKernel final : public ParseSequencesKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(ParseSequencesKernel::Init(node));
    RETURN_IF_ERROR(node.Attr("context_sparse_keys", &context_.sparse_keys));
    RETURN_IF_ERROR(node.Attr("context_dense_keys", &context_.dense_keys));
    RETURN_IF_ERROR(node.Attr("feature_list_sparse_keys", &lists_.sparse_keys));
    RETURN_IF_ERROR(node.Attr("feature_list_dense_keys", &lists_.dense_keys));
    std::vector<std::string> may_miss;
    RETURN_IF_ERROR(node.Attr("feature_list_dense_missing_assumed_empty", &may_miss));
    for (const std::string& key : lists_.dense_keys) {
      lists_.may_miss.push_back(std::find(may_miss.begin(), may_miss.end(), key) != may_miss.end());
    }
    return OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    return Parse(context_, lists_, {.names = 1, .defaults = 2}, ctx);
  }
};

// The keys are inputs.
class ParseSequenceExampleV2Kernel final : public ParseSequencesKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(ParseSequencesKernel::Init(node));
    RETURN_IF_ERROR(node.Attr("context_ragged_value_types", &context_.ragged_types));
    RETURN_IF_ERROR(node.Attr("feature_list_ragged_value_types", &lists_.ragged_types));
    std::vector<DType> splits;
    RETURN_IF_ERROR(node.Attr("context_ragged_split_types", &splits));
    RETURN_IF_ERROR(CheckSameSize("context_ragged_split_types", splits,
                                  "context_ragged_value_types", context_.ragged_types));
    RETURN_IF_ERROR(node.Attr("feature_list_ragged_split_types", &splits));
    return CheckSameSize("feature_list_ragged_split_types", splits,
                         "feature_list_ragged_value_types", lists_.ragged_types);
  }

  Status Compute(KernelContext& ctx) override {
    FeatureRequest context = context_;
    FeatureListRequest lists = lists_;
    std::vector<std::string>* const keys[] = {&context.sparse_keys, &context.dense_keys,
                                              &context.ragged_keys, &lists.sparse_keys,
                                              &lists.dense_keys,    &lists.ragged_keys};
    constexpr int kFirstKeys = 2, kMayMiss = 8, kDefaults = 9;
    for (int i = 0; i < 6; ++i) {
      const auto values = ctx.input(kFirstKeys + i).flat<std::string>();
      keys[i]->assign(values.begin(), values.end());
    }
    const auto may_miss = ctx.input(kMayMiss).flat<bool>();
    if (may_miss.size() != lists.dense_keys.size()) {
      return InvalidArgument("feature_list_dense_missing_assumed_empty has ", may_miss.size(),
                             " elements, feature_list_dense_keys ", lists.dense_keys.size());
    }
    lists.may_miss.assign(may_miss.begin(), may_miss.end());
    return Parse(std::move(context), std::move(lists), {.names = 1, .defaults = kDefaults}, ctx);
  }
};

// Sets the shapes of the outputs one after the other, in the order in which the ops declare them.
class ShapesInOrder {
 public:
  explicit ShapesInOrder(ShapeScope& s) : s_(s), batch_(s.input(0)) {}

  Status Sparse(string_view count, string_view types, int levels) {
    ASSIGN_OR_RETURN(const int n, NumSparse(s_, count, types));
    const int64_t rank = batch_.known_rank() ? batch_.rank() + levels : kUnknown;
    Add(n, PartialShape({kUnknown, rank}));
    Add(n, PartialShape({kUnknown}));
    Add(n, PartialShape({rank}));
    return OkStatus();
  }
  // Sets the shapes of dense columns. With `lists`, adds a dimension for the steps.
  void Dense(const char* shapes, bool lists) {
    const auto* list = s_.attrs().find(shapes)->second.get<std::vector<PartialShape>>();
    if (list == nullptr) return;
    for (const PartialShape& each : *list) {
      PartialShape shape = batch_;
      if (lists && shape.known_rank()) shape.AddDim(kUnknown);
      if (!each.known_rank()) shape = PartialShape();
      for (int d = 0; shape.known_rank() && d < each.rank(); ++d) shape.AddDim(each.dim(d));
      Add(1, shape);
    }
    if (lists) Add(static_cast<int>(list->size()), batch_);
  }
  // Sets the shapes of the remaining outputs, of the context or of all columns, to vectors.
  void Vectors(const char* types, int outputs_of_each) {
    const auto* list = s_.attrs().find(types)->second.get<std::vector<EdgeType>>();
    Add(list == nullptr ? 0 : static_cast<int>(list->size()) * outputs_of_each,
        PartialShape({kUnknown}));
  }

 private:
  static constexpr int64_t kUnknown = PartialShape::kUnknown;
  void Add(int count, const PartialShape& shape) {
    for (int i = 0; i < count && output_ < s_.num_outputs(); ++i) s_.set_output(output_++, shape);
  }

  ShapeScope& s_;
  const PartialShape batch_;
  int output_ = 0;
};

template <bool kRagged>
Status SequenceShapes(ShapeScope& s) {
  if (s.input(0).known_rank() && s.input(0).rank() > 1) {
    return InvalidArgument("serialized must be a scalar or a vector, has shape ",
                           s.input(0).ToString());
  }
  ShapesInOrder shapes(s);
  RETURN_IF_ERROR(shapes.Sparse("Ncontext_sparse", "context_sparse_types", 1));
  shapes.Dense("context_dense_shapes", false);
  if (kRagged) shapes.Vectors("context_ragged_value_types", 2);
  RETURN_IF_ERROR(shapes.Sparse("Nfeature_list_sparse", "feature_list_sparse_types", 2));
  shapes.Dense("feature_list_dense_shapes", true);
  if (kRagged) shapes.Vectors("feature_list_ragged_value_types", 3);
  return OkStatus();
}

std::vector<AttrDef> CommonAttrs() {
  return {{"Ncontext_sparse", Ints{.min = 0}, 0},
          {"Nfeature_list_sparse", Ints{.min = 0}, 0},
          {"Nfeature_list_dense", Ints{.min = 0}, 0},
          {"context_sparse_types", TypeList{.allowed = kFeatureTypes}, EmptyList()},
          {"Tcontext_dense", TypeList{.allowed = kFeatureTypes}, EmptyList()},
          {"feature_list_dense_types", TypeList{.allowed = kFeatureTypes}, EmptyList()},
          {"context_dense_shapes", ShapeList{}, EmptyList()},
          {"feature_list_sparse_types", TypeList{.allowed = kFeatureTypes}, EmptyList()},
          {"feature_list_dense_shapes", ShapeList{}, EmptyList()}};
}

OpDef ParseSequenceExampleOp() {
  OpDef op = {
      .doc =
          "Parses serialized SequenceExamples into contexts and feature lists. Attributes "
          "name the features.",
      .inputs = {{"serialized", "string"},
                 {"debug_name", "string"},
                 {"context_dense_defaults", List("Tcontext_dense")}},
      .outputs = {{"context_sparse_indices", Repeat("Ncontext_sparse", "int64")},
                  {"context_sparse_values", List("context_sparse_types")},
                  {"context_sparse_shapes", Repeat("Ncontext_sparse", "int64")},
                  {"context_dense_values", List("Tcontext_dense")},
                  {"feature_list_sparse_indices", Repeat("Nfeature_list_sparse", "int64")},
                  {"feature_list_sparse_values", List("feature_list_sparse_types")},
                  {"feature_list_sparse_shapes", Repeat("Nfeature_list_sparse", "int64")},
                  {"feature_list_dense_values", List("feature_list_dense_types")},
                  {"feature_list_dense_lengths", Repeat("Nfeature_list_dense", "int64")}},
      .attrs = CommonAttrs(),
      .shape = SequenceShapes<false>,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{0}}}, {{{0}}}, {}}}},
  };
  op.attrs.push_back({"Ncontext_dense", Ints{.min = 0}, 0});
  for (const char* keys :
       {"feature_list_dense_missing_assumed_empty", "context_sparse_keys", "context_dense_keys",
        "feature_list_sparse_keys", "feature_list_dense_keys"}) {
    op.attrs.push_back({keys, StringList{}, EmptyList()});
  }
  return op;
}

OpDef ParseSequenceExampleV2Op() {
  OpDef op = {
      .doc =
          "Parses serialized SequenceExamples into contexts and feature lists. Inputs name "
          "the features.",
      .inputs = {{"serialized", "string"},
                 {"debug_name", "string"},
                 {"context_sparse_keys", "string"},
                 {"context_dense_keys", "string"},
                 {"context_ragged_keys", "string"},
                 {"feature_list_sparse_keys", "string"},
                 {"feature_list_dense_keys", "string"},
                 {"feature_list_ragged_keys", "string"},
                 {"feature_list_dense_missing_assumed_empty", "bool"},
                 {"context_dense_defaults", List("Tcontext_dense")}},
      .outputs = {{"context_sparse_indices", Repeat("Ncontext_sparse", "int64")},
                  {"context_sparse_values", List("context_sparse_types")},
                  {"context_sparse_shapes", Repeat("Ncontext_sparse", "int64")},
                  {"context_dense_values", List("Tcontext_dense")},
                  {"context_ragged_values", List("context_ragged_value_types")},
                  {"context_ragged_row_splits", List("context_ragged_split_types")},
                  {"feature_list_sparse_indices", Repeat("Nfeature_list_sparse", "int64")},
                  {"feature_list_sparse_values", List("feature_list_sparse_types")},
                  {"feature_list_sparse_shapes", Repeat("Nfeature_list_sparse", "int64")},
                  {"feature_list_dense_values", List("feature_list_dense_types")},
                  {"feature_list_dense_lengths", Repeat("Nfeature_list_dense", "int64")},
                  {"feature_list_ragged_values", List("feature_list_ragged_value_types")},
                  {"feature_list_ragged_outer_splits", List("feature_list_ragged_split_types")},
                  {"feature_list_ragged_inner_splits", List("feature_list_ragged_split_types")}},
      .attrs = CommonAttrs(),
      .shape = SequenceShapes<true>,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{0}}},
                               {{{0}}},
                               {{{0}}},
                               {{{0}}},
                               {{{0}}},
                               {{{0}}},
                               {{{0}}},
                               {{{0}}},
                               {{{0}}},
                               {}}}},
  };
  const DTypes splits = {DType::kInt32, DType::kInt64};
  op.attrs.push_back(
      {"context_ragged_value_types", TypeList{.allowed = kFeatureTypes}, EmptyList()});
  op.attrs.push_back({"context_ragged_split_types", TypeList{.allowed = splits}, EmptyList()});
  op.attrs.push_back(
      {"feature_list_ragged_value_types", TypeList{.allowed = kFeatureTypes}, EmptyList()});
  op.attrs.push_back({"feature_list_ragged_split_types", TypeList{.allowed = splits}, EmptyList()});
  return op;
}

OP(ParseSequenceExample) { return ParseSequenceExampleOp(); }
OP(ParseSequenceExampleV2) { return ParseSequenceExampleV2Op(); }
KERNEL_ANY_TYPE(ParseSequenceExample, ParseSequenceExampleKernel);
KERNEL_ANY_TYPE(ParseSequenceExampleV2, ParseSequenceExampleV2Kernel);

}  // namespace
}  // namespace penstock

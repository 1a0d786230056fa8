// SPDX-License-Identifier: Apache-2.0
//
// ParseSingleSequenceExample: parses one serialized SequenceExample: the features of its context
// and its feature lists, into dense and sparse tensors.
#include <algorithm>
#include <utility>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/parsing/columns.h"
#include "kernels/parsing/parse_sequences.h"

namespace penstock {
namespace {

// The kernel. Keys are scalar inputs; there are no ragged columns.
class ParseSingleSequenceExampleKernel final : public ParseSequencesKernel {
 public:
  Status Init(const KernelInit& node) override {
    lists_.lengths = false;
    return ParseSequencesKernel::Init(node);
  }

  Status Compute(KernelContext& ctx) override {
    RETURN_IF_ERROR(CheckRank(ctx.input(0), 0, "serialized"));
    RETURN_IF_ERROR(CheckRank(ctx.input(1), 1, "feature_list_dense_missing_assumed_empty"));
    FeatureRequest context = context_;
    FeatureListRequest lists = lists_;
    int input = 2;
    RETURN_IF_ERROR(TakeKeys(ctx, context_.sparse_types.size(), &input, &context.sparse_keys));
    RETURN_IF_ERROR(TakeKeys(ctx, num_context_dense(), &input, &context.dense_keys));
    RETURN_IF_ERROR(TakeKeys(ctx, lists_.sparse_types.size(), &input, &lists.sparse_keys));
    RETURN_IF_ERROR(TakeKeys(ctx, lists_.dense_types.size(), &input, &lists.dense_keys));
    const auto may_miss = ctx.input(1).flat<std::string>();
    for (const std::string& key : lists.dense_keys) {
      lists.may_miss.push_back(std::find(may_miss.begin(), may_miss.end(), key) != may_miss.end());
    }
    return Parse(std::move(context), std::move(lists),
                 {.names = ctx.num_inputs() - 1, .defaults = input}, ctx);
  }

 private:
  static Status CheckRank(const Tensor& tensor, int rank, string_view name) {
    if (tensor.rank() == rank) return OkStatus();
    return InvalidArgument("Expected ", name, " to be a ", rank == 0 ? "scalar" : "vector",
                           ", got shape: ", tensor.shape().ToString());
  }

  // Reads `count` keys from the inputs that begin at `*input`, and advances `*input`.
  // InvalidArgument if a key is not a scalar.
  static Status TakeKeys(const KernelContext& ctx, size_t count, int* input,
                         std::vector<std::string>* keys) {
    for (size_t i = 0; i < count; ++i, ++*input) {
      const Tensor& key = ctx.input(*input);
      if (key.num_elements() != 1) {
        return InvalidArgument("Expected keys to be scalars, got shape: ", key.shape().ToString());
      }
      keys->push_back(key.scalar<std::string>());
    }
    return OkStatus();
  }
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

OP(ParseSingleSequenceExample) {
  return {
      .doc = "Parses one serialized SequenceExample into its context and its feature lists.",
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
                {"context_sparse_types", TypeList{.allowed = kFeatureTypes}, EmptyList()},
                {"Tcontext_dense", TypeList{.allowed = kFeatureTypes}, EmptyList()},
                {"feature_list_dense_types", TypeList{.allowed = kFeatureTypes}, EmptyList()},
                {"context_dense_shapes", ShapeList{}, EmptyList()},
                {"feature_list_sparse_types", TypeList{.allowed = kFeatureTypes}, EmptyList()},
                {"feature_list_dense_shapes", ShapeList{}, EmptyList()}},
      .shape = ParseSingleSequenceExampleShape,
      .gradient = NoGradient,
      .untestable_alone = "needs serialized bytes: kernels/parsing has its tests",
  };
}
KERNEL_ANY_TYPE(ParseSingleSequenceExample, ParseSingleSequenceExampleKernel);

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// ParseExample, ParseExampleV2, ParseSingleExample: parse the features of serialized training
// records, each into a dense, sparse or ragged tensor.
#include <algorithm>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/parsing/features.h"

namespace penstock {
namespace {

class ParseKernel : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("sparse_types", &sparse_types_));
    RETURN_IF_ERROR(node.Attr("Tdense", &dense_types_));
    RETURN_IF_ERROR(node.Attr("dense_shapes", &dense_shapes_));
    for (const DType dtype : sparse_types_) {
      RETURN_IF_ERROR(CheckFeatureType(dtype, "sparse_types"));
    }
    if (dense_shapes_.size() != dense_types_.size()) {
      return InvalidArgument("dense_shapes has ", dense_shapes_.size(), " entries, Tdense ",
                             dense_types_.size());
    }
    return OkStatus();
  }

 protected:
  // Adds the dense columns to *request. `defaults`: the index of the first input of dense_defaults.
  // InvalidArgument if the keys, types, shapes and defaults do not fit each other.
  Status AddDense(std::vector<std::string> keys, const KernelContext& ctx, int defaults,
                  FeatureRequest* request) const {
    request->dense_keys = std::move(keys);
    if (request->dense_keys.size() != dense_types_.size()) {
      return InvalidArgument("there are ", request->dense_keys.size(), " dense_keys for ",
                             dense_types_.size(), " Tdense");
    }
    for (size_t i = 0; i < dense_types_.size(); ++i) {
      request->dense.push_back(
          {dense_types_[i], dense_shapes_[i], ctx.input(defaults + static_cast<int>(i))});
      RETURN_IF_ERROR(request->dense.back().Check(static_cast<int>(i)));
    }
    return OkStatus();
  }

  Status AddSparse(std::vector<std::string> keys, FeatureRequest* request) const {
    if (keys.size() != sparse_types_.size()) {
      return InvalidArgument("there are ", keys.size(), " sparse_keys for ", sparse_types_.size(),
                             " sparse_types");
    }
    request->sparse_keys = std::move(keys);
    request->sparse_types = sparse_types_;
    return OkStatus();
  }

  // Parses the features of `serialized`, a vector of records or a scalar with one record, into the
  // outputs. `names`: the records' names for errors, or null.
  static Status Parse(const FeatureRequest& request, const Tensor& serialized, const Tensor* names,
                      KernelContext& ctx) {
    if (serialized.rank() > 1) {
      return InvalidArgument("Expected serialized to be a scalar or vector, got shape: ",
                             serialized.shape().ToString());
    }
    if (names != nullptr && names->num_elements() > 0 &&
        names->num_elements() != serialized.num_elements()) {
      return InvalidArgument("names has ", names->num_elements(), " elements, serialized ",
                             serialized.num_elements());
    }
    ColumnRows rows;
    rows.names = names;
    rows.batched = serialized.rank() == 1;
    const auto bytes = serialized.flat<std::string>();
    std::vector<ExampleRecord> examples(bytes.size());
    constexpr int64_t kRecordNanos = 200;
    RETURN_IF_ERROR(ForEachRow(rows, serialized.num_elements(), kRecordNanos, ctx, [&](int64_t i) {
      auto example = ExampleRecord::Parse(bytes[i]);
      if (example.ok()) examples[i] = *std::move(example);
      return example.status();
    }));
    return ParseFeatures(
        request, [&](int64_t i) -> const ExampleRecord& { return examples[i]; },
        serialized.num_elements(), &rows, ctx);
  }

 private:
  std::vector<DType> sparse_types_, dense_types_;
  std::vector<PartialShape> dense_shapes_;
};

Status CheckVector(const Tensor& tensor, string_view name) {
  if (tensor.rank() == 1) return OkStatus();
  return InvalidArgument("Expected ", name,
                         " to be a vector, got shape: ", tensor.shape().ToString());
}

// The keys are scalar inputs.
class ParseExampleKernel final : public ParseKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("Nsparse", &num_sparse_));
    RETURN_IF_ERROR(node.Attr("Ndense", &num_dense_));
    return ParseKernel::Init(node);
  }

  Status Compute(KernelContext& ctx) override {
    RETURN_IF_ERROR(CheckVector(ctx.input(0), "serialized"));
    FeatureRequest request;
    ASSIGN_OR_RETURN(auto sparse, Keys(ctx, 2, num_sparse_, "sparse_keys"));
    ASSIGN_OR_RETURN(auto dense, Keys(ctx, 2 + num_sparse_, num_dense_, "dense_keys"));
    RETURN_IF_ERROR(AddSparse(std::move(sparse), &request));
    RETURN_IF_ERROR(AddDense(std::move(dense), ctx, 2 + num_sparse_ + num_dense_, &request));
    return Parse(request, ctx.input(0), &ctx.input(1), ctx);
  }

 private:
  static StatusOr<std::vector<std::string>> Keys(const KernelContext& ctx, int first, int count,
                                                 string_view name) {
    std::vector<std::string> keys;
    for (int i = 0; i < count; ++i) {
      const Tensor& key = ctx.input(first + i);
      if (key.num_elements() != 1) {
        return InvalidArgument("Expected ", name, "[", i,
                               "] to be a scalar, got shape: ", key.shape().ToString());
      }
      keys.push_back(key.scalar<std::string>());
    }
    return keys;
  }

  int num_sparse_ = 0, num_dense_ = 0;
};

// The keys are vector inputs.
class ParseExampleV2Kernel final : public ParseKernel {
 public:
  Status Init(const KernelInit& node) override {
    int num_sparse = 0;
    RETURN_IF_ERROR(node.Attr("num_sparse", &num_sparse));
    RETURN_IF_ERROR(node.Attr("ragged_value_types", &ragged_types_));
    std::vector<DType> split_types;
    RETURN_IF_ERROR(node.Attr("ragged_split_types", &split_types));
    if (split_types.size() != ragged_types_.size()) {
      return InvalidArgument("there are ", split_types.size(), " ragged_split_types for ",
                             ragged_types_.size(), " ragged_value_types");
    }
    for (const DType dtype : ragged_types_) {
      RETURN_IF_ERROR(CheckFeatureType(dtype, "ragged_value_types"));
    }
    RETURN_IF_ERROR(ParseKernel::Init(node));
    const auto sparse_types = node.attrs.find("sparse_types")->second.get<std::vector<EdgeType>>();
    const size_t types = sparse_types == nullptr ? 0 : sparse_types->size();
    if (types == static_cast<size_t>(num_sparse)) return OkStatus();
    return InvalidArgument("num_sparse is ", num_sparse, ", there are ", types, " sparse_types");
  }

  Status Compute(KernelContext& ctx) override {
    constexpr int kSparse = 2, kDense = 3, kRagged = 4, kDefaults = 5;
    const auto keys = [&](int input) {
      const auto values = ctx.input(input).flat<std::string>();
      return std::vector<std::string>(values.begin(), values.end());
    };
    RETURN_IF_ERROR(CheckVector(ctx.input(kSparse), "sparse_keys"));
    RETURN_IF_ERROR(CheckVector(ctx.input(kDense), "dense_keys"));
    RETURN_IF_ERROR(CheckVector(ctx.input(kRagged), "ragged_keys"));
    FeatureRequest request;
    RETURN_IF_ERROR(AddSparse(keys(kSparse), &request));
    RETURN_IF_ERROR(AddDense(keys(kDense), ctx, kDefaults, &request));
    request.ragged_keys = keys(kRagged);
    request.ragged_types = ragged_types_;
    if (request.ragged_keys.size() != ragged_types_.size()) {
      return InvalidArgument("there are ", request.ragged_keys.size(), " ragged_keys for ",
                             ragged_types_.size(), " ragged_value_types");
    }
    return Parse(request, ctx.input(0), &ctx.input(1), ctx);
  }

 private:
  std::vector<DType> ragged_types_;
};

// The keys are attributes. The op parses one record.
class ParseSingleExampleKernel final : public ParseKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("sparse_keys", &sparse_keys_));
    RETURN_IF_ERROR(node.Attr("dense_keys", &dense_keys_));
    int num_sparse = 0;
    RETURN_IF_ERROR(node.Attr("num_sparse", &num_sparse));
    if (static_cast<size_t>(num_sparse) != sparse_keys_.size()) {
      return InvalidArgument("num_sparse is ", num_sparse, ", there are ", sparse_keys_.size(),
                             " sparse_keys");
    }
    return ParseKernel::Init(node);
  }

  Status Compute(KernelContext& ctx) override {
    if (ctx.input(0).rank() != 0) {
      return InvalidArgument("Expected serialized to be a scalar, got shape: ",
                             ctx.input(0).shape().ToString());
    }
    FeatureRequest request;
    RETURN_IF_ERROR(AddSparse(sparse_keys_, &request));
    RETURN_IF_ERROR(AddDense(dense_keys_, ctx, 1, &request));
    return Parse(request, ctx.input(0), nullptr, ctx);
  }

 private:
  std::vector<std::string> sparse_keys_, dense_keys_;
};

// Sets the shapes of `count` sparse tensors, and of the dense tensors that the attributes declare,
// from output 0 on. `batch`: the shape of the serialized records.
Status ParsedShapes(ShapeScope& s, int count, const PartialShape& batch) {
  constexpr int64_t kUnknown = PartialShape::kUnknown;
  if (!batch.known_rank()) return UnknownShape(s);
  const int64_t rank = batch.rank() + 1;
  for (int i = 0; i < count; ++i) {
    s.set_output(i, PartialShape({kUnknown, rank}));
    s.set_output(count + i, PartialShape({kUnknown}));
    s.set_output(2 * count + i, PartialShape({rank}));
  }
  int output = 3 * count;
  const auto* shapes = s.attrs().find("dense_shapes")->second.get<std::vector<PartialShape>>();
  if (shapes == nullptr) return OkStatus();
  for (const PartialShape& dense : *shapes) {
    PartialShape shape = batch;
    if (!dense.known_rank()) {
      shape = PartialShape();
    } else {
      for (const int64_t dim : dense.dims()) shape.AddDim(dim);
    }
    if (output < s.num_outputs()) s.set_output(output++, shape);
  }
  return OkStatus();
}

Status ParseExampleShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape batch, s.WithRank(0, 1));
  ASSIGN_OR_RETURN(const int sparse, NumSparse(s, "Nsparse", "sparse_types"));
  return ParsedShapes(s, sparse, batch);
}

Status ParseExampleV2Shape(ShapeScope& s) {
  const PartialShape& batch = s.input(0);
  if (batch.known_rank() && batch.rank() > 1) {
    return InvalidArgument("serialized must be a scalar or a vector, has shape ", batch.ToString());
  }
  ASSIGN_OR_RETURN(const int sparse, NumSparse(s, "num_sparse", "sparse_types"));
  RETURN_IF_ERROR(ParsedShapes(s, sparse, batch));
  const auto* ragged = s.attrs().find("ragged_value_types")->second.get<std::vector<EdgeType>>();
  const int count = ragged == nullptr ? 0 : static_cast<int>(ragged->size());
  // The attributes may declare fewer splits than values; the kernel reports that.
  for (int i = std::max(0, s.num_outputs() - 2 * count); i < s.num_outputs(); ++i) {
    s.set_output(i, PartialShape({PartialShape::kUnknown}));
  }
  return OkStatus();
}

Status ParseSingleExampleShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape batch, s.WithRank(0, 0));
  ASSIGN_OR_RETURN(const int sparse, NumSparse(s, "num_sparse", "sparse_types"));
  return ParsedShapes(s, sparse, batch);
}

// Values of example inputs cannot be serialized records, so the example call requests no features.
const Attrs kNoFeatures = {
    {"Tdense", EmptyList()}, {"sparse_types", EmptyList()}, {"dense_shapes", EmptyList()}};
Attrs With(Attrs more) {
  more.insert(kNoFeatures.begin(), kNoFeatures.end());
  return more;
}

OP(ParseExample) {
  return {
      .doc = "Parses serialized Examples into dense and sparse tensors, one for each feature.",
      .inputs = {{"serialized", "string"},
                 {"names", "string"},
                 {"sparse_keys", Repeat("Nsparse", "string")},
                 {"dense_keys", Repeat("Ndense", "string")},
                 {"dense_defaults", List("Tdense")}},
      .outputs = {{"sparse_indices", Repeat("Nsparse", "int64")},
                  {"sparse_values", List("sparse_types")},
                  {"sparse_shapes", Repeat("Nsparse", "int64")},
                  {"dense_values", List("Tdense")}},
      .attrs = {{"Nsparse", Ints{.min = 0}},
                {"Ndense", Ints{.min = 0}},
                {"sparse_types", TypeList{.allowed = kFeatureTypes}},
                {"Tdense", TypeList{.allowed = kFeatureTypes}},
                {"dense_shapes", ShapeList{}}},
      .shape = ParseExampleShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{0}}}, {{{0}}}, {}, {}, {}},
                    .attrs = With({{"Nsparse", 0}, {"Ndense", 0}})}},
  };
}
KERNEL_ANY_TYPE(ParseExample, ParseExampleKernel);

OP(ParseExampleV2) {
  return {
      .doc =
          "Parses a serialized Example, or a vector of them, into dense, sparse and ragged "
          "tensors, one for each feature.",
      .inputs = {{"serialized", "string"},
                 {"names", "string"},
                 {"sparse_keys", "string"},
                 {"dense_keys", "string"},
                 {"ragged_keys", "string"},
                 {"dense_defaults", List("Tdense")}},
      .outputs = {{"sparse_indices", Repeat("num_sparse", "int64")},
                  {"sparse_values", List("sparse_types")},
                  {"sparse_shapes", Repeat("num_sparse", "int64")},
                  {"dense_values", List("Tdense")},
                  {"ragged_values", List("ragged_value_types")},
                  {"ragged_row_splits", List("ragged_split_types")}},
      .attrs = {{"Tdense", TypeList{.allowed = kFeatureTypes}},
                {"num_sparse", Ints{.min = 0}},
                {"sparse_types", TypeList{.allowed = kFeatureTypes}},
                {"ragged_value_types", TypeList{.allowed = kFeatureTypes}},
                {"ragged_split_types", TypeList{.allowed = {DType::kInt32, DType::kInt64}}},
                {"dense_shapes", ShapeList{}}},
      .shape = ParseExampleV2Shape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{0}}}, {{{0}}}, {{{0}}}, {{{0}}}, {{{0}}}, {}},
                    .attrs = With({{"num_sparse", 0},
                                   {"ragged_value_types", EmptyList()},
                                   {"ragged_split_types", EmptyList()}})}},
  };
}
KERNEL_ANY_TYPE(ParseExampleV2, ParseExampleV2Kernel);

OP(ParseSingleExample) {
  return {
      .doc =
          "Parses one serialized Example into dense and sparse tensors, one for each "
          "feature.",
      .inputs = {{"serialized", "string"}, {"dense_defaults", List("Tdense")}},
      .outputs = {{"sparse_indices", Repeat("num_sparse", "int64")},
                  {"sparse_values", List("sparse_types")},
                  {"sparse_shapes", Repeat("num_sparse", "int64")},
                  {"dense_values", List("Tdense")}},
      .attrs = {{"num_sparse", Ints{.min = 0}},
                {"sparse_keys", StringList{}},
                {"dense_keys", StringList{}},
                {"sparse_types", TypeList{.allowed = kFeatureTypes}},
                {"Tdense", TypeList{.allowed = kFeatureTypes}},
                {"dense_shapes", ShapeList{}}},
      .shape = ParseSingleExampleShape,
      .gradient = NoGradient,
      .untestable_alone = "needs serialized bytes: kernels/parsing has its tests",
  };
}
KERNEL_ANY_TYPE(ParseSingleExample, ParseSingleExampleKernel);

}  // namespace
}  // namespace penstock

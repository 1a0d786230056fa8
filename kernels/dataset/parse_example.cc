// SPDX-License-Identifier: Apache-2.0
//
// ParseExampleDataset, ParseExampleDatasetV2: parse the features of batches of serialized records,
// with the kernel of ParseExampleV2.
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "core/op/registry.h"
#include "kernels/dataset/dataset_kernel.h"
#include "kernels/dataset/parallelism.h"
#include "kernels/sparse/tensor_value.h"

namespace penstock {
namespace {

// The features to parse, and the component of an element that each becomes. Components are sorted
// by key.
struct Features {
  std::vector<std::string> sparse_keys, dense_keys;
  std::vector<DType> sparse_types, dense_types;
  std::vector<Tensor> dense_defaults;
  std::shared_ptr<Kernel> parse;
  std::vector<EdgeType> parsed_types;  // the types of the kernel's outputs

  int num_sparse() const { return static_cast<int>(sparse_keys.size()); }

  // Parses one batch. The kernel returns indices, values and shapes as separate outputs.
  Status Parse(const IteratorContext& ctx, const Tensor& serialized, Element* element) const {
    std::vector<Tensor> inputs = {serialized, Tensor(DType::kString, Shape({0})),
                                  Tensor::Vector(sparse_keys), Tensor::Vector(dense_keys),
                                  Tensor(DType::kString, Shape({0}))};
    inputs.insert(inputs.end(), dense_defaults.begin(), dense_defaults.end());
    std::vector<Tensor> outputs(parsed_types.size());
    static const std::string name = "ParseExampleDataset";
    StepContext step{.step_id = ctx.step_id,
                     .resources = ctx.resources,
                     .cancellation = ctx.cancellation,
                     .threads = ctx.threads,
                     .env = ctx.env};
    KernelContext context({.step = &step,
                           .node_name = &name,
                           .device_name = &name,
                           .allocator = &CpuAllocator(),
                           .host_allocator = &CpuAllocator(),
                           .inputs = inputs.data(),
                           .outputs = outputs.data(),
                           .output_types = parsed_types.data(),
                           .num_inputs = static_cast<int>(inputs.size()),
                           .num_outputs = static_cast<int>(outputs.size())});
    RETURN_IF_ERROR(parse->Compute(context));
    return Arrange(std::move(outputs), element);
  }

 private:
  Status Arrange(std::vector<Tensor> outputs, Element* element) const {
    std::map<std::string, Tensor> by_key;
    for (int i = 0; i < num_sparse(); ++i) {
      Tensor parts(DType::kVariant, Shape({3}));
      for (int part = 0; part < 3; ++part) {
        ASSIGN_OR_RETURN(parts.mutable_data<Variant>()[part],
                         TensorValue::Of(std::move(outputs[part * num_sparse() + i])));
      }
      by_key[sparse_keys[i]] = std::move(parts);
    }
    for (size_t i = 0; i < dense_keys.size(); ++i) {
      by_key[dense_keys[i]] = std::move(outputs[3 * num_sparse() + i]);
    }
    element->clear();
    for (auto& [key, value] : by_key) element->push_back(std::move(value));
    return OkStatus();
  }
};

class ParseExampleDataset final : public Dataset {
 public:
  ParseExampleDataset(ElementSpec spec, DatasetPtr input, std::shared_ptr<const Features> features)
      : Dataset(std::move(spec), {std::move(input)}), features_(std::move(features)) {}
  const char* Name() const override { return "ParseExample"; }
  int64_t Cardinality() const override { return input().Cardinality(); }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext& ctx) const override {
    ASSIGN_OR_RETURN(IteratorPtr input, this->input().NewIterator(ctx));
    return std::make_unique<Iterator>(features_, std::move(input));
  }

 private:
  class Iterator final : public UnaryIterator {
   public:
    Iterator(std::shared_ptr<const Features> features, IteratorPtr input)
        : UnaryIterator(std::move(input)), features_(std::move(features)) {}
    Status GetNext(const IteratorContext& ctx, Element* element, bool* end) override {
      Element batch;
      RETURN_IF_ERROR(input_->GetNext(ctx, &batch, end));
      if (*end) return OkStatus();
      if (batch.size() != 1 || batch[0].dtype() != DType::kString || batch[0].rank() != 1) {
        return InvalidArgument("Expected the input of ParseExampleDataset to be vectors of ",
                               "strings");
      }
      return features_->Parse(ctx, batch[0], element);
    }

   private:
    const std::shared_ptr<const Features> features_;
  };

  const std::shared_ptr<const Features> features_;
};

class ParseExampleKernel final : public DatasetKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("sparse_keys", &features_.sparse_keys));
    RETURN_IF_ERROR(node.Attr("sparse_types", &features_.sparse_types));
    RETURN_IF_ERROR(node.Attr("dense_keys", &features_.dense_keys));
    RETURN_IF_ERROR(node.Attr("Tdense", &features_.dense_types));
    RETURN_IF_ERROR(node.Attr("dense_shapes", &dense_shapes_));
    if (node.attrs.contains("ragged_keys")) {
      std::vector<std::string> ragged;
      RETURN_IF_ERROR(node.Attr("ragged_keys", &ragged));
      if (!ragged.empty()) {
        return Unimplemented("ragged features ('", ragged[0],
                             "') in a dataset: parse them in a function of Map");
      }
    }
    if (features_.sparse_keys.size() != features_.sparse_types.size() ||
        features_.dense_keys.size() != features_.dense_types.size()) {
      return InvalidArgument("there must be as many sparse_types as sparse_keys, and as many ",
                             "Tdense as dense_keys");
    }
    node_ = node.name;
    device_ = node.device;
    RETURN_IF_ERROR(MakeParser());
    return DatasetKernel::Init(node);
  }

 private:
  Status MakeParser() {
    ASSIGN_OR_RETURN(const OpDef* const op, Registry::Global().GetOp("ParseExampleV2"));
    Attrs attrs = {{"Tdense", features_.dense_types},        {"num_sparse", features_.num_sparse()},
                   {"sparse_types", features_.sparse_types}, {"ragged_value_types", EmptyList()},
                   {"ragged_split_types", EmptyList()},      {"dense_shapes", dense_shapes_}};
    RETURN_IF_ERROR(CompleteAttrs(*op, &attrs));
    std::vector<EdgeType> inputs;
    for (const ArgDef& arg : op->inputs) RETURN_IF_ERROR(AppendArgTypes(arg, attrs, &inputs));
    for (const ArgDef& arg : op->outputs) {
      RETURN_IF_ERROR(AppendArgTypes(arg, attrs, &features_.parsed_types));
    }
    const KernelInit init{.name = node_,
                          .op = *op,
                          .attrs = attrs,
                          .device = device_,
                          .input_types = inputs,
                          .output_types = features_.parsed_types};
    ASSIGN_OR_RETURN(features_.parse, Registry::Global().MakeKernel("CPU", init));
    return OkStatus();
  }

  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx));
    // Only checks num_parallel_calls, because the rows of a batch are parsed in parallel in any
    // case.
    RETURN_IF_ERROR(ParallelCallsInput(ctx, 1).status());
    Features features = features_;
    for (int i = 2; i < ctx.num_inputs(); ++i) features.dense_defaults.push_back(ctx.input(i));
    return std::make_shared<ParseExampleDataset>(
        spec(), std::move(input), std::make_shared<const Features>(std::move(features)));
  }

  std::string node_, device_;
  std::vector<PartialShape> dense_shapes_;
  Features features_;  // without defaults
};

const DTypes kFeatureTypes = {DType::kFloat, DType::kInt64, DType::kString};

DatasetOp ParseOp(AttrDef order, bool ragged) {
  DatasetOp op{.doc =
                   "Parses batches of serialized Examples into one component for each feature, "
                   "sorted by key.",
               .inputs = {{"input_dataset", "variant"},
                          {"num_parallel_calls", "int64"},
                          {"dense_defaults", List("Tdense")}},
               .attrs = {{"sparse_keys", StringList{}},
                         {"dense_keys", StringList{}},
                         {"sparse_types", TypeList{.allowed = kFeatureTypes}},
                         {"Tdense", TypeList{.allowed = kFeatureTypes}},
                         {"dense_shapes", ShapeList{}},
                         TypesAttr("output_types", 1),
                         {"output_shapes", ShapeList{}},
                         std::move(order)},
               .spec = false,
               .metadata = false};
  if (!ragged) return op;
  op.attrs.push_back({"ragged_keys", StringList{}, EmptyList()});
  op.attrs.push_back({"ragged_value_types", TypeList{.allowed = kFeatureTypes}, EmptyList()});
  op.attrs.push_back(
      {"ragged_split_types", TypeList{.allowed = {DType::kInt32, DType::kInt64}}, EmptyList()});
  return op;
}

OP(ParseExampleDataset) { return ParseOp({"sloppy", false}, true); }
OP(ExperimentalParseExampleDataset) { return ParseOp({"sloppy", false}, false); }
OP(ParseExampleDatasetV2) { return ParseOp({"deterministic", "default"}, true); }
KERNEL_ANY_TYPE(ParseExampleDataset, ParseExampleKernel);
KERNEL_ANY_TYPE(ExperimentalParseExampleDataset, ParseExampleKernel);
KERNEL_ANY_TYPE(ParseExampleDatasetV2, ParseExampleKernel);

}  // namespace
}  // namespace penstock

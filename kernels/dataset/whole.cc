// SPDX-License-Identifier: Apache-2.0
//
// Ops that return tensors from a dataset: ReduceDataset and DatasetToSingleElement read it,
// DatasetCardinality does not.
#include <memory>
#include <utility>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "kernels/dataset/dataset_kernel.h"
#include "kernels/dataset/element_shapes.h"
#include "kernels/dataset/iterator_resource.h"

namespace penstock {
namespace {

// Reads the dataset of input 0 through an iterator that only this call uses.
class ReadingKernel : public AsyncKernel {
 public:
  Status Init(const KernelInit& node) override { return ReadSpec(node, &spec_); }
  bool WaitsForNodes() const final { return false; }
  void ComputeAsync(KernelContext& ctx, Done done) final {
    auto iterator = std::make_shared<IteratorResource>(ElementSpec(), ctx.threads());
    iterator->Run(
        ContextOf(ctx),
        [this, &ctx, &iterator = *iterator](const IteratorContext& context,
                                            IteratorResource::Content& content) -> Status {
          ASSIGN_OR_RETURN(DatasetPtr dataset, DatasetInput(ctx));
          RETURN_IF_ERROR(iterator.SetDataset(context, std::move(dataset), content));
          Element results;
          RETURN_IF_ERROR(Read(ctx, context, *content.iterator, &results));
          return SetOutputs(ctx, std::move(results));
        },
        Done([done = std::move(done), iterator](Status status) mutable {
          std::move(done)(std::move(status));
        }));
  }

 protected:
  virtual Status Read(KernelContext& ctx, const IteratorContext& context, DatasetIterator& iterator,
                      Element* results) const = 0;

 private:
  Status SetOutputs(KernelContext& ctx, Element results) const {
    ElementSpec found;
    for (const Tensor& result : results) {
      found.types.push_back(result.dtype());
      found.shapes.push_back(result.shape());
    }
    RETURN_IF_ERROR(CheckTypes(spec_, found));
    RETURN_IF_ERROR(CheckShapes(spec_, found));
    for (size_t i = 0; i < results.size(); ++i) {
      ctx.SetOutput(static_cast<int>(i), std::move(results[i]));
    }
    return OkStatus();
  }

  ElementSpec spec_;
};

class ReduceKernel final : public ReadingKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(function_.Init(node, "f", "Targuments"));
    return ReadingKernel::Init(node);
  }

 private:
  Status Read(KernelContext& ctx, const IteratorContext& context, DatasetIterator& iterator,
              Element* results) const override {
    const int after = ctx.num_inputs() - function_.num_captured();
    ASSIGN_OR_RETURN(const CapturedFunction function, function_.Capture(ctx, after));
    ASSIGN_OR_RETURN(const ElementCall call, ElementCall::New(context, function));
    Element state;
    for (int i = 1; i < after; ++i) state.push_back(ctx.input(i));
    while (true) {
      if (context.cancellation->cancelled()) return context.cancellation->status();
      Element args = state, next;
      bool end = false;
      RETURN_IF_ERROR(iterator.GetNext(context, &next, &end));
      if (end) break;
      args.insert(args.end(), next.begin(), next.end());
      RETURN_IF_ERROR(call.Run(context, std::move(args), &state));
    }
    *results = std::move(state);
    return OkStatus();
  }

  FunctionAttr function_;
};

class SingleElementKernel final : public ReadingKernel {
  Status Read(KernelContext&, const IteratorContext& context, DatasetIterator& iterator,
              Element* results) const override {
    bool end = false;
    RETURN_IF_ERROR(iterator.GetNext(context, results, &end));
    if (end) return InvalidArgument("Dataset was empty.");
    Element second;
    RETURN_IF_ERROR(iterator.GetNext(context, &second, &end));
    return end ? OkStatus() : InvalidArgument("Dataset had more than one element.");
  }
};

class CardinalityKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const DatasetPtr dataset, DatasetInput(ctx));
    ctx.SetOutput(0, Tensor::Scalar(dataset->Cardinality()));
    return OkStatus();
  }
};

constexpr char kUntestableAlone[] = "reads a dataset: kernels/dataset has its tests";

OP(ReduceDataset) {
  return {
      .doc =
          "Reduces a dataset: applies a function to a state and each element, and returns "
          "the last state.",
      .inputs = {{"input_dataset", "variant"},
                 {"initial_state", List("Tstate")},
                 {"other_arguments", List("Targuments")}},
      .outputs = {{"components", List("output_types")}},
      .attrs = {{"f", Functions{}},
                TypesAttr("Tstate", 1),
                TypesAttr("Targuments", 0),
                TypesAttr("output_types", 1),
                {"output_shapes", ShapeList{}},
                {"use_inter_op_parallelism", true},
                {"metadata", ""}},
      .shape = ElementShapes,
      .gradient = NoGradient,
      .stateful = true,
      .untestable_alone = kUntestableAlone,
  };
}

OP(DatasetToSingleElement) {
  return {
      .doc = "Returns the components of the only element of a dataset.",
      .inputs = {{"dataset", "variant"}},
      .outputs = {{"components", List("output_types")}},
      .attrs = {TypesAttr("output_types", 1), {"output_shapes", ShapeList{}}, {"metadata", ""}},
      .shape = ElementShapes,
      .gradient = NoGradient,
      .stateful = true,
      .untestable_alone = kUntestableAlone,
  };
}

OpDef CardinalityOp() {
  return {
      .doc =
          "Returns the number of elements of a dataset; -1 if it is infinite, -2 if it is "
          "unknown.",
      .inputs = {{"input_dataset", "variant"}},
      .outputs = {{"cardinality", "int64"}},
      .shape = ScalarShape,
      .gradient = NoGradient,
      .untestable_alone = kUntestableAlone,
  };
}
OP(DatasetCardinality) {
  OpDef op = CardinalityOp();
  op.attrs = {{"cardinality_options", ""}};
  return op;
}
OP(ExperimentalDatasetCardinality) { return CardinalityOp(); }

KERNEL_ANY_TYPE(ReduceDataset, ReduceKernel);
KERNEL_ANY_TYPE(DatasetToSingleElement, SingleElementKernel);
KERNEL_ANY_TYPE(DatasetCardinality, CardinalityKernel);
KERNEL_ANY_TYPE(ExperimentalDatasetCardinality, CardinalityKernel);

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// ScanDataset: a function of a state and an element returns the next state and an output element.
#include <memory>
#include <utility>

#include "core/op/registry.h"
#include "kernels/dataset/dataset_kernel.h"
#include "kernels/dataset/map.h"

namespace penstock {
namespace {

class ScanDataset final : public Dataset {
 public:
  ScanDataset(ElementSpec spec, DatasetPtr input, CapturedFunction function, Element state,
              bool keeps_count)
      : Dataset(std::move(spec), {std::move(input)}),
        function_(std::move(function)),
        state_(std::move(state)),
        keeps_count_(keeps_count) {}
  const char* Name() const override { return "Scan"; }
  int64_t Cardinality() const override {
    return keeps_count_ ? input().Cardinality() : kUnknownCardinality;
  }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext& ctx) const override {
    ASSIGN_OR_RETURN(IteratorPtr input, this->input().NewIterator(ctx));
    ASSIGN_OR_RETURN(ElementCall call, ElementCall::New(ctx, function_));
    return std::make_unique<Iterator>(Self(this), std::move(input), std::move(call));
  }

 private:
  class Iterator final : public UnaryIterator {
   public:
    Iterator(std::shared_ptr<const ScanDataset> dataset, IteratorPtr input, ElementCall call)
        : UnaryIterator(std::move(input)),
          dataset_(std::move(dataset)),
          call_(std::move(call)),
          state_(dataset_->state_) {}
    bool NeverWaits() const override { return !call_.waits() && input_->NeverWaits(); }
    Status GetNext(const IteratorContext& ctx, Element* element, bool* end) override {
      Element next;
      RETURN_IF_ERROR(input_->GetNext(ctx, &next, end));
      if (*end) return OkStatus();
      Element args = state_, results;
      args.insert(args.end(), next.begin(), next.end());
      const Status status =
          MapEnded(call_.Run(ctx, std::move(args), &results), dataset_->keeps_count_, end);
      if (!status.ok() || *end) return status;
      if (results.size() < state_.size()) {
        return InvalidArgument("the function of a scan must return the ", state_.size(),
                               " tensors of the state first; it returns ", results.size());
      }
      const auto outputs = results.begin() + static_cast<int64_t>(state_.size());
      element->assign(outputs, results.end());
      state_.assign(results.begin(), outputs);
      return OkStatus();
    }
    Status Save(const IteratorContext& ctx, StateWriter* writer) override {
      writer->Label("Scan");
      writer->Values(state_);
      return UnaryIterator::Save(ctx, writer);
    }
    Status Restore(const IteratorContext& ctx, StateReader* reader) override {
      RETURN_IF_ERROR(reader->Label("Scan"));
      ElementSpec spec;
      for (const Tensor& part : dataset_->state_) spec.types.push_back(part.dtype());
      ASSIGN_OR_RETURN(state_, reader->ElementOf(spec));
      return UnaryIterator::Restore(ctx, reader);
    }

   private:
    const std::shared_ptr<const ScanDataset> dataset_;
    const ElementCall call_;
    Element state_;
  };

  const CapturedFunction function_;
  const Element state_;
  const bool keeps_count_;
};

class ScanKernel final : public MappingKernel {
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx));
    const int after = ctx.num_inputs() - mapping().num_captured();
    Element state;
    for (int i = 1; i < after; ++i) state.push_back(ctx.input(i));
    ASSIGN_OR_RETURN(CapturedFunction function, mapping().Capture(ctx, after));
    return std::make_shared<ScanDataset>(spec(), std::move(input), std::move(function),
                                         std::move(state), keeps_count());
  }
};

DatasetOp ScanOp(bool experimental) {
  DatasetOp op{.doc =
                   "Applies a function to a state and each element of a dataset. The function "
                   "returns the next state and the new element.",
               .inputs = {{"input_dataset", "variant"},
                          {"initial_state", List("Tstate")},
                          {"other_arguments", List("Targuments")}},
               .attrs = {{"f", Functions{}},
                         TypesAttr("Tstate", 1),
                         TypesAttr("Targuments", 0),
                         TypesAttr("output_types", 1),
                         {"output_shapes", ShapeList{}},
                         {"preserve_cardinality", false}},
               .spec = false,
               .metadata = !experimental};
  if (!experimental) op.attrs.push_back({"use_default_device", true});
  return op;
}
OP(ScanDataset) { return ScanOp(false); }
OP(ExperimentalScanDataset) { return ScanOp(true); }
KERNEL_ANY_TYPE(ScanDataset, ScanKernel);
KERNEL_ANY_TYPE(ExperimentalScanDataset, ScanKernel);

}  // namespace
}  // namespace penstock

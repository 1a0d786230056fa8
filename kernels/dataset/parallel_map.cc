// SPDX-License-Identifier: Apache-2.0
//
// ParallelMapDataset, ParallelMapDatasetV2: apply a function to each element, to several at a time.
//
// The caller of GetNext reads the input and begins calls, which run on the pool, until the maximum
// number is running. Then it waits for the oldest call, so that it returns results in the order of
// the input.
#include <memory>
#include <utility>

#include "core/op/registry.h"
#include "kernels/dataset/compose.h"
#include "kernels/dataset/dataset_kernel.h"
#include "kernels/dataset/map.h"
#include "kernels/dataset/parallel_calls.h"
#include "kernels/dataset/parallelism.h"

namespace penstock {
namespace {

class ParallelMapDataset final : public Dataset {
 public:
  ParallelMapDataset(ElementSpec spec, DatasetPtr input, CapturedFunction function,
                     int64_t parallel, bool keeps_count)
      : Dataset(std::move(spec), {std::move(input)}),
        function_(std::move(function)),
        parallel_(parallel),
        keeps_count_(keeps_count) {}
  const char* Name() const override { return "ParallelMap"; }
  int64_t Cardinality() const override {
    return keeps_count_ ? input().Cardinality() : kUnknownCardinality;
  }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext& ctx) const override {
    ASSIGN_OR_RETURN(IteratorPtr input, this->input().NewIterator(ctx));
    ASSIGN_OR_RETURN(ElementCall call, ElementCall::New(ctx, function_));
    return std::make_unique<Iterator>(ctx, Self(this), std::move(input), std::move(call));
  }

 private:
  class Iterator final : public UnaryIterator {
   public:
    Iterator(const IteratorContext& ctx, std::shared_ptr<const ParallelMapDataset> dataset,
             IteratorPtr input, ElementCall call)
        : UnaryIterator(std::move(input)),
          dataset_(std::move(dataset)),
          calls_(ctx, std::move(call)) {}
    bool NeverWaits() const override { return false; }

    Status GetNext(const IteratorContext& ctx, Element* element, bool* end) override {
      RETURN_IF_ERROR(BeginCalls(ctx));
      *end = calls_.empty();
      if (*end) return input_error_.ok() ? OkStatus() : std::exchange(input_error_, OkStatus());
      RETURN_IF_ERROR(calls_.WaitForFirst(ctx));
      return MapEnded(calls_.TakeFirst(element), dataset_->keeps_count_, end);
    }

    Status Save(const IteratorContext& ctx, StateWriter* writer) override {
      writer->Label("ParallelMap");
      writer->Int(input_ended_);
      writer->Error(input_error_);
      RETURN_IF_ERROR(calls_.Save(ctx, writer));
      return UnaryIterator::Save(ctx, writer);
    }
    Status Restore(const IteratorContext& ctx, StateReader* reader) override {
      RETURN_IF_ERROR(reader->Label("ParallelMap"));
      ASSIGN_OR_RETURN(input_ended_, reader->Int(0, 1));
      RETURN_IF_ERROR(reader->Error(&input_error_));
      RETURN_IF_ERROR(calls_.Restore(dataset_->spec(), reader));
      return UnaryIterator::Restore(ctx, reader);
    }

   private:
    Status BeginCalls(const IteratorContext& ctx) {
      while (!input_ended_ && input_error_.ok() && calls_.size() < dataset_->parallel_) {
        Element args;
        bool end = false;
        const Status status = input_->GetNext(ctx, &args, &end);
        if (ctx.cancellation->cancelled()) return ctx.cancellation->status();
        if (!status.ok()) {
          input_error_ = status;  // returned after the results of the running calls
        } else if (end) {
          input_ended_ = true;
        } else {
          calls_.Begin(ctx, std::move(args));
        }
      }
      return OkStatus();
    }

    const std::shared_ptr<const ParallelMapDataset> dataset_;
    bool input_ended_ = false;
    Status input_error_;
    ParallelCalls calls_;
  };

  const CapturedFunction function_;
  const int64_t parallel_;
  const bool keeps_count_;
};

class ParallelMapKernel final : public MappingKernel {
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx));
    ASSIGN_OR_RETURN(CapturedFunction function, mapping().Capture(ctx, 1));
    ASSIGN_OR_RETURN(const int64_t parallel, ParallelCallsInput(ctx, 1 + mapping().num_captured()));
    return NewParallelMapDataset(spec(), std::move(input), std::move(function), parallel,
                                 keeps_count());
  }
};

constexpr char kParallelMapDoc[] =
    "Applies a function to each element of a dataset, to up to `num_parallel_calls` "
    "elements at the same time. The order is kept.";

OP(ParallelMapDataset) {
  return DatasetOp{.doc = kParallelMapDoc,
                   .inputs = {{"input_dataset", "variant"},
                              {"other_arguments", List("Targuments")},
                              {"num_parallel_calls", "int32"}},
                   .attrs = {{"f", Functions{}},
                             TypesAttr("Targuments", 0),
                             TypesAttr("output_types", 1),
                             {"output_shapes", ShapeList{}},
                             {"use_inter_op_parallelism", true},
                             {"sloppy", false},
                             {"preserve_cardinality", false}},
                   .spec = false};
}

OP(ParallelMapDatasetV2) {
  return DatasetOp{.doc = kParallelMapDoc,
                   .inputs = {{"input_dataset", "variant"},
                              {"other_arguments", List("Targuments")},
                              {"num_parallel_calls", "int64"}},
                   .attrs = {{"f", Functions{}},
                             TypesAttr("Targuments", 0),
                             TypesAttr("output_types", 1),
                             {"output_shapes", ShapeList{}},
                             {"use_inter_op_parallelism", true},
                             {"deterministic", "default"},
                             {"preserve_cardinality", false},
                             {"use_unbounded_threadpool", false}},
                   .spec = false};
}

KERNEL_ANY_TYPE(ParallelMapDataset, ParallelMapKernel);
KERNEL_ANY_TYPE(ParallelMapDatasetV2, ParallelMapKernel);

}  // namespace

DatasetPtr NewParallelMapDataset(ElementSpec spec, DatasetPtr input, CapturedFunction function,
                                 int64_t parallel, bool keeps_count) {
  return std::make_shared<ParallelMapDataset>(std::move(spec), std::move(input),
                                              std::move(function), parallel, keeps_count);
}

}  // namespace penstock

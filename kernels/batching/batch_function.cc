// SPDX-License-Identifier: Apache-2.0
//
// BatchFunction: joins the inputs of concurrent steps, calls a function once for each batch, and
// distributes the rows of its results to the steps.
#include <memory>
#include <utility>

#include "core/base/mutex.h"
#include "core/callable/callable.h"
#include "core/functions/embedded_functions.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/batching/batch_rows.h"
#include "kernels/batching/batcher_kernel.h"

namespace penstock {
namespace {

// A function with the library that defines it.
struct NamedFunction {
  FunctionName name;
  std::string library;
  bool operator==(const NamedFunction& other) const = default;
};

StatusOr<std::vector<std::vector<Tensor>>> CutResults(const Batcher::Batch& batch,
                                                      int64_t padded_rows,
                                                      const std::vector<Tensor>& results) {
  std::vector<std::vector<Tensor>> cut(batch.parts.size());
  for (const Tensor& result : results) {
    if (result.rank() == 0) return FailedPrecondition("Batched output tensor has 0 dimensions");
    if (result.dim(0) != padded_rows) {
      return FailedPrecondition("Batched output tensor's 0th dimension does not equal the sum of ",
                                "the 0th dimension sizes of the input tensors. 0th dimension ",
                                "size: ", result.dim(0), "; batch size: ", batch.rows,
                                "; padding size: ", padded_rows - batch.rows);
    }
    int64_t begin = 0;
    for (size_t p = 0; p < cut.size(); ++p) {
      const int64_t end = begin + batch.parts[p].rows;
      ASSIGN_OR_RETURN(Tensor rows, CopyRows(result, begin, end));
      cut[p].push_back(std::move(rows));
      begin = end;
    }
  }
  return cut;
}

class CallFunction final : public BatchWork {
 public:
  CallFunction(std::shared_ptr<const NamedFunction> function, std::shared_ptr<Callable::Call> call,
               std::vector<Tensor> captured, const KernelContext& ctx)
      : function_(std::move(function)),
        call_(std::move(call)),
        captured_(std::move(captured)),
        resources_(ctx.step().resources),
        step_id_(ctx.step().step_id) {}

  bool CanShareBatch(const BatchWork& other) const override {
    const auto* same = dynamic_cast<const CallFunction*>(&other);
    if (same == nullptr) return false;
    return same->function_ == function_ || *same->function_ == *function_;
  }

  void Run(std::shared_ptr<Batcher> batcher, std::shared_ptr<Batcher::Batch> batch) const override {
    std::vector<Tensor> args;
    const int inputs = static_cast<int>(batch->parts.front().request->inputs.size());
    for (int i = 0; i < inputs; ++i) {
      StatusOr<Tensor> rows = JoinInputs(*batch, i, batcher->options());
      if (!rows.ok()) return batcher->End(batch, rows.status(), {});
      args.push_back(*std::move(rows));
    }
    args.insert(args.end(), captured_.begin(), captured_.end());
    const CallPlace place = {
        .resources = resources_, .cancellation = &batch->cancellation, .step_id = step_id_};
    // The call lives long enough: this work owns the call, and a request of the batch owns the
    // work.
    call_->RunAsync(place, std::move(args),
                    [batcher, batch](const Status& status, const std::vector<Tensor>& results) {
                      if (!status.ok()) return batcher->End(batch, status, {});
                      auto cut =
                          CutResults(*batch, batcher->options().PaddedRows(batch->rows), results);
                      if (!cut.ok()) return batcher->End(batch, cut.status(), {});
                      batcher->End(batch, OkStatus(), *std::move(cut));
                    });
  }

 private:
  const std::shared_ptr<const NamedFunction> function_;
  const std::shared_ptr<Callable::Call> call_;
  const std::vector<Tensor> captured_;
  // The resources of the device. The Batcher is one of them, so all steps that use it have these
  // resources.
  ResourceStore* const resources_;
  const int64_t step_id_;
};

class BatchFunctionKernel final : public BatcherKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(InitShared(node));
    ASSIGN_OR_RETURN(options_, BatchOptions::ReadForFunction(node));
    std::vector<DType> types;
    RETURN_IF_ERROR(node.Attr("Tin", &types));
    num_inputs_ = static_cast<int>(types.size());
    for (const EdgeType& type : node.output_types) result_types_.push_back(type.dtype);
    auto function = std::make_shared<NamedFunction>();
    RETURN_IF_ERROR(node.Attr("f", &function->name));
    // If the graph contains no such function, the attribute is missing. Compiling reports that.
    if (node.attrs.contains(kFunctionsAttr)) {
      RETURN_IF_ERROR(node.Attr(kFunctionsAttr, &function->library));
    }
    function_ = std::move(function);
    return OkStatus();
  }

  void ComputeAsync(KernelContext& ctx, Done done) override {
    auto batcher = FindBatcher(ctx, options_);
    if (!batcher.ok()) return std::move(done)(batcher.status());
    auto request = MakeRequest(ctx, num_inputs_);
    if (!request.ok()) return std::move(done)(request.status());
    auto call = Compile(ctx);
    if (!call.ok()) return std::move(done)(call.status());
    std::vector<Tensor> captured;
    for (int i = num_inputs_; i < ctx.num_inputs(); ++i) captured.push_back(ctx.input(i));
    (*request)->work =
        std::make_shared<CallFunction>(function_, *std::move(call), std::move(captured), ctx);
    AddTo(**batcher, *std::move(request), ctx, std::move(done));
  }

 private:
  // Compiles the function at the first execution. If that fails, the next execution tries again.
  StatusOr<std::shared_ptr<Callable::Call>> Compile(const KernelContext& ctx) {
    MutexLock lock(mu_);
    if (call_ != nullptr) return call_;
    ASSIGN_OR_RETURN(const std::shared_ptr<const Callable> callable,
                     Callable::Make({.library = function_->library,
                                     .function = function_->name,
                                     .device = ctx.device_name(),
                                     .threads = ctx.step().threads,
                                     .env = ctx.step().env}));
    if (callable->result_types() != result_types_) {
      return InvalidArgument("function '", function_->name.name, "' must have the ",
                             result_types_.size(), " results that Tout says, has ",
                             callable->result_types().size(), " or others");
    }
    ASSIGN_OR_RETURN(call_, callable->NewCall());
    return call_;
  }

  BatchOptions options_;
  int num_inputs_ = 0;
  std::vector<DType> result_types_;
  std::shared_ptr<const NamedFunction> function_;
  Mutex mu_;
  std::shared_ptr<Callable::Call> call_ ABSL_GUARDED_BY(mu_);
};

OP(BatchFunction) {
  return {
      .doc =
          "Joins the rows of concurrent executions of nodes with the same container, shared_name "
          "and batching_queue as Batch does, calls f once for all of them, and returns to each "
          "execution its rows of the results. All results of f must have as many rows as its "
          "arguments. The captured tensors are those of one of the executions. An execution with "
          "more rows than the largest of allowed_batch_sizes is split if "
          "enable_large_batch_splitting. With the batch_padding_policy BATCH_DOWN, a batch returns "
          "rows to the queue, instead of being padded, if only complete executions then remain in "
          "the batch. No execution has a low priority, so low_priority_* and mixed_priority_policy "
          "change nothing; without the costs of a TPU, MINIMIZE_TPU_COST_PER_REQUEST pads as "
          "PAD_UP does.",
      .inputs = {{"in_tensors", List("Tin")}, {"captured_tensors", List("Tcaptured")}},
      .outputs = {{"out_tensors", List("Tout")}},
      .attrs = {{"f", Functions{}},
                {"num_batch_threads", Ints{}},
                {"max_batch_size", Ints{}},
                {"batch_timeout_micros", Ints{}},
                {"max_enqueued_batches", 10},
                {"allowed_batch_sizes", IntList{}, std::vector<int64_t>()},
                {"container", ""},
                {"shared_name", ""},
                {"batching_queue", ""},
                {"low_priority_max_batch_size", 0},
                {"low_priority_batch_timeout_micros", 0},
                {"low_priority_allowed_batch_sizes", IntList{}, std::vector<int64_t>()},
                {"low_priority_max_enqueued_batches", 0},
                {"mixed_priority_policy",
                 OneOf{{"low_priority_padding_with_max_batch_size",
                        "low_priority_padding_with_next_allowed_batch_size", "priority_isolation",
                        "priority_merge"}},
                 "low_priority_padding_with_max_batch_size"},
                {"batch_padding_policy",
                 OneOf{{"PAD_UP", "BATCH_DOWN", "MINIMIZE_TPU_COST_PER_REQUEST"}}, "PAD_UP"},
                {"Tin", TypeList{.min_length = 1, .allowed = kAnyType}},
                {"Tcaptured", TypeList{.allowed = kAnyType}},
                {"Tout", TypeList{.min_length = 1, .allowed = kAnyType}},
                {"enable_large_batch_splitting", false}},
      .shape = UnknownShape,
      .stateful = true,
      .may_wait = true,
      .untestable_alone = "joins the inputs of several steps: kernels/batching has its tests",
  };
}
KERNEL_ANY_TYPE(BatchFunction, BatchFunctionKernel);

}  // namespace
}  // namespace penstock

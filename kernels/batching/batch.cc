// SPDX-License-Identifier: Apache-2.0
//
// Batch: joins the inputs of concurrent steps. One step of each batch gets all rows, the others get
// tensors without rows.
#include <memory>
#include <utility>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/batching/batch_rows.h"
#include "kernels/batching/batcher_kernel.h"

namespace penstock {
namespace {

// Returns the output batch_index: a row (id of the request, first row, last row + 1) for each part.
Tensor IndexOf(const Batcher::Batch& batch) {
  std::vector<int64_t> index;
  int64_t begin = 0;
  for (const Batcher::Part& part : batch.parts) {
    for (const int64_t number : {part.request->id, begin, begin + part.rows}) {
      index.push_back(number);
    }
    begin += part.rows;
  }
  return Tensor::Of<int64_t>({static_cast<int64_t>(batch.parts.size()), 3}, index);
}

// Returns the results of each part: the step of the batch's last request gets all rows.
StatusOr<std::vector<std::vector<Tensor>>> Distribute(const Batcher::Batch& batch,
                                                      const BatchOptions& options) {
  std::vector<std::vector<Tensor>> results(batch.parts.size());
  for (size_t p = 0; p < results.size(); ++p) {
    const Batcher::Request& request = *batch.parts[p].request;
    const bool is_last = p + 1 == results.size();
    for (size_t i = 0; i < request.inputs.size(); ++i) {
      const int input = static_cast<int>(i);
      ASSIGN_OR_RETURN(Tensor rows, is_last ? JoinInputs(batch, input, options)
                                            : JoinRows({request.inputs[i].Slice(0, 0)}, 0));
      results[p].push_back(std::move(rows));
    }
    results[p].push_back(is_last ? IndexOf(batch) : Tensor::Of<int64_t>({0, 3}, {}));
    results[p].push_back(Tensor::Scalar<int64_t>(request.id));
  }
  return results;
}

class DistributeRows final : public BatchWork {
 public:
  bool CanShareBatch(const BatchWork& other) const override {
    return dynamic_cast<const DistributeRows*>(&other) != nullptr;
  }
  void Run(std::shared_ptr<Batcher> batcher, std::shared_ptr<Batcher::Batch> batch) const override {
    auto results = Distribute(*batch, batcher->options());
    if (!results.ok()) return batcher->End(batch, results.status(), {});
    batcher->End(batch, OkStatus(), *std::move(results));
  }
};

class BatchKernel final : public BatcherKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(InitShared(node));
    ASSIGN_OR_RETURN(options_, BatchOptions::Read(node));
    return OkStatus();
  }
  void ComputeAsync(KernelContext& ctx, Done done) override {
    auto batcher = FindBatcher(ctx, options_);
    if (!batcher.ok()) return std::move(done)(batcher.status());
    auto request = MakeRequest(ctx, ctx.num_inputs());
    if (!request.ok()) return std::move(done)(request.status());
    (*request)->work = work_;
    AddTo(**batcher, *std::move(request), ctx, std::move(done));
  }

 private:
  BatchOptions options_;
  const std::shared_ptr<const BatchWork> work_ = std::make_shared<DistributeRows>();
};

Status BatchShape(ShapeScope& s) {
  for (int i = 0; i < s.num_inputs(); ++i) {
    ASSIGN_OR_RETURN(PartialShape rows, s.WithRankAtLeast(i, 1));
    if (rows.known_rank()) rows.set_dim(0, PartialShape::kUnknown);
    s.set_output(i, rows);
  }
  s.set_output(s.num_inputs(), PartialShape({PartialShape::kUnknown, 3}));
  s.set_output(s.num_inputs() + 1, PartialShape::Scalar());
  return OkStatus();
}

std::vector<Gradient> BatchGradient(const GradientScope& g) {
  std::vector<Gradient> dx;
  const int n = g.num_inputs();
  for (int i = 0; i < n; ++i) {
    dx.push_back(Call("Unbatch", {g.dy(i), g.y(n), g.y(n + 1)},
                      {{"timeout_micros", g.attr<int64_t>("grad_timeout_micros")},
                       {"container", g.attr<std::string>("container")},
                       {"shared_name", StrCat("batch_gradient_", g.node_name(), "_", i)}}));
  }
  return dx;
}

OP(Batch) {
  return {
      .doc =
          "Joins the rows of concurrent executions, in any steps, of nodes with the same container "
          "and shared_name. Waits until there are max_batch_size rows, or batch_timeout_micros "
          "have passed. One execution gets all rows and, in batch_index, a row (id, first row, "
          "last row + 1) for each execution; the others get tensors without rows. The rows are "
          "padded to one of allowed_batch_sizes by copies of the first one. Unavailable if "
          "max_enqueued_batches batches wait. Unbatch distributes the rows of the results.",
      .inputs = {{"in_tensors", List("T")}},
      .outputs = {{"batched_tensors", List("T")}, {"batch_index", "int64"}, {"id", "int64"}},
      .attrs = {{"num_batch_threads", Ints{}},
                {"max_batch_size", Ints{}},
                {"max_enqueued_batches", 10},
                {"batch_timeout_micros", Ints{}},
                {"allowed_batch_sizes", IntList{}, std::vector<int64_t>()},
                {"grad_timeout_micros", Ints{}},
                {"container", ""},
                {"shared_name", ""},
                {"batching_queue", ""},
                {"T", TypeList{.min_length = 1, .allowed = kAnyType}}},
      .shape = BatchShape,
      .gradient = BatchGradient,
      .stateful = true,
      .may_wait = true,
      .untestable_alone = "joins the inputs of several steps: kernels/batching has its tests",
  };
}
KERNEL_ANY_TYPE(Batch, BatchKernel);

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Unbatch: distributes the rows of a batch to the steps whose rows Batch joined; UnbatchGrad: joins
// the gradients of these steps.
#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "core/base/timeout.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/batching/batch_rows.h"
#include "kernels/batching/batcher_kernel.h"
#include "kernels/batching/row_exchange.h"
#include "kernels/data/handle_kernel.h"

namespace penstock {
namespace {

// How long UnbatchGrad keeps a gradient for the step that has the batch.
constexpr int64_t kGradientKeptNanos = int64_t{600} * 1'000'000'000;

// A row of batch_index: the rows [begin, end) of a batch belong to the execution `id` of Batch.
struct Share {
  int64_t id, begin, end;
};

// Reads a batch_index. InvalidArgument unless the shares follow each other, have distinct ids and
// lie within `rows` rows.
StatusOr<std::vector<Share>> ReadIndex(const Tensor& index, int64_t rows) {
  if (index.rank() != 2 || index.dim(1) != 3) {
    return InvalidArgument("batch_index must have shape [K, 3], has ", index.shape().ToString());
  }
  std::vector<Share> shares;
  std::set<int64_t> ids;
  int64_t end = 0;
  for (int64_t i = 0; i < index.dim(0); ++i) {
    const int64_t* const row = index.data<int64_t>() + 3 * i;
    shares.push_back({.id = row[0], .begin = row[1], .end = row[2]});
    if (row[1] != end || row[2] < row[1] || row[2] > rows) {
      return InvalidArgument("batch_index must cut ", rows, " rows into ranges that follow each ",
                             "other; range ", i, " is [", row[1], ", ", row[2], ") after ", end);
    }
    if (!ids.insert(row[0]).second) {
      return InvalidArgument("batch_index has the id ", row[0], " twice");
    }
    end = row[2];
  }
  return shares;
}

StatusOr<int64_t> ReadId(const Tensor& id) {
  if (id.rank() == 0) return id.scalar<int64_t>();
  return InvalidArgument("id must be a scalar, has shape ", id.shape().ToString());
}

Status CheckRank(const char* name, const Tensor& value) {
  if (value.rank() >= 1) return OkStatus();
  return InvalidArgument(name, " must have at least one dimension, is a scalar");
}

// Returns a Done that runs `done` on the pool, because a step must not continue on the thread of
// the step that it waited for.
Done ContinueOnPool(Scheduler& threads, Done done) {
  return Done([&threads, done = std::move(done)](Status status) mutable {
    threads.Schedule([done = std::move(done), status = std::move(status)]() mutable {
      std::move(done)(std::move(status));
    });
  });
}

class ExchangeKernel : public AsyncKernel {
 public:
  Status Init(const KernelInit& node) override { return shared_.Init(node); }
  void ComputeAsync(KernelContext& ctx, Done done) final {
    auto exchange = Find(ctx);
    if (!exchange.ok()) return std::move(done)(exchange.status());
    Exchange(ctx, **exchange, std::move(done));
  }

 protected:
  explicit ExchangeKernel(const char* type) : type_(type) {}
  virtual void Exchange(KernelContext& ctx, RowExchange& exchange, Done done) const = 0;

 private:
  StatusOr<std::shared_ptr<RowExchange>> Find(const KernelContext& ctx) const {
    const auto make = [&]() -> StatusOr<std::shared_ptr<Resource>> {
      return RowExchange::Make(type_, shared_.name, ctx.threads(), *ctx.step().env);
    };
    ASSIGN_OR_RETURN(
        const std::shared_ptr<Resource> found,
        ctx.resources().LookupOrCreate(shared_.container, shared_.name, type_, make, ctx.origin()));
    auto exchange = std::dynamic_pointer_cast<RowExchange>(found);
    if (exchange == nullptr) return Internal("'", shared_.name, "' is not a RowExchange");
    return exchange;
  }

  const char* const type_;
  SharedName shared_;
};

class UnbatchKernel final : public ExchangeKernel {
 public:
  UnbatchKernel() : ExchangeKernel("Unbatch") {}
  Status Init(const KernelInit& node) override {
    int64_t micros = 0;
    RETURN_IF_ERROR(node.Attr("timeout_micros", &micros));
    if (micros < 0) return InvalidArgument("timeout_micros must be at least 0, is ", micros);
    timeout_ns_ = std::min(micros, kTimeoutMsMax * 1000) * 1000;
    return ExchangeKernel::Init(node);
  }

 private:
  void Exchange(KernelContext& ctx, RowExchange& exchange, Done done) const override {
    const StatusOr<int64_t> id = ReadId(ctx.input(2));
    Status status = id.status();
    if (status.ok()) status = PutShares(ctx, *id, exchange);
    if (!status.ok()) return std::move(done)(std::move(status));
    const auto receive = [&ctx](std::vector<Tensor> rows) {
      ctx.SetOutput(0, std::move(rows.front()));
    };
    exchange.Take({*id}, timeout_ns_, receive, CallerOf(ctx),
                  ContinueOnPool(ctx.threads(), std::move(done)));
  }

  Status PutShares(const KernelContext& ctx, int64_t id, RowExchange& exchange) const {
    const Tensor& batch = ctx.input(0);
    RETURN_IF_ERROR(CheckRank("batched_tensor", batch));
    ASSIGN_OR_RETURN(const std::vector<Share> shares, ReadIndex(ctx.input(1), batch.dim(0)));
    if (shares.empty()) return OkStatus();
    std::vector<std::pair<int64_t, Tensor>> rows;
    bool has_own = false;
    for (const Share& share : shares) {
      has_own |= share.id == id;
      ASSIGN_OR_RETURN(Tensor copy, CopyRows(batch, share.begin, share.end));
      rows.emplace_back(share.id, std::move(copy));
    }
    if (!has_own) return InvalidArgument("batch_index has no row for the id ", id);
    return exchange.Put(std::move(rows), timeout_ns_, ctx.origin());
  }

  int64_t timeout_ns_ = 0;
};

class UnbatchGradKernel final : public ExchangeKernel {
 public:
  UnbatchGradKernel() : ExchangeKernel("UnbatchGrad") {}

 private:
  void Exchange(KernelContext& ctx, RowExchange& exchange, Done done) const override {
    std::vector<int64_t> ids;
    const Status status = PutGradient(ctx, exchange, &ids);
    if (!status.ok() || ids.empty()) return std::move(done)(status);
    auto results = std::make_shared<std::vector<Tensor>>();
    const auto receive = [results](std::vector<Tensor> gradients) {
      *results = std::move(gradients);
    };
    auto join = [&ctx, results, done = std::move(done)](Status status) mutable {
      if (status.ok()) status = Join(ctx, *results);
      std::move(done)(std::move(status));
    };
    exchange.Take(std::move(ids), TimeoutNanos(kTimeoutMsMax), receive, CallerOf(ctx),
                  ContinueOnPool(ctx.threads(), Done(std::move(join))));
  }

  // If this step has the batch, returns the ids of all executions of the batch in `*ids`. Otherwise
  // sets the output to a tensor without rows.
  static Status PutGradient(KernelContext& ctx, RowExchange& exchange, std::vector<int64_t>* ids) {
    const Tensor& gradient = ctx.input(2);
    RETURN_IF_ERROR(CheckRank("original_input", ctx.input(0)));
    RETURN_IF_ERROR(CheckRank("grad", gradient));
    ASSIGN_OR_RETURN(const int64_t id, ReadId(ctx.input(3)));
    ASSIGN_OR_RETURN(const std::vector<Share> shares, ReadIndex(ctx.input(1), ctx.input(0).dim(0)));
    for (const Share& share : shares) ids->push_back(share.id);
    if (!ids->empty() && std::find(ids->begin(), ids->end(), id) == ids->end()) {
      return InvalidArgument("batch_index has no row for the id ", id);
    }
    if (ids->empty()) {
      Dims dims(gradient.shape().dims().begin(), gradient.shape().dims().end());
      dims[0] = 0;
      Tensor* none;
      RETURN_IF_ERROR(ctx.Allocate(0, Shape(dims), &none));
    }
    return exchange.Put({{id, gradient}}, kGradientKeptNanos, ctx.origin());
  }

  // The rows that pad the batch have a gradient of zero.
  static Status Join(KernelContext& ctx, const std::vector<Tensor>& gradients) {
    int64_t rows = 0;
    for (const Tensor& gradient : gradients) rows += gradient.dim(0);
    const int64_t wanted = ctx.input(0).dim(0);
    if (rows > wanted) {
      return InvalidArgument("the gradients of all steps have ", rows, " rows, the batch has ",
                             wanted);
    }
    ASSIGN_OR_RETURN(Tensor joined, JoinRows(gradients, wanted));
    ctx.SetOutput(0, std::move(joined));
    return OkStatus();
  }
};

Status RowsShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape rows, s.WithRankAtLeast(0, 1));
  if (rows.known_rank()) rows.set_dim(0, PartialShape::kUnknown);
  s.set_output(0, rows);
  return OkStatus();
}

std::vector<Gradient> UnbatchGradient(const GradientScope& g) {
  return {Call("UnbatchGrad", {g.x(0), g.x(1), g.dy(), g.x(2)},
               {{"container", g.attr<std::string>("container")},
                {"shared_name", StrCat("unbatch_gradient_", g.node_name())}}),
          Gradient(), Gradient()};
}

OP(Unbatch) {
  return {
      .doc =
          "Returns this step's rows of a batch that Batch has joined. The step that has the batch "
          "passes them to the nodes with the same container and shared_name. Waits up to "
          "timeout_micros for them, then fails with DeadlineExceeded. Rows that no step takes "
          "within timeout_micros are dropped.",
      .inputs = {{"batched_tensor", "T"}, {"batch_index", "int64"}, {"id", "int64"}},
      .outputs = {{"unbatched_tensor", "T"}},
      .types = {{"T", kAnyType}},
      .attrs = {{"timeout_micros", Ints{}}, {"container", ""}, {"shared_name", ""}},
      .shape = RowsShape,
      .gradient = UnbatchGradient,
      .stateful = true,
      .may_wait = true,
      .untestable_alone = "waits for rows of other steps: kernels/batching has its tests",
  };
}

OP(UnbatchGrad) {
  return {
      .doc =
          "Joins the gradients of a batch's steps, in the order of batch_index, for the step that "
          "has the batch; the others get a tensor without rows. Rows that pad the batch get zeros. "
          "A gradient whose batch never comes is dropped after 10 minutes.",
      .inputs = {{"original_input", "T"}, {"batch_index", "int64"}, {"grad", "T"}, {"id", "int64"}},
      .outputs = {{"batched_grad", "T"}},
      .types = {{"T", kAnyType}},
      .attrs = {{"container", ""}, {"shared_name", ""}},
      .shape = RowsShape,
      .gradient = NoGradient,
      .stateful = true,
      .may_wait = true,
      .untestable_alone = "waits for rows of other steps: kernels/batching has its tests",
  };
}

KERNEL_ANY_TYPE(Unbatch, UnbatchKernel);
KERNEL_ANY_TYPE(UnbatchGrad, UnbatchGradKernel);

}  // namespace
}  // namespace penstock

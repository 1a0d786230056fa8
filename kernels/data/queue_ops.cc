// SPDX-License-Identifier: Apache-2.0
//
// The ops that use queues. None of them holds a thread while it waits.
#include <utility>

#include "absl/strings/str_join.h"
#include "core/op/gradient.h"
#include "core/op/private_attrs.h"
#include "core/op/registry.h"
#include "kernels/array/arguments.h"
#include "kernels/data/element_batch.h"
#include "kernels/data/handle_kernel.h"
#include "kernels/data/queue.h"

namespace penstock {
namespace {

std::string TypesText(const std::vector<DType>& types) {
  return absl::StrJoin(types, ", ", [](std::string* s, DType t) { *s += Name(t); });
}

class QueueUse : public AsyncKernel {
 public:
  void ComputeAsync(KernelContext& ctx, Done done) final {
    auto queue = ResourceInput<Queue>(ctx, 0);
    if (!queue.ok()) return std::move(done)(queue.status());
    Use(*queue, ctx, std::move(done));
  }

 protected:
  virtual void Use(const std::shared_ptr<Queue>& queue, KernelContext& ctx, Done done) const = 0;
};

// InvalidArgument unless `types` are the types of the queue's components.
Status CheckTypes(const Queue& queue, const std::vector<DType>& types) {
  if (types == queue.spec().types) return OkStatus();
  return InvalidArgument("Signature mismatch: queue '", queue.name(), "' holds (",
                         TypesText(queue.spec().types), "), this op (", TypesText(types), ")");
}

template <bool kMany>
class EnqueueKernel final : public QueueUse {
 public:
  Status Init(const KernelInit& node) override { return RequireNoTimeout(node); }

 protected:
  void Use(const std::shared_ptr<Queue>& queue, KernelContext& ctx, Done done) const override {
    auto elements = Elements(*queue, ctx);
    if (!elements.ok()) return std::move(done)(elements.status());
    queue->Enqueue(*std::move(elements), CallerOf(ctx), std::move(done));
  }

 private:
  static StatusOr<std::vector<Element>> Elements(const Queue& queue, KernelContext& ctx) {
    Element components;
    std::vector<DType> types;
    for (int i = 1; i < ctx.num_inputs(); ++i) {
      components.push_back(ctx.TakeInput(i));
      types.push_back(components.back().dtype());
    }
    RETURN_IF_ERROR(CheckTypes(queue, types));
    RETURN_IF_ERROR(CheckComponents(components, queue.spec().shapes, kMany));
    if (kMany) return SplitBatch(components);
    return std::vector<Element>{std::move(components)};
  }
};

std::vector<DType> OutputTypes(const KernelContext& ctx) {
  std::vector<DType> types;
  for (int i = 0; i < ctx.num_outputs(); ++i) types.push_back(ctx.output_type(i).dtype);
  return types;
}

class DequeueKernel final : public QueueUse {
 public:
  Status Init(const KernelInit& node) override { return RequireNoTimeout(node); }

 protected:
  void Use(const std::shared_ptr<Queue>& queue, KernelContext& ctx, Done done) const override {
    const Status fits = CheckTypes(*queue, OutputTypes(ctx));
    if (!fits.ok()) return std::move(done)(fits);
    const auto receive = [&ctx](std::vector<Element> elements) {
      for (size_t c = 0; c < elements[0].size(); ++c) {
        ctx.SetOutput(static_cast<int>(c), std::move(elements[0][c]));
      }
      return OkStatus();
    };
    queue->Dequeue(1, false, receive, CallerOf(ctx), std::move(done));
  }
};

template <bool kUpTo>
class DequeueBatchKernel final : public QueueUse {
 public:
  Status Init(const KernelInit& node) override { return RequireNoTimeout(node); }

 protected:
  void Use(const std::shared_ptr<Queue>& queue, KernelContext& ctx, Done done) const override {
    const auto count = Count(*queue, ctx);
    if (!count.ok()) return std::move(done)(count.status());
    const auto receive = [&ctx, queue](const std::vector<Element>& elements) -> Status {
      for (int c = 0; c < ctx.num_outputs(); ++c) {
        RETURN_IF_ERROR(StackElements(elements, c, queue->spec().shapes[c], ctx, c));
      }
      return OkStatus();
    };
    queue->Dequeue(*count, kUpTo, receive, CallerOf(ctx), std::move(done));
  }

 private:
  static StatusOr<int64_t> Count(const Queue& queue, const KernelContext& ctx) {
    RETURN_IF_ERROR(CheckTypes(queue, OutputTypes(ctx)));
    ASSIGN_OR_RETURN(const int64_t count, IntScalar(ctx.input(1), "n"));
    if (count < 0) {
      return InvalidArgument(kUpTo ? "DequeueUpToOp" : "DequeueManyOp", " requested ", count,
                             " < 0 elements");
    }
    if (queue.spec().shapes.empty()) {
      return InvalidArgument(queue.TypeName(),
                             "'s DequeueMany and DequeueUpTo require the "
                             "components to have specified shapes.");
    }
    return count;
  }
};

class QueueCloseKernel final : public QueueUse {
 public:
  Status Init(const KernelInit& node) override {
    return node.Attr("cancel_pending_enqueues", &cancel_pending_);
  }

 protected:
  void Use(const std::shared_ptr<Queue>& queue, KernelContext& ctx, Done done) const override {
    queue->Close(cancel_pending_, CallerOf(ctx), std::move(done));
  }

 private:
  bool cancel_pending_ = false;
};

class QueueSizeKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto queue, ResourceInput<Queue>(ctx, 0));
    Tensor* output = nullptr;
    RETURN_IF_ERROR(ctx.Allocate(0, {}, &output));
    *output->mutable_data<int32_t>() = static_cast<int32_t>(queue->size());
    return OkStatus();
  }
};

class QueueIsClosedKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto queue, ResourceInput<Queue>(ctx, 0));
    Tensor* output = nullptr;
    RETURN_IF_ERROR(ctx.Allocate(0, {}, &output));
    *output->mutable_data<bool>() = queue->closed();
    return OkStatus();
  }
};

// Returns the shape that the handle of a queue with one component carries; else an unknown shape.
PartialShape ComponentShape(const ShapeScope& s) {
  const ResourceHandle::Element* element = s.element(0);
  return s.num_outputs() == 1 && element != nullptr ? element->shape : PartialShape();
}

// Merges the output shapes with those in the node's attribute _output_shapes, if that lists one for
// each output. InvalidArgument if they contradict each other.
Status MergeStatedShapes(ShapeScope& s) {
  const auto stated = s.attrs().find(kOutputShapesAttr);
  if (stated == s.attrs().end()) return OkStatus();
  const auto* shapes = stated->second.get<std::vector<PartialShape>>();
  if (shapes == nullptr || static_cast<int>(shapes->size()) != s.num_outputs()) return OkStatus();
  for (int i = 0; i < s.num_outputs(); ++i) {
    ASSIGN_OR_RETURN(PartialShape merged, s.output(i).Merge((*shapes)[i]));
    s.set_output(i, std::move(merged));
  }
  return OkStatus();
}

Status DequeueShape(ShapeScope& s) {
  if (s.num_outputs() == 1) s.set_output(0, ComponentShape(s));
  return MergeStatedShapes(s);
}

template <bool kUpTo>
Status DequeueBatchShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(1, 0).status());
  std::vector<int64_t> count;
  if (s.ConstantInts(1, &count) && count[0] < 0) {
    return InvalidArgument("n must be >= 0, is ", count[0]);
  }
  const PartialShape one = ComponentShape(s);
  if (one.known_rank()) {
    PartialShape batch({count.empty() || kUpTo ? PartialShape::kUnknown : count[0]});
    for (const int64_t size : one.dims()) batch.AddDim(size);
    s.set_output(0, std::move(batch));
  }
  return MergeStatedShapes(s);
}

OpDef QueueUseOp(HandleForm form, std::string doc) {
  return {.doc = std::move(doc),
          .inputs = {{"handle", HandleType(form)}},
          .shape = NoOutputs,
          .gradient = NoGradient,
          .stateful = true};
}

OpDef EnqueueOp(HandleForm form, std::string doc) {
  OpDef op = QueueUseOp(form, std::move(doc));
  op.inputs.push_back({"components", List("Tcomponents")});
  op.attrs = {{"Tcomponents", TypeList{.min_length = 1}}, {"timeout_ms", -1}};
  op.may_wait = true;
  op.resource_use = ResourceUse::kPuts;
  return op;
}
OpDef EnqueueOneOp(HandleForm form) {
  return EnqueueOp(form, "Adds one element to a queue. Waits while the queue is full.");
}
OpDef EnqueueManyOp(HandleForm form) {
  return EnqueueOp(form,
                   "Adds each row of the components to a queue as a separate element. Waits while "
                   "the queue is full.");
}

OpDef DequeueOp(HandleForm form, std::string doc) {
  OpDef op = QueueUseOp(form, std::move(doc));
  op.outputs = {{"components", List("component_types")}};
  op.attrs = {{"component_types", TypeList{.min_length = 1}}, {"timeout_ms", -1}};
  op.may_wait = true;
  op.resource_use = ResourceUse::kTakes;
  return op;
}
OpDef DequeueOneOp(HandleForm form) {
  OpDef op = DequeueOp(form, "Takes one element from a queue. Waits while the queue is empty.");
  op.shape = DequeueShape;
  return op;
}
OpDef DequeueManyOp(HandleForm form) {
  OpDef op =
      DequeueOp(form, "Takes n elements from a queue as one batch. Waits until there are enough.");
  op.inputs.push_back({"n", "int32"});
  op.shape = DequeueBatchShape<false>;
  return op;
}
OpDef DequeueUpToOp(HandleForm form) {
  OpDef op =
      DequeueOp(form,
                "The same as QueueDequeueMany, but takes fewer elements if the queue is closed "
                "and has fewer.");
  op.inputs.push_back({"n", "int32"});
  op.shape = DequeueBatchShape<true>;
  return op;
}

OpDef CloseOp(HandleForm form) {
  OpDef op =
      QueueUseOp(form,
                 "Closes a queue: it accepts no new elements, but its elements can still be taken. "
                 "Waiting enqueues still complete, or are cancelled if cancel_pending_enqueues is "
                 "set.");
  op.attrs = {{"cancel_pending_enqueues", false}};
  op.may_wait = true;
  op.resource_use = ResourceUse::kPuts;
  return op;
}
OpDef ScalarOp(HandleForm form, const char* output, const char* type, std::string doc) {
  OpDef op = QueueUseOp(form, std::move(doc));
  op.outputs = {{output, type}};
  op.shape = ScalarShape;
  return op;
}
OpDef IsClosedOp(HandleForm form) {
  return ScalarOp(form, "is_closed", "bool", "Returns whether a queue has been closed.");
}
OpDef SizeOp(HandleForm form) {
  return ScalarOp(form, "size", "int32", "Returns the number of elements of a queue.");
}

OP(QueueEnqueue) { return EnqueueOneOp(HandleForm::kRef); }
OP(QueueEnqueueV2) { return EnqueueOneOp(HandleForm::kResource); }
OP(QueueEnqueueMany) { return EnqueueManyOp(HandleForm::kRef); }
OP(QueueEnqueueManyV2) { return EnqueueManyOp(HandleForm::kResource); }
OP(QueueDequeue) { return DequeueOneOp(HandleForm::kRef); }
OP(QueueDequeueV2) { return DequeueOneOp(HandleForm::kResource); }
OP(QueueDequeueMany) { return DequeueManyOp(HandleForm::kRef); }
OP(QueueDequeueManyV2) { return DequeueManyOp(HandleForm::kResource); }
OP(QueueDequeueUpTo) { return DequeueUpToOp(HandleForm::kRef); }
OP(QueueDequeueUpToV2) { return DequeueUpToOp(HandleForm::kResource); }
OP(QueueClose) { return CloseOp(HandleForm::kRef); }
OP(QueueCloseV2) { return CloseOp(HandleForm::kResource); }
OP(QueueIsClosed) { return IsClosedOp(HandleForm::kRef); }
OP(QueueIsClosedV2) { return IsClosedOp(HandleForm::kResource); }
OP(QueueSize) { return SizeOp(HandleForm::kRef); }
OP(QueueSizeV2) { return SizeOp(HandleForm::kResource); }
KERNEL_ANY_TYPE(QueueEnqueue, EnqueueKernel<false>);
KERNEL_ANY_TYPE(QueueEnqueueV2, EnqueueKernel<false>);
KERNEL_ANY_TYPE(QueueEnqueueMany, EnqueueKernel<true>);
KERNEL_ANY_TYPE(QueueEnqueueManyV2, EnqueueKernel<true>);
KERNEL_ANY_TYPE(QueueDequeue, DequeueKernel);
KERNEL_ANY_TYPE(QueueDequeueV2, DequeueKernel);
KERNEL_ANY_TYPE(QueueDequeueMany, DequeueBatchKernel<false>);
KERNEL_ANY_TYPE(QueueDequeueManyV2, DequeueBatchKernel<false>);
KERNEL_ANY_TYPE(QueueDequeueUpTo, DequeueBatchKernel<true>);
KERNEL_ANY_TYPE(QueueDequeueUpToV2, DequeueBatchKernel<true>);
KERNEL_ANY_TYPE(QueueClose, QueueCloseKernel);
KERNEL_ANY_TYPE(QueueCloseV2, QueueCloseKernel);
KERNEL_ANY_TYPE(QueueIsClosed, QueueIsClosedKernel);
KERNEL_ANY_TYPE(QueueIsClosedV2, QueueIsClosedKernel);
KERNEL_ANY_TYPE(QueueSize, QueueSizeKernel);
KERNEL_ANY_TYPE(QueueSizeV2, QueueSizeKernel);

}  // namespace
}  // namespace penstock

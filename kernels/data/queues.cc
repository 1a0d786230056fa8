// SPDX-License-Identifier: Apache-2.0
//
// The ops that create queues.
#include "core/base/env.h"
#include "core/op/gradient.h"
#include "core/op/private_attrs.h"
#include "core/op/registry.h"
#include "kernels/data/handle_kernel.h"
#include "kernels/data/queue.h"

namespace penstock {
namespace {

class QueueKernel : public HandleKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(HandleKernel::Init(node));
    RETURN_IF_ERROR(node.Attr("component_types", &spec_.types));
    RETURN_IF_ERROR(node.Attr("shapes", &spec_.shapes));
    RETURN_IF_ERROR(node.Attr("capacity", &spec_.capacity));
    RETURN_IF_ERROR(AddTo(node, &spec_));
    return CheckShapes();
  }

 protected:
  // Adds to `spec` the attributes that only this kind of queue has.
  virtual Status AddTo(const KernelInit& node, QueueSpec* spec) { return OkStatus(); }
  // Returns the seeds of a queue that draws at random.
  virtual Queue::Seeds MakeSeeds(Env& env) const { return {}; }
  virtual bool MayPad() const { return false; }

  const char* Type() const override { return spec_.type; }
  StatusOr<std::shared_ptr<Resource>> Make(KernelContext& ctx) const override {
    return Queue::Make(resource_name(), spec_, MakeSeeds(*ctx.step().env));
  }
  Status Check(const Resource& resource) const override {
    return static_cast<const Queue&>(resource).spec().CheckSame(spec_, resource_name());
  }

  QueueSpec spec_;

 private:
  Status CheckShapes() const {
    if (spec_.shapes.empty()) return OkStatus();
    if (spec_.shapes.size() != spec_.types.size()) {
      return InvalidArgument("shapes has ", spec_.shapes.size(), " entries for ",
                             spec_.types.size(), " component types");
    }
    for (const PartialShape& shape : spec_.shapes) {
      if (shape.fully_known() || (MayPad() && shape.known_rank())) continue;
      return InvalidArgument("a component of shape ", shape.ToString(), ": a ", spec_.type,
                             MayPad() ? " has to know its rank" : " has to know all of it");
    }
    return OkStatus();
  }
};

class FifoQueueKernel final : public QueueKernel {};

class PaddingQueueKernel final : public QueueKernel {
 private:
  Status AddTo(const KernelInit& node, QueueSpec* spec) override {
    spec->type = "PaddingFIFOQueue";
    if (!spec->shapes.empty()) return OkStatus();
    return InvalidArgument("shapes: a PaddingFIFOQueue has to know the ranks of its components");
  }
  bool MayPad() const override { return true; }
};

class RandomQueueKernel final : public QueueKernel {
 private:
  Status AddTo(const KernelInit& node, QueueSpec* spec) override {
    spec->type = "RandomShuffleQueue";
    RETURN_IF_ERROR(node.Attr("min_after_dequeue", &spec->min_after_dequeue));
    RETURN_IF_ERROR(node.Attr("seed", &spec->seed));
    RETURN_IF_ERROR(node.Attr("seed2", &spec->seed2));
    RETURN_IF_ERROR(AddRepeatable(node, spec));
    const int64_t min = spec->min_after_dequeue;
    if (min < 0) return InvalidArgument("min_after_dequeue ", min, " must be >= 0");
    if (spec->capacity >= 0 && min >= spec->capacity) {
      return InvalidArgument("min_after_dequeue ", min, " must be < capacity ", spec->capacity);
    }
    return OkStatus();
  }
  // Reads "repeatable", an attribute that clients may add to the node though the op does not
  // declare it (client/input.h). InvalidArgument if the queue has no seeds or no capacity.
  static Status AddRepeatable(const KernelInit& node, QueueSpec* spec) {
    if (!node.attrs.contains(kRepeatableAttr)) return OkStatus();
    RETURN_IF_ERROR(node.Attr(kRepeatableAttr, &spec->repeatable));
    if (!spec->repeatable) return OkStatus();
    if (spec->seed == 0 && spec->seed2 == 0) {
      return InvalidArgument(kRepeatableAttr,
                             ": a queue without seeds is in another order each time");
    }
    if (spec->capacity > 0) return OkStatus();
    return InvalidArgument("_repeatable: a queue of capacity ", spec->capacity, " is never full");
  }
  Queue::Seeds MakeSeeds(Env& env) const override {
    uint64_t seed = static_cast<uint64_t>(spec_.seed), seed2 = static_cast<uint64_t>(spec_.seed2);
    if (seed == 0 && seed2 == 0) {
      seed = env.RandomU64();
      seed2 = env.RandomU64();
    }
    return {seed, seed2};
  }
};

// The priority is an additional first component, which the node's attributes do not list.
class PriorityQueueKernel final : public QueueKernel {
 private:
  Status AddTo(const KernelInit& node, QueueSpec* spec) override {
    spec->type = "PriorityQueue";
    if (!spec->shapes.empty() || spec->types.empty()) {
      spec->shapes.insert(spec->shapes.begin(), PartialShape::Scalar());
    } else {
      return InvalidArgument("shapes: a PriorityQueue has to know those of its components");
    }
    spec->types.insert(spec->types.begin(), DType::kInt64);
    return OkStatus();
  }
};

// Sets the element type and shape that the handle carries, if the queue has one component.
Status QueueHandleShape(ShapeScope& s) {
  const auto& types = s.attr<std::vector<EdgeType>>("component_types");
  const auto shapes = s.attrs().find("shapes");
  const auto* known = shapes->second.get<std::vector<PartialShape>>();
  const bool one = types.size() == 1 && known != nullptr && known->size() == 1;
  if (one) s.set_output_element(0, {types[0].dtype, (*known)[0]});
  return ScalarShape(s);
}
Status HandleOnlyShape(ShapeScope& s) { return ScalarShape(s); }

OpDef QueueOp(HandleForm form, std::string doc, bool with_element = true) {
  const bool ref = form == HandleForm::kRef;
  return {.doc = std::move(doc),
          .outputs = {{"handle", HandleType(form)}},
          .attrs = {{"component_types", TypeList{.min_length = 1}},
                    {"shapes", ShapeList{}, std::vector<PartialShape>{}},
                    {"capacity", -1},
                    {"container", ""},
                    {"shared_name", ""}},
          .shape = ref            ? RefHandleShape
                   : with_element ? QueueHandleShape
                                  : HandleOnlyShape,
          .gradient = NoGradient,
          .examples = {{.attrs = {{"component_types", std::vector<DType>{DType::kFloat}},
                                  {"shapes", std::vector<PartialShape>{PartialShape({2})}}}}},
          .stateful = true};
}

OpDef FifoQueueOp(HandleForm form) {
  return QueueOp(form,
                 "Makes a queue that returns elements in the order in which they were added.");
}
OpDef PaddingQueueOp(HandleForm form) {
  return QueueOp(form,
                 "The same as FIFOQueue, for components of different shapes: dequeuing many of "
                 "them pads each with zeros to the largest.");
}
OpDef RandomQueueOp(HandleForm form) {
  OpDef op =
      QueueOp(form,
              "Makes a queue that returns elements in random order. While it is open, it keeps "
              "min_after_dequeue elements, so that they are well mixed.");
  op.attrs.insert(op.attrs.begin() + 3, {{"min_after_dequeue", 0}, {"seed", 0}, {"seed2", 0}});
  op.shuffles = true;
  return op;
}
OpDef PriorityQueueOp(HandleForm form) {
  OpDef op =
      QueueOp(form,
              "Makes a queue that returns the elements of lowest priority first. The priority "
              "(int64) is component 0, before the components that the attributes declare.",
              /*with_element=*/false);
  op.attrs[0] = {"component_types", TypeList{}, std::vector<DType>{}};
  op.attrs[1] = {"shapes", ShapeList{}};
  return op;
}

OP(FIFOQueue) { return FifoQueueOp(HandleForm::kRef); }
OP(FIFOQueueV2) { return FifoQueueOp(HandleForm::kResource); }
OP(PaddingFIFOQueue) { return PaddingQueueOp(HandleForm::kRef); }
OP(PaddingFIFOQueueV2) { return PaddingQueueOp(HandleForm::kResource); }
OP(RandomShuffleQueue) { return RandomQueueOp(HandleForm::kRef); }
OP(RandomShuffleQueueV2) { return RandomQueueOp(HandleForm::kResource); }
OP(PriorityQueue) { return PriorityQueueOp(HandleForm::kRef); }
OP(PriorityQueueV2) { return PriorityQueueOp(HandleForm::kResource); }
KERNEL_ANY_TYPE(FIFOQueue, FifoQueueKernel);
KERNEL_ANY_TYPE(FIFOQueueV2, FifoQueueKernel);
KERNEL_ANY_TYPE(PaddingFIFOQueue, PaddingQueueKernel);
KERNEL_ANY_TYPE(PaddingFIFOQueueV2, PaddingQueueKernel);
KERNEL_ANY_TYPE(RandomShuffleQueue, RandomQueueKernel);
KERNEL_ANY_TYPE(RandomShuffleQueueV2, RandomQueueKernel);
KERNEL_ANY_TYPE(PriorityQueue, PriorityQueueKernel);
KERNEL_ANY_TYPE(PriorityQueueV2, PriorityQueueKernel);

// Passes on the handle of a queue as a ref edge, for ops that accept only this form.
class FakeQueueKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    RETURN_IF_ERROR(ResourceInput<Queue>(ctx, 0).status());
    ResourceHandle handle = ctx.input(0).scalar<ResourceHandle>();
    handle.elements = {{DType::kString, PartialShape({2})}};
    ctx.SetOutput(0, Tensor::Scalar(handle));
    return OkStatus();
  }
};
OP(FakeQueue) {
  return {
      .doc = "Converts a queue's resource handle to a reference.",
      .inputs = {{"resource", "resource"}},
      .outputs = {{"handle", Ref("string")}},
      .shape = RefHandleShape,
      .gradient = NoGradient,
      .stateful = true,
      .untestable_alone = "works on a queue: kernels/data has its tests",
  };
}
KERNEL_ANY_TYPE(FakeQueue, FakeQueueKernel);

}  // namespace
}  // namespace penstock

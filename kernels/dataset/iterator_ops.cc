// SPDX-License-Identifier: Apache-2.0
//
// Ops on an iterator behind a handle: MakeIterator, IteratorGetNext, IteratorGetNextSync,
// IteratorGetNextAsOptional, SerializeIterator, DeserializeIterator, DeleteIterator.
#include <memory>
#include <utility>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "kernels/data/handle_kernel.h"
#include "kernels/dataset/dataset_kernel.h"
#include "kernels/dataset/element_shapes.h"
#include "kernels/dataset/iterator_resource.h"
#include "kernels/dataset/serialized_iterator.h"
#include "kernels/tensor_list/optional.h"

namespace penstock {
namespace {

// Runs an Operation on the iterator whose handle is input `input`.
class IteratorKernel : public AsyncKernel {
 public:
  bool WaitsForNodes() const final { return false; }
  void ComputeAsync(KernelContext& ctx, Done done) final {
    StatusOr<std::shared_ptr<IteratorResource>> found =
        ResourceInput<IteratorResource>(ctx, HandleInput());
    if (!found.ok()) return std::move(done)(found.status());
    IteratorResource& iterator = **found;
    // Keeps the iterator alive until `done` is called.
    iterator.Run(
        ContextOf(ctx),
        [this, &ctx, &iterator](const IteratorContext& context,
                                IteratorResource::Content& content) {
          return Work(ctx, iterator, context, content);
        },
        Done([done = std::move(done), kept = *std::move(found)](Status status) mutable {
          std::move(done)(std::move(status));
        }));
  }

 protected:
  virtual int HandleInput() const { return 0; }
  virtual Status Work(KernelContext& ctx, const IteratorResource& iterator,
                      const IteratorContext& context, IteratorResource::Content& content) const = 0;
};

class MakeIteratorKernel final : public IteratorKernel {
  int HandleInput() const override { return 1; }
  Status Work(KernelContext& ctx, const IteratorResource& iterator, const IteratorContext& context,
              IteratorResource::Content& content) const override {
    ASSIGN_OR_RETURN(DatasetPtr dataset, DatasetInput(ctx));
    return iterator.SetDataset(context, std::move(dataset), content);
  }
};

// Returns the next element, checked against the types and shapes that the node declares.
class NextElementKernel : public IteratorKernel {
 public:
  Status Init(const KernelInit& node) override { return ReadSpec(node, &spec_); }

 protected:
  Status Next(const IteratorResource& iterator, const IteratorContext& context,
              IteratorResource::Content& content, Element* element, bool* end) const {
    RETURN_IF_ERROR(iterator.Prepare(context, content));
    RETURN_IF_ERROR(CheckTypes(spec_, content.dataset->spec()));
    RETURN_IF_ERROR(CheckShapes(spec_, content.dataset->spec()));
    RETURN_IF_ERROR(content.iterator->GetNext(context, element, end));
    return *end ? OkStatus() : CheckElement(*element);
  }

 private:
  Status CheckElement(const Element& element) const {
    ElementSpec found;
    for (const Tensor& component : element) {
      found.types.push_back(component.dtype());
      found.shapes.push_back(component.shape());
    }
    RETURN_IF_ERROR(CheckTypes(spec_, found));
    return CheckShapes(spec_, found);
  }

  ElementSpec spec_;
};

class GetNextKernel final : public NextElementKernel {
  Status Work(KernelContext& ctx, const IteratorResource& iterator, const IteratorContext& context,
              IteratorResource::Content& content) const override {
    Element element;
    bool end = false;
    RETURN_IF_ERROR(Next(iterator, context, content, &element, &end));
    if (end) return OutOfRange("End of sequence");
    for (size_t i = 0; i < element.size(); ++i) {
      ctx.SetOutput(static_cast<int>(i), std::move(element[i]));
    }
    return OkStatus();
  }
};

class GetNextAsOptionalKernel final : public NextElementKernel {
  Status Work(KernelContext& ctx, const IteratorResource& iterator, const IteratorContext& context,
              IteratorResource::Content& content) const override {
    Element element;
    bool end = false;
    RETURN_IF_ERROR(Next(iterator, context, content, &element, &end));
    Variant optional = OptionalValue::None();
    if (!end) {
      ASSIGN_OR_RETURN(optional, OptionalValue::Of(std::move(element)));
    }
    ctx.SetOutput(0, Tensor::Scalar(std::move(optional)));
    return OkStatus();
  }
};

class SerializeKernel final : public IteratorKernel {
  Status Work(KernelContext& ctx, const IteratorResource& iterator, const IteratorContext& context,
              IteratorResource::Content& content) const override {
    RETURN_IF_ERROR(iterator.Prepare(context, content));
    StateWriter writer;
    RETURN_IF_ERROR(content.iterator->Save(context, &writer));
    ASSIGN_OR_RETURN(Variant made, SerializedIterator::Of(writer.Take()));
    Tensor serialized(DType::kVariant, Shape({1}));
    *serialized.mutable_data<Variant>() = std::move(made);
    ctx.SetOutput(0, std::move(serialized));
    return OkStatus();
  }
};

class DeserializeKernel final : public IteratorKernel {
  // Replaces the iterator by a new iterator of the same dataset that continues from the state. If
  // restoring fails, there is no iterator afterwards. InvalidArgument if input 1 is no state of an
  // iterator. In older checkpoints the state is a scalar.
  Status Work(KernelContext& ctx, const IteratorResource& iterator, const IteratorContext& context,
              IteratorResource::Content& content) const override {
    const Tensor& input = ctx.input(1);
    const auto* state =
        input.num_elements() == 1 && input.dtype() == DType::kVariant
            ? dynamic_cast<const SerializedIterator*>(input.data<Variant>()->value.get())
            : nullptr;
    if (state == nullptr) {
      return InvalidArgument("serialized must be the state of an iterator, is ", input.ToString());
    }
    RETURN_IF_ERROR(iterator.Prepare(context, content));
    RETURN_IF_ERROR(iterator.SetDataset(context, content.dataset, content));
    StateReader reader(state->values());
    Status restored = content.iterator->Restore(context, &reader);
    if (restored.ok()) restored = reader.AtEnd();
    if (!restored.ok()) content.iterator = nullptr;
    return restored;
  }
};

class DeleteKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto iterator, ResourceInput<IteratorResource>(ctx, 0));
    iterator->Delete(ctx.origin());
    return OkStatus();
  }
};

OpDef IteratorOp(const char* doc, std::vector<ArgDef> inputs, std::vector<ArgDef> outputs) {
  return {
      .doc = doc,
      .inputs = std::move(inputs),
      .outputs = std::move(outputs),
      .shape = ScalarShape,
      .gradient = NoGradient,
      .stateful = true,
      .untestable_alone =
          "works on an iterator that another op made: kernels/dataset has its tests",
  };
}

OpDef GetNextOp(const char* doc, ArgDef output) {
  OpDef op = IteratorOp(doc, {{"iterator", "resource"}}, {output});
  op.attrs = {TypesAttr("output_types", 1), {"output_shapes", ShapeList{}}};
  if (output.type.list) op.shape = ElementShapes;
  return op;
}

OP(MakeIterator) {
  return IteratorOp("Makes an iterator read a dataset from its beginning.",
                    {{"dataset", "variant"}, {"iterator", "resource"}}, {});
}

OP(IteratorGetNext) {
  return GetNextOp("Returns the components of the next element; OutOfRange at the end.",
                   {"components", List("output_types")});
}

OP(IteratorGetNextSync) {
  return GetNextOp("Returns the components of the next element; OutOfRange at the end.",
                   {"components", List("output_types")});
}

OP(IteratorGetNextAsOptional) {
  return GetNextOp("Returns the next element as an optional, which has no value at the end.",
                   {"optional", "variant"});
}

OP(SerializeIterator) {
  OpDef op = IteratorOp("Returns the state of an iterator, a vector, for DeserializeIterator.",
                        {{"resource_handle", "resource"}}, {{"serialized", "variant"}});
  op.shape = [](ShapeScope& s) {
    s.set_output(0, PartialShape({PartialShape::kUnknown}));
    return OkStatus();
  };
  op.attrs = {{"external_state_policy", 0}};
  return op;
}

OP(DeserializeIterator) {
  return IteratorOp(
      "Moves an iterator over an equal dataset to the position of the saved iterator.",
      {{"resource_handle", "resource"}, {"serialized", "variant"}}, {});
}

OP(DeleteIterator) {
  return IteratorOp("Deletes an iterator, and stops its reading ahead.",
                    {{"handle", "resource"}, {"deleter", "variant"}}, {});
}

KERNEL_ANY_TYPE(MakeIterator, MakeIteratorKernel);
KERNEL_ANY_TYPE(IteratorGetNext, GetNextKernel);
KERNEL_ANY_TYPE(IteratorGetNextSync, GetNextKernel);
KERNEL_ANY_TYPE(IteratorGetNextAsOptional, GetNextAsOptionalKernel);
KERNEL_ANY_TYPE(SerializeIterator, SerializeKernel);
KERNEL_ANY_TYPE(DeserializeIterator, DeserializeKernel);
KERNEL_ANY_TYPE(DeleteIterator, DeleteKernel);

}  // namespace
}  // namespace penstock

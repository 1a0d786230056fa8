// SPDX-License-Identifier: Apache-2.0
//
// Ops that create iterators: Iterator, IteratorV2, OneShotIterator, AnonymousIterator and its later
// versions; and ops that convert their handles to strings and back: IteratorToStringHandle,
// IteratorFromStringHandle, IteratorFromStringHandleV2.
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "kernels/data/handle_kernel.h"
#include "kernels/dataset/captured_function.h"
#include "kernels/dataset/dataset_kernel.h"
#include "kernels/dataset/iterator_resource.h"

namespace penstock {
namespace {

class IteratorHandleKernel : public HandleKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(ReadSpec(node, &spec_));
    return HandleKernel::Init(node);
  }

 protected:
  const char* Type() const final { return IteratorResource::kType; }
  StatusOr<std::shared_ptr<Resource>> Make(KernelContext& ctx) const override {
    return std::make_shared<IteratorResource>(spec_, ctx.threads());
  }
  Status Check(const Resource& resource) const final {
    const auto& iterator = dynamic_cast<const IteratorResource&>(resource);
    RETURN_IF_ERROR(CheckTypes(spec_, iterator.spec()));
    return CheckShapes(spec_, iterator.spec());
  }
  const ElementSpec& spec() const { return spec_; }

 private:
  ElementSpec spec_;
};

class OneShotKernel final : public IteratorHandleKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(factory_.Init(node, "dataset_factory", nullptr));
    return IteratorHandleKernel::Init(node);
  }

 private:
  StatusOr<std::shared_ptr<Resource>> Make(KernelContext& ctx) const override {
    auto iterator = std::make_shared<IteratorResource>(spec(), ctx.threads());
    ASSIGN_OR_RETURN(CapturedFunction factory, factory_.Capture(ctx, 0));
    iterator->set_factory(std::move(factory));
    return std::shared_ptr<Resource>(std::move(iterator));
  }

  FunctionAttr factory_;
};

// The kernel of AnonymousIterator. No container holds the resource: it lives as long as its handle.
class AnonymousKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return ReadSpec(node, &spec_); }
  Status Compute(KernelContext& ctx) override {
    static std::atomic<int64_t> last{0};
    auto made = std::make_shared<IteratorResource>(spec_, ctx.threads());
    ctx.SetOutput(0, Tensor::Scalar(ResourceHandle{.device = ctx.device_name(),
                                                   .container = kDefaultContainer,
                                                   .name = StrCat("AnonymousIterator", ++last),
                                                   .type = IteratorResource::kType,
                                                   .resource = std::move(made)}));
    if (ctx.num_outputs() > 1) ctx.SetOutput(1, Tensor::Scalar(Variant()));
    return OkStatus();
  }

 private:
  ElementSpec spec_;
};

constexpr char kStringHandle[] = "penstock iterator";

// Writes "penstock iterator\nDEVICE\nCONTAINER\nNAME". Names of nodes and containers contain no
// line ends.
class ToStringKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    RETURN_IF_ERROR(ResourceInput<IteratorResource>(ctx, 0).status());
    const ResourceHandle& handle = ctx.input(0).scalar<ResourceHandle>();
    const auto stored = ctx.resources().Lookup(handle.container, handle.name);
    if (!stored.ok()) {
      return Unimplemented("iterator '", handle.name, "' is anonymous: it has no string handle");
    }
    ctx.SetOutput(0,
                  Tensor::Scalar<std::string>(StrCat(kStringHandle, "\n", ctx.device_name(), "\n",
                                                     handle.container, "\n", handle.name)));
    return OkStatus();
  }
};

class FromStringKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return ReadSpec(node, &spec_); }
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const std::string text, ScalarInput<std::string>(ctx, 0, "string_handle"));
    const std::vector<std::string> parts = absl::StrSplit(text, '\n');
    if (parts.size() != 4 || parts[0] != kStringHandle) {
      return InvalidArgument("string_handle could not be parsed as the handle of an iterator");
    }
    if (parts[1] != ctx.device_name()) {
      return InvalidArgument("Attempted create an iterator on device \"", ctx.device_name(),
                             "\" from handle defined on device \"", parts[1], "\"");
    }
    ResourceHandle handle{.device = parts[1],
                          .container = parts[2],
                          .name = parts[3],
                          .type = IteratorResource::kType};
    ASSIGN_OR_RETURN(auto iterator, ResolveHandleAs<IteratorResource>(handle, ctx.resources()));
    if (!spec_.types.empty()) {
      RETURN_IF_ERROR(CheckTypes(spec_, iterator->spec()));
    }
    if (!spec_.shapes.empty()) {
      RETURN_IF_ERROR(CheckShapes(spec_, iterator->spec()));
    }
    handle.resource = std::move(iterator);
    ctx.SetOutput(0, Tensor::Scalar(handle));
    return OkStatus();
  }

 private:
  ElementSpec spec_;
};

OpDef HandleOp(const char* doc, std::vector<ArgDef> inputs, std::vector<ArgDef> outputs,
               std::vector<AttrDef> attrs) {
  return {
      .doc = doc,
      .inputs = std::move(inputs),
      .outputs = std::move(outputs),
      .attrs = std::move(attrs),
      .shape = ScalarShape,
      .gradient = NoGradient,
      .stateful = true,
      .untestable_alone =
          "returns an iterator, which reads a dataset: kernels/dataset has its tests",
  };
}

std::vector<AttrDef> Named(std::vector<AttrDef> attrs) {
  attrs.push_back(TypesAttr("output_types", 1));
  attrs.push_back({"output_shapes", ShapeList{}});
  return attrs;
}

const std::vector<ArgDef> kHandle = {{"handle", "resource"}};
const std::vector<ArgDef> kHandleAndDeleter = {{"handle", "resource"}, {"deleter", "variant"}};

OP(Iterator) {
  return HandleOp("Makes an iterator without a dataset, shared by name.", {}, kHandle,
                  Named({{"shared_name", Strings{}}, {"container", Strings{}}}));
}

OP(IteratorV2) {
  return HandleOp("Makes an iterator without a dataset, shared by name.", {}, kHandle,
                  Named({{"shared_name", Strings{}}, {"container", Strings{}}}));
}

OP(OneShotIterator) {
  return HandleOp("Makes an iterator over the dataset that a function returns.", {}, kHandle,
                  {{"dataset_factory", Functions{}},
                   TypesAttr("output_types", 1),
                   {"output_shapes", ShapeList{}},
                   {"container", ""},
                   {"shared_name", ""}});
}

OP(AnonymousIterator) {
  return HandleOp("Makes an iterator that exists as long as its handle.", {}, kHandle, Named({}));
}

OP(AnonymousIteratorV2) {
  return HandleOp("Makes an iterator that exists as long as its handle.", {}, kHandleAndDeleter,
                  Named({}));
}

OP(AnonymousIteratorV3) {
  return HandleOp("Makes an iterator that exists as long as its handle.", {}, kHandle, Named({}));
}

OP(IteratorToStringHandle) {
  return HandleOp("Converts the handle of an iterator to a string that can be fed.",
                  {{"resource_handle", "resource"}}, {{"string_handle", "string"}}, {});
}

OpDef FromStringOp() {
  return HandleOp("Returns the iterator that a string of IteratorToStringHandle names.",
                  {{"string_handle", "string"}}, {{"resource_handle", "resource"}},
                  {{"output_types", TypeList{.allowed = kAnyType}, EmptyList()},
                   {"output_shapes", ShapeList{}, EmptyList()}});
}

OP(IteratorFromStringHandle) { return FromStringOp(); }
OP(IteratorFromStringHandleV2) { return FromStringOp(); }

KERNEL_ANY_TYPE(Iterator, IteratorHandleKernel);
KERNEL_ANY_TYPE(IteratorV2, IteratorHandleKernel);
KERNEL_ANY_TYPE(OneShotIterator, OneShotKernel);
KERNEL_ANY_TYPE(AnonymousIterator, AnonymousKernel);
KERNEL_ANY_TYPE(AnonymousIteratorV2, AnonymousKernel);
KERNEL_ANY_TYPE(AnonymousIteratorV3, AnonymousKernel);
KERNEL_ANY_TYPE(IteratorToStringHandle, ToStringKernel);
KERNEL_ANY_TYPE(IteratorFromStringHandle, FromStringKernel);
KERNEL_ANY_TYPE(IteratorFromStringHandleV2, FromStringKernel);

}  // namespace
}  // namespace penstock

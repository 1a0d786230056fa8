// SPDX-License-Identifier: Apache-2.0
//
// CompositeTensorVariantFromComponents, CompositeTensorVariantToComponents: a composite tensor of
// TensorFlow's Python client (ragged, sparse, an extension type) as one variant, and back.
#include <string>
#include <utility>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "core/tensor/variant.h"
#include "kernels/ragged/composite_class.h"

namespace penstock {
namespace {

class CompositeValue final : public VariantValue {
 public:
  static constexpr char kTypeName[] = "CompositeTensorVariant";

  // Returns a variant with these components. InvalidArgument if variants are nested too deeply, or
  // if `metadata` is not valid.
  static StatusOr<Variant> Of(const std::string& metadata, const std::vector<Tensor>& components) {
    auto made = std::make_shared<CompositeValue>();
    ASSIGN_OR_RETURN(made->class_, CompositeClass(metadata));
    made->metadata_ = metadata;
    for (const Tensor& component : components) {
      RETURN_IF_ERROR(made->Admit(component));
      made->components_.push_back(component);
    }
    return Variant{std::move(made)};
  }

  const char* TypeName() const override { return kTypeName; }
  std::string ToString() const override {
    return StrCat("a composite tensor of class ", class_, " with ", components_.size(),
                  " components");
  }
  Status Encode(std::string* metadata, std::vector<Tensor>* tensors) const override {
    *metadata = metadata_;
    *tensors = components_;
    return OkStatus();
  }

  const std::string& class_name() const { return class_; }
  const std::vector<Tensor>& components() const { return components_; }

 private:
  std::string metadata_, class_;
  std::vector<Tensor> components_;
};

const bool registered = RegisterVariantDecoder(CompositeValue::kTypeName, CompositeValue::Of);

class FromComponentsKernel final : public Kernel {
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("metadata", &metadata_));
    return CompositeClass(metadata_).status();
  }

  Status Compute(KernelContext& ctx) override {
    std::vector<Tensor> components;
    for (int i = 0; i < ctx.num_inputs(); ++i) components.push_back(ctx.input(i));
    ASSIGN_OR_RETURN(const Variant variant, CompositeValue::Of(metadata_, components));
    ctx.SetOutput(0, Tensor::Scalar(variant));
    return OkStatus();
  }

  std::string metadata_;
};

class ToComponentsKernel final : public Kernel {
  Status Init(const KernelInit& node) override {
    std::string metadata;
    RETURN_IF_ERROR(node.Attr("metadata", &metadata));
    ASSIGN_OR_RETURN(class_, CompositeClass(metadata));
    return OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& encoded = ctx.input(0);
    if (encoded.num_elements() == 0) {
      return InvalidArgument("Input `encoded` must not be an empty variant tensor, has shape ",
                             encoded.shape().ToString());
    }
    const auto* value = dynamic_cast<const CompositeValue*>(encoded.data<Variant>()[0].value.get());
    if (value == nullptr) {
      return InvalidArgument(
          "The input `encoded` is not a valid CompositeTensorVariant tensor, got ",
          encoded.ToString());
    }
    if (value->class_name() != class_) {
      return InvalidArgument("Expected a ", class_, " (based on `type_spec`), but `encoded` ",
                             "contains a ", value->class_name());
    }
    const std::vector<Tensor>& components = value->components();
    if (components.size() != static_cast<size_t>(ctx.num_outputs())) {
      return InvalidArgument("Encoded value has ", components.size(),
                             " tensor components; expected ", ctx.num_outputs(),
                             " components based on type_spec");
    }
    for (int i = 0; i < ctx.num_outputs(); ++i) {
      if (components[i].dtype() != ctx.output_type(i).dtype) {
        return InvalidArgument("Tensor component ", i, " had dtype ", Name(components[i].dtype()),
                               "; expected dtype ", Name(ctx.output_type(i).dtype));
      }
      ctx.SetOutput(i, components[i]);
    }
    return OkStatus();
  }

  std::string class_;
};

std::vector<Gradient> FromComponentsGradient(const GradientScope& g) {
  const Outputs parts =
      CallN("CompositeTensorVariantToComponents", {g.dy()},
            {{"metadata", g.attrs().at("metadata")}, {"Tcomponents", g.attrs().at("Tcomponents")}});
  std::vector<Gradient> dx(g.num_inputs());
  for (int i = 0; i < g.num_inputs(); ++i) {
    const DType dtype = g.x(i).dtype();
    if (IsFloating(dtype) || IsComplex(dtype)) dx[i] = parts[i];
  }
  return dx;
}

std::vector<Gradient> ToComponentsGradient(const GradientScope& g) {
  Outputs parts;
  for (int i = 0; i < g.num_outputs(); ++i) parts.push_back(g.dy(i));
  return {Call("CompositeTensorVariantFromComponents", {NodeInput(parts)},
               {{"metadata", g.attrs().at("metadata")}})};
}

OP(CompositeTensorVariantFromComponents) {
  return {
      .doc =
          "Encodes the tensors of a composite tensor as one variant. `metadata` is a "
          "CompositeTensorVariantMetadata, which describes its class.",
      .inputs = {{"components", List("Tcomponents")}},
      .outputs = {{"encoded", "variant"}},
      .attrs = {{"metadata", Strings{}}, {"Tcomponents", TypeList{.allowed = kAnyType}}},
      .shape = ScalarShape,
      .gradient = FromComponentsGradient,
      .examples = {{.inputs = {{{{2}}, {{3}}}}, .attrs = {{"metadata", ""}}}},
  };
}
KERNEL_ANY_TYPE(CompositeTensorVariantFromComponents, FromComponentsKernel);

OP(CompositeTensorVariantToComponents) {
  return {
      .doc =
          "Returns the tensors of a composite tensor that is encoded as a variant. Fails unless "
          "the class in `metadata` is that of the encoded value.",
      .inputs = {{"encoded", "variant"}},
      .outputs = {{"components", List("Tcomponents")}},
      .attrs = {{"metadata", Strings{}}, {"Tcomponents", TypeList{.allowed = kAnyType}}},
      .shape = UnknownShape,
      .gradient = ToComponentsGradient,
      .untestable_alone = "needs an encoded composite tensor: kernels/ragged has its tests",
  };
}
KERNEL_ANY_TYPE(CompositeTensorVariantToComponents, ToComponentsKernel);

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "kernels/dataset/dataset_kernel.h"

#include <algorithm>

#include "core/op/gradient.h"

namespace penstock {

Status ReadSpec(const KernelInit& node, ElementSpec* spec, const char* types) {
  RETURN_IF_ERROR(node.Attr(types, &spec->types));
  RETURN_IF_ERROR(node.Attr("output_shapes", &spec->shapes));
  if (spec->types.size() == spec->shapes.size()) return OkStatus();
  return InvalidArgument("output_shapes has ", spec->shapes.size(), " elements, ", types, " ",
                         spec->types.size());
}

Status DatasetKernel::Init(const KernelInit& node) {
  for (const char* types : {"output_types", "Toutput_types"}) {
    if (node.attrs.contains(types) && node.attrs.contains("output_shapes")) {
      return ReadSpec(node, &spec_, types);
    }
  }
  return OkStatus();
}

Status DatasetKernel::Compute(KernelContext& ctx) {
  int height = 1;
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    if (ctx.input(i).dtype() != DType::kVariant) continue;
    for (const Variant& variant : ctx.input(i).flat<Variant>()) {
      const auto* below = dynamic_cast<const DatasetValue*>(variant.value.get());
      if (below != nullptr) height = std::max(height, below->height() + 1);
    }
  }
  if (height > DatasetValue::kHeightMax) {
    return ResourceExhausted("datasets stand on each other more than ", DatasetValue::kHeightMax,
                             " high");
  }
  ASSIGN_OR_RETURN(DatasetPtr made, MakeDataset(ctx));
  ctx.SetOutput(0,
                Tensor::Scalar(Variant{std::make_shared<DatasetValue>(std::move(made), height)}));
  return OkStatus();
}

IteratorContext ContextOf(const KernelContext& ctx) {
  const StepContext& step = ctx.step();
  return {.threads = step.threads,
          .env = step.env,
          .resources = step.resources,
          .cancellation = step.cancellation,
          .step_id = step.step_id,
          .origin = ctx.origin()};
}

DatasetOp::operator OpDef() const {
  std::vector<AttrDef> all = attrs;
  if (spec) {
    all.push_back(TypesAttr("output_types", 1));
    all.push_back({"output_shapes", ShapeList{}});
  }
  if (metadata) all.push_back({"metadata", ""});
  return {
      .doc = doc,
      .inputs = inputs,
      .outputs = {{"handle", "variant"}},
      .attrs = std::move(all),
      .shape = ScalarShape,
      .gradient = NoGradient,
      .stateful = stateful,
      .acts_outside = acts_outside,
      .untestable_alone = "works on datasets or files: kernels/dataset has its tests",
  };
}

}  // namespace penstock

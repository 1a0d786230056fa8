// SPDX-License-Identifier: Apache-2.0
//
// DatasetKernel: the base of kernels of ops that make a dataset. DatasetOp: describes such an op,
// and converts to its OpDef.
#pragma once

#include <string>
#include <vector>

#include "core/op/kernel.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/dataset/captured_function.h"
#include "kernels/dataset/dataset.h"

namespace penstock {

class DatasetKernel : public Kernel {
 public:
  // Reads output_types and output_shapes, if the op has them, into spec().
  Status Init(const KernelInit& node) override;
  Status Compute(KernelContext& ctx) final;

 protected:
  virtual StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) = 0;
  // Returns the types and shapes that the attributes declare.
  const ElementSpec& spec() const { return spec_; }

 private:
  ElementSpec spec_;
};

// Reads the attributes `types` and output_shapes. InvalidArgument unless their lengths are equal.
Status ReadSpec(const KernelInit& node, ElementSpec* spec, const char* types = "output_types");

// Returns input i, which must be a scalar. Errors name it `name`.
template <class T>
StatusOr<T> ScalarInput(const KernelContext& ctx, int i, const char* name) {
  const Tensor& input = ctx.input(i);
  if (input.dtype() == kDTypeOf<T> && input.rank() == 0) return input.scalar<T>();
  return InvalidArgument(name, " must be a scalar ", Name(kDTypeOf<T>), ", is ",
                         Name(input.dtype()), input.shape().ToString());
}
inline StatusOr<DatasetPtr> DatasetInput(const KernelContext& ctx, int i = 0) {
  return DatasetOf(ctx.input(i));
}
IteratorContext ContextOf(const KernelContext& ctx);

// Returns a TypeList attribute whose elements may be of any type.
inline AttrDef TypesAttr(const char* name, int64_t min_length) {
  return {name, TypeList{.min_length = min_length, .allowed = kAnyType}};
}

// The definition of an op with the output "handle" and the attributes that most dataset ops have.
struct DatasetOp {
  const char* doc;
  std::vector<ArgDef> inputs;
  std::vector<AttrDef> attrs = {};
  bool spec = true;      // true: the op has output_types and output_shapes, after `attrs`
  bool metadata = true;  // true: the op has the attribute metadata
  bool stateful = false;
  bool acts_outside = false;  // true: the op uses files that its inputs name
  operator OpDef() const;     // NOLINT: OP(X) { return DatasetOp{...}; }
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// EmptyTensorMap, TensorMapSize, TensorMapLookup, TensorMapInsert, TensorMapErase, TensorMapHasKey,
// TensorMapStackKeys. If nothing else holds a map, the op changes it in place.
#include <memory>
#include <utility>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/rows.h"
#include "kernels/tensor_list/tensor_map.h"

namespace penstock {
namespace {

class EmptyTensorMapKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ctx.SetOutput(0, Tensor::Scalar(Variant{std::make_shared<TensorMapValue>()}));
    return OkStatus();
  }
};

class TensorMapSizeKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const TensorMapValue* map, MapInput(ctx, 0));
    ctx.SetOutput(0, Tensor::Scalar(static_cast<int32_t>(map->size())));
    return OkStatus();
  }
};

Status NoSuchKey(const char* purpose, const Tensor& key) {
  return InvalidArgument("Trying to ", purpose, ". Could not find key \"", key.ToString(), "\".");
}

class TensorMapLookupKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const TensorMapValue* map, MapInput(ctx, 0));
    const Tensor* const value = map->Find(ctx.input(1));
    if (value == nullptr) return NoSuchKey("lookup non-existent key", ctx.input(1));
    const DType wanted = ctx.output_type(0).dtype;
    if (value->dtype() != wanted) {
      return InvalidArgument("Type mismatch: actual ", Name(value->dtype()), " vs. expect ",
                             Name(wanted));
    }
    ctx.SetOutput(0, *value);
    return OkStatus();
  }
};

class TensorMapInsertKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(OwnMap own, TakeMap(ctx, 0));
    RETURN_IF_ERROR(own.map->Insert(ctx.input(1), ctx.TakeInput(2)));
    ctx.SetOutput(0, std::move(own.handle));
    return OkStatus();
  }
};

class TensorMapEraseKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(OwnMap own, TakeMap(ctx, 0));
    if (!own.map->Erase(ctx.input(1))) return NoSuchKey("erase non-existent item", ctx.input(1));
    ctx.SetOutput(0, std::move(own.handle));
    return OkStatus();
  }
};

class TensorMapHasKeyKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const TensorMapValue* map, MapInput(ctx, 0));
    ctx.SetOutput(0, Tensor::Scalar(map->Find(ctx.input(1)) != nullptr));
    return OkStatus();
  }
};

class TensorMapStackKeysKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const TensorMapValue* map, MapInput(ctx, 0));
    const std::vector<Tensor> keys = map->Keys();
    if (keys.empty()) {
      return InvalidArgument("TensorMapStackKeys cannot be called on empty map.");
    }
    const Shape& shape = keys[0].shape();
    for (const Tensor& key : keys) {
      if (key.dtype() != ctx.output_type(0).dtype) {
        return InvalidArgument("Key does not match requested dtype.");
      }
      if (key.shape() != shape) return InvalidArgument("Keys must all have the same shape.");
    }
    ASSIGN_OR_RETURN(const Shape stacked, WithFirst(map->size(), shape));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, stacked, &output));
    JoinRows(ctx, keys, output);
    return OkStatus();
  }
};

Status MapShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(0, 0).status());
  return ScalarShape(s);
}
Status NoneOfMapShape(ShapeScope& s) { return s.WithRank(0, 0).status(); }

// Returns the gradient of the map: a map that has only dy, under the key. Keys that the map does
// not have stand for zeros.
std::vector<Gradient> LookupGradient(const GradientScope& g) {
  const Output empty = CallIn(g.sink(), "EmptyTensorMap", {});
  return {Call("TensorMapInsert", {empty, g.x(1), g.dy()}), Gradient()};
}

// Returns the gradients of the map and of the value. First adds zeros under the key to dy, because
// the lookup fails if dy does not have the key.
std::vector<Gradient> InsertGradient(const GradientScope& g) {
  const Output key = g.x(1), value = g.x(2);
  const Output empty = CallIn(g.sink(), "EmptyTensorMap", {});
  const Output zeros = Call("TensorMapInsert", {empty, key, ZerosLike(value)});
  const Output dy = Call("AddN", {NodeInput({g.dy(), zeros})});
  const Attrs type = {{"value_dtype", value.dtype()}};
  return {Call("TensorMapErase", {dy, key}, type), Gradient(),
          Call("TensorMapLookup", {dy, key}, type)};
}

std::vector<Gradient> EraseGradient(const GradientScope& g) { return {g.dy(), Gradient()}; }

constexpr char kUntestableAlone[] = "reads what another op made: kernels/tensor_list has its tests";

OP(EmptyTensorMap) {
  return {
      .doc = "Makes a map from tensors to tensors without entries.",
      .outputs = {{"handle", "variant"}},
      .shape = ScalarShape,
      .gradient = NoGradient,
  };
}

OP(TensorMapSize) {
  return {
      .doc =
          "Returns the number of keys of a map, a scalar. InvalidArgument if input_handle is no "
          "map.",
      .inputs = {{"input_handle", "variant"}},
      .outputs = {{"size", "int32"}},
      .shape = MapShape,
      .gradient = NoGradient,
      .untestable_alone = kUntestableAlone,
  };
}

OP(TensorMapLookup) {
  return {
      .doc =
          "Returns the value of a key of a map. Keys are equal if their types, shapes and bytes "
          "are. InvalidArgument if the map does not have the key, or if the value has another "
          "type than value_dtype.",
      .inputs = {{"input_handle", "variant"}, {"key", "key_dtype"}},
      .outputs = {{"value", "value_dtype"}},
      .types = {{"key_dtype", kAnyType}, {"value_dtype", kAnyType}},
      .shape = NoneOfMapShape,
      .gradient = LookupGradient,
      .examples = {{.inputs = {{{{2, 3}}}, {{}}}, .attrs = {{"value_dtype", DType::kFloat}}}},
      .untestable_alone = kUntestableAlone,
  };
}

OP(TensorMapInsert) {
  return {
      .doc =
          "Returns a map in which a key, a tensor of any shape, has the given value. "
          "InvalidArgument if the key is a variant or a handle.",
      .inputs = {{"input_handle", "variant"}, {"key", "key_dtype"}, {"value", "value_dtype"}},
      .outputs = {{"output_handle", "variant"}},
      .types = {{"key_dtype", kAnyType}, {"value_dtype", kAnyType}},
      .shape = MapShape,
      .gradient = InsertGradient,
      .examples = {{.inputs = {{{{2, 3}}}, {{}}, {{{2, 3}}}}}},
      .untestable_alone = kUntestableAlone,
  };
}

OP(TensorMapErase) {
  return {
      .doc =
          "Returns a map without one of its keys. InvalidArgument if the map does not have the "
          "key.",
      .inputs = {{"input_handle", "variant"}, {"key", "key_dtype"}},
      .outputs = {{"output_handle", "variant"}},
      .types = {{"key_dtype", kAnyType}, {"value_dtype", kAnyType}},
      .shape = MapShape,
      .gradient = EraseGradient,
      .examples = {{.inputs = {{{{2, 3}}}, {{}}}, .attrs = {{"value_dtype", DType::kFloat}}}},
      .untestable_alone = kUntestableAlone,
  };
}

OP(TensorMapHasKey) {
  return {
      .doc = "Returns whether a map has a key, a scalar.",
      .inputs = {{"input_handle", "variant"}, {"key", "key_dtype"}},
      .outputs = {{"has_key", "bool"}},
      .types = {{"key_dtype", kAnyType}},
      .shape = MapShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2, 3}}}, {{}}}}},
      .untestable_alone = kUntestableAlone,
  };
}

OP(TensorMapStackKeys) {
  return {
      .doc =
          "Returns the keys of a map, stacked along a new first dimension. InvalidArgument if "
          "the map is empty, or if the keys are not all of type key_dtype and of one shape.",
      .inputs = {{"input_handle", "variant"}},
      .outputs = {{"keys", "key_dtype"}},
      .types = {{"key_dtype", kAnyType}},
      .shape = NoneOfMapShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2, 3}}}}, .attrs = {{"key_dtype", DType::kInt32}}}},
      .untestable_alone = kUntestableAlone,
  };
}

KERNEL_ANY_TYPE(EmptyTensorMap, EmptyTensorMapKernel);
KERNEL_ANY_TYPE(TensorMapSize, TensorMapSizeKernel);
KERNEL_ANY_TYPE(TensorMapLookup, TensorMapLookupKernel);
KERNEL_ANY_TYPE(TensorMapInsert, TensorMapInsertKernel);
KERNEL_ANY_TYPE(TensorMapErase, TensorMapEraseKernel);
KERNEL_ANY_TYPE(TensorMapHasKey, TensorMapHasKeyKernel);
KERNEL_ANY_TYPE(TensorMapStackKeys, TensorMapStackKeysKernel);

}  // namespace
}  // namespace penstock

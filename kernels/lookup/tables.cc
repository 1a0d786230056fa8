// SPDX-License-Identifier: Apache-2.0
//
// The ops that create tables, with ref edges and with resource handles: HashTable,
// MutableHashTable, MutableHashTableOfTensors, MutableDenseHashTable, and their V2 forms.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "kernels/data/handle_kernel.h"
#include "kernels/lookup/lookup_table.h"

namespace penstock {
namespace {

using Kind = LookupTable::Kind;

template <Kind kKind>
class TableKernel final : public HandleKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("key_dtype", &spec_.key));
    RETURN_IF_ERROR(node.Attr("value_dtype", &spec_.value));
    spec_.kind = kKind;
    if (node.attrs.contains("value_shape")) {
      PartialShape shape;
      RETURN_IF_ERROR(node.Attr("value_shape", &shape));
      if (!shape.fully_known()) {
        return InvalidArgument("value_shape must be fully known, is ", shape.ToString());
      }
      spec_.value_shape = shape.ToShape();
    }
    if (node.attrs.contains("initial_num_buckets")) {
      RETURN_IF_ERROR(node.Attr("initial_num_buckets", &spec_.initial_buckets));
      RETURN_IF_ERROR(node.Attr("max_load_factor", &spec_.max_load));
    }
    bool by_node_name;
    std::string shared_name;
    RETURN_IF_ERROR(node.Attr("use_node_name_sharing", &by_node_name));
    RETURN_IF_ERROR(node.Attr("shared_name", &shared_name));
    if (!by_node_name || !shared_name.empty()) return HandleKernel::Init(node);
    Attrs attrs = node.attrs;
    attrs["shared_name"] = node.name;
    return HandleKernel::Init({.name = node.name,
                               .op = node.op,
                               .attrs = attrs,
                               .device = node.device,
                               .input_types = node.input_types,
                               .output_types = node.output_types});
  }

 protected:
  const char* Type() const override { return LookupTable::TypeOf(kKind); }
  StatusOr<std::shared_ptr<Resource>> Make(KernelContext& ctx) const override {
    LookupTable::Spec spec = spec_;
    if (ctx.num_inputs() > 0) {
      spec.key_shape = ctx.input(0).shape();
      spec.empty_key = ctx.input(0).Clone();
    }
    if (ctx.num_inputs() > 1) spec.deleted_key = ctx.input(1).Clone();
    ASSIGN_OR_RETURN(std::shared_ptr<LookupTable> table,
                     LookupTable::Make(resource_name(), std::move(spec)));
    return std::shared_ptr<Resource>(std::move(table));
  }
  Status Check(const Resource& resource) const override {
    const auto& table = static_cast<const LookupTable&>(resource);
    if (table.spec().key == spec_.key && table.spec().value == spec_.value &&
        table.spec().value_shape == spec_.value_shape) {
      return OkStatus();
    }
    return InvalidArgument("Conflicting key/value dtypes ", Name(spec_.key), "->",
                           Name(spec_.value), " with ", Name(table.spec().key), "-",
                           Name(table.spec().value), " for table ", table.name());
  }

 private:
  LookupTable::Spec spec_;
};

OpDef TableOp(const char* doc, HandleForm form, bool value_shape = false) {
  OpDef op = {
      .doc = doc,
      .outputs = {{"table_handle", HandleType(form)}},
      .types = {{"key_dtype",
                 {DType::kInt64, DType::kInt32, DType::kString, DType::kBool, DType::kInt8,
                  DType::kInt16, DType::kUint8, DType::kUint16, DType::kUint32, DType::kUint64}},
                {"value_dtype",
                 {DType::kFloat, DType::kDouble, DType::kInt32, DType::kInt64, DType::kString,
                  DType::kBool, DType::kHalf, DType::kBfloat16, DType::kInt8, DType::kInt16,
                  DType::kUint8, DType::kUint16, DType::kUint32, DType::kUint64, DType::kComplex64,
                  DType::kComplex128}}},
      .attrs = {{"container", ""},
                {"shared_name", ""},
                {"use_node_name_sharing", AttrValue(false)}},
      .shape = form == HandleForm::kRef ? RefHandleShape : ResourceHandleShape,
      .gradient = NoGradient,
      .examples = {Example{}},
      .stateful = true,
  };
  if (value_shape) op.attrs.push_back({"value_shape", PartialShape(Shape())});
  return op;
}

OpDef MutableTableOp(const char* doc, HandleForm form, bool value_shape = false) {
  OpDef op = TableOp(doc, form, value_shape);
  op.holds_parameters = true;
  return op;
}

OpDef DenseTableOp(HandleForm form) {
  OpDef op = MutableTableOp(
      "Makes a mutable hash table whose keys may be vectors. empty_key and deleted_key "
      "cannot be used as keys.",
      form, true);
  op.inputs = {{"empty_key", "key_dtype"}};
  op.examples[0].inputs = {{{{}, {1}}}};
  if (form == HandleForm::kResource) {
    op.inputs.push_back({"deleted_key", "key_dtype"});
    op.examples[0].inputs.push_back({{{}, {0}}});
  }
  op.attrs.push_back({"initial_num_buckets", 131072});
  op.attrs.push_back({"max_load_factor", AttrValue(0.8f)});
  return op;
}

}  // namespace

constexpr char kHashDoc[] = "Makes a hash table that can be filled only once.";
constexpr char kMutableDoc[] = "Makes a mutable hash table from keys to numbers or strings.";
constexpr char kOfTensorsDoc[] = "Makes a mutable hash table from keys to vectors.";

OP(HashTable) { return TableOp(kHashDoc, HandleForm::kRef); }
OP(HashTableV2) { return TableOp(kHashDoc, HandleForm::kResource); }
OP(MutableHashTable) { return MutableTableOp(kMutableDoc, HandleForm::kRef); }
OP(MutableHashTableV2) { return MutableTableOp(kMutableDoc, HandleForm::kResource); }
OP(MutableHashTableOfTensors) { return MutableTableOp(kOfTensorsDoc, HandleForm::kRef, true); }
OP(MutableHashTableOfTensorsV2) {
  return MutableTableOp(kOfTensorsDoc, HandleForm::kResource, true);
}
OP(MutableDenseHashTable) { return DenseTableOp(HandleForm::kRef); }
OP(MutableDenseHashTableV2) { return DenseTableOp(HandleForm::kResource); }
KERNEL_ANY_TYPE(HashTable, TableKernel<Kind::kHash>);
KERNEL_ANY_TYPE(HashTableV2, TableKernel<Kind::kHash>);
KERNEL_ANY_TYPE(MutableHashTable, TableKernel<Kind::kMutable>);
KERNEL_ANY_TYPE(MutableHashTableV2, TableKernel<Kind::kMutable>);
KERNEL_ANY_TYPE(MutableHashTableOfTensors, TableKernel<Kind::kMutableOfTensors>);
KERNEL_ANY_TYPE(MutableHashTableOfTensorsV2, TableKernel<Kind::kMutableOfTensors>);
KERNEL_ANY_TYPE(MutableDenseHashTable, TableKernel<Kind::kDense>);
KERNEL_ANY_TYPE(MutableDenseHashTableV2, TableKernel<Kind::kDense>);

}  // namespace penstock

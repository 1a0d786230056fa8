// SPDX-License-Identifier: Apache-2.0
//
// The ops that use tables: LookupTableFind, Insert, Size, Export, Import, InitializeTable, with ref
// edges and with resource handles; and LookupTableRemoveV2, with resource handles only.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "kernels/data/handle_kernel.h"
#include "kernels/lookup/lookup_table.h"

namespace penstock {
namespace {

class FindKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto table, ResourceInput<LookupTable>(ctx, 0));
    ASSIGN_OR_RETURN(Tensor values, table->Find(ctx.input(1), ctx.input(2), ctx.allocator()));
    ctx.SetOutput(0, std::move(values));
    return OkStatus();
  }
};

template <Status (LookupTable::*kWrite)(const Tensor& keys, const Tensor& values,
                                        const UpdateOrigin& origin)>
class WriteKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto table, ResourceInput<LookupTable>(ctx, 0));
    return ((*table).*kWrite)(ctx.input(1), ctx.input(2), ctx.origin());
  }
};

class RemoveKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto table, ResourceInput<LookupTable>(ctx, 0));
    return table->Remove(ctx.input(1), ctx.origin());
  }
};

class SizeKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto table, ResourceInput<LookupTable>(ctx, 0));
    ctx.SetOutput(0, Tensor::Scalar<int64_t>(table->size()));
    return OkStatus();
  }
};

class ExportKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto table, ResourceInput<LookupTable>(ctx, 0));
    const LookupTable::Spec& spec = table->spec();
    if (ctx.output_type(0).dtype != spec.key || ctx.output_type(1).dtype != spec.value) {
      return InvalidArgument("Signature mismatch: table '", table->name(), "' is from ",
                             Name(spec.key), " to ", Name(spec.value), ", this op exports ",
                             Name(ctx.output_type(0).dtype), " and ",
                             Name(ctx.output_type(1).dtype));
    }
    Tensor keys, values;
    RETURN_IF_ERROR(table->Export(&keys, &values, ctx.allocator()));
    ctx.SetOutput(0, std::move(keys));
    ctx.SetOutput(1, std::move(values));
    return OkStatus();
  }
};

OpDef UseOp(const char* doc, HandleForm form, const std::vector<ArgDef>& inputs,
            const std::vector<ArgDef>& outputs, const std::vector<std::string>& types) {
  OpDef op = {
      .doc = doc,
      .inputs = {{"table_handle", HandleType(form)}},
      .outputs = outputs,
      .shape = outputs.empty() ? NoOutputs : UnknownShape,
      .gradient = NoGradient,
      .stateful = true,
  };
  op.inputs.insert(op.inputs.end(), inputs.begin(), inputs.end());
  for (const std::string& type : types) op.types.push_back({type, kAllTypes});
  return op;
}

OpDef FindOp(HandleForm form) {
  return UseOp(
      "Returns the values of keys, and default_value (a single value, or one for each "
      "key) for a key that the table does not have.",
      form, {{"keys", "Tin"}, {"default_value", "Tout"}}, {{"values", "Tout"}}, {"Tin", "Tout"});
}
OpDef WriteOp(const char* doc, HandleForm form) {
  return UseOp(doc, form, {{"keys", "Tin"}, {"values", "Tout"}}, {}, {"Tin", "Tout"});
}
OpDef InitializeTableOp(HandleForm form) {
  return UseOp("Fills a table that can be filled only once.", form,
               {{"keys", "Tkey"}, {"values", "Tval"}}, {}, {"Tkey", "Tval"});
}
OpDef SizeOp(HandleForm form) {
  OpDef op = UseOp("Returns the number of entries of a table.", form, {}, {{"size", "int64"}}, {});
  op.shape = ScalarShape;
  return op;
}
OpDef ExportOp(HandleForm form) {
  return UseOp("Returns all keys and values of a table.", form, {},
               {{"keys", "Tkeys"}, {"values", "Tvalues"}}, {"Tkeys", "Tvalues"});
}

constexpr char kInsertDoc[] =
    "Sets the values of keys; adds the keys that the table does not have.";
constexpr char kImportDoc[] = "Replaces all entries of a table.";

}  // namespace

#define TABLE_OPS(V2, form)                                                  \
  OP(LookupTableFind##V2) { return FindOp(form); }                           \
  OP(LookupTableInsert##V2) { return WriteOp(kInsertDoc, form); }            \
  OP(LookupTableImport##V2) { return WriteOp(kImportDoc, form); }            \
  OP(LookupTableSize##V2) { return SizeOp(form); }                           \
  OP(LookupTableExport##V2) { return ExportOp(form); }                       \
  OP(InitializeTable##V2) { return InitializeTableOp(form); }                \
  KERNEL_ANY_TYPE(LookupTableFind##V2, FindKernel);                          \
  KERNEL_ANY_TYPE(LookupTableInsert##V2, WriteKernel<&LookupTable::Insert>); \
  KERNEL_ANY_TYPE(LookupTableImport##V2, WriteKernel<&LookupTable::Import>); \
  KERNEL_ANY_TYPE(LookupTableSize##V2, SizeKernel);                          \
  KERNEL_ANY_TYPE(LookupTableExport##V2, ExportKernel);                      \
  KERNEL_ANY_TYPE(InitializeTable##V2, WriteKernel<&LookupTable::Initialize>)

TABLE_OPS(, HandleForm::kRef);
TABLE_OPS(V2, HandleForm::kResource);

OP(LookupTableRemoveV2) {
  return UseOp("Removes keys; ignores the keys that the table does not have.",
               HandleForm::kResource, {{"keys", "Tin"}}, {}, {"Tin"});
}
KERNEL_ANY_TYPE(LookupTableRemoveV2, RemoveKernel);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// CheckDeclarations: checks that ops and kernels can form a registry. If Penstock's own
// declarations fail the check, the Registry ends the process; if those of a loaded library fail,
// LoadLibrary returns the error.
#include <algorithm>
#include <map>
#include <set>

#include "core/op/registry.h"

namespace penstock {

// Defined in registry.cc.
std::string Describe(const KernelDef& kernel);

namespace {

const TypeAttrDef* FindType(const OpDef& op, string_view name) {
  for (const TypeAttrDef& type : op.types) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

template <class Kind>
bool HasAttr(const OpDef& op, string_view name) {
  return std::any_of(op.attrs.begin(), op.attrs.end(), [&](const AttrDef& attr) {
    return attr.name == name && std::holds_alternative<Kind>(attr.kind);
  });
}

template <class... Parts>
Status Expect(bool holds, const Parts&... parts) {
  return holds ? OkStatus() : InvalidArgument(parts...);
}

Status CheckArg(const OpDef& op, const ArgDef& arg) {
  const ArgType& type = arg.type;
  const bool known =
      type.list ? HasAttr<TypeList>(op, type.type)
                : DTypeFromName(type.type) != DType::kInvalid || FindType(op, type.type) != nullptr;
  RETURN_IF_ERROR(Expect(known, "op ", op.name, ": the type '", type.type, "' of '", arg.name,
                         "' is not declared"));
  return Expect(type.count.empty() || HasAttr<Ints>(op, type.count), "op ", op.name,
                ": the count '", type.count, "' of '", arg.name, "' is not declared");
}

Status CheckDefaults(const OpDef& op) {
  std::set<string_view> names;
  const auto once = [&](string_view name) {
    return Expect(names.insert(name).second, "op ", op.name, " declares '", name, "' twice");
  };
  // A copy of `op` without its required attributes, to check the default values of the others.
  OpDef optional{.name = op.name};
  Attrs defaults;
  for (const TypeAttrDef& type : op.types) {
    RETURN_IF_ERROR(once(type.name));
    if (type.default_type == DType::kInvalid) continue;
    optional.types.push_back(type);
    defaults[type.name] = type.default_type;
  }
  for (const AttrDef& attr : op.attrs) {
    RETURN_IF_ERROR(once(attr.name));
    if (attr.required()) continue;
    optional.attrs.push_back(attr);
    defaults[attr.name] = attr.default_value;
  }
  return CompleteAttrs(optional, &defaults);
}

Status CheckOp(const OpDef& op) {
  std::set<string_view> names;
  for (const auto* args : {&op.inputs, &op.outputs}) {
    for (const ArgDef& arg : *args) {
      RETURN_IF_ERROR(Expect(names.insert(arg.name).second, "op ", op.name, " declares '", arg.name,
                             "' twice"));
      RETURN_IF_ERROR(CheckArg(op, arg));
    }
  }
  // The memory plan assumes that output i is a view of input i.
  RETURN_IF_ERROR(Expect(!op.is_view || op.inputs.size() >= op.outputs.size(), "op ", op.name,
                         " has fewer inputs than outputs, so it cannot be a view"));
  RETURN_IF_ERROR(Expect(op.resource_use == ResourceUse::kOther || op.may_wait, "op ", op.name,
                         " has a resource_use but not may_wait"));
  RETURN_IF_ERROR(Expect(op.used_input == 0 || op.used_input < static_cast<int>(op.inputs.size()),
                         "op ", op.name, " has no input ", op.used_input, ", its used_input"));
  return CheckDefaults(op);
}

Status CheckKernel(const OpDef& op, const KernelDef& kernel) {
  RETURN_IF_ERROR(Expect(kernel.make != nullptr, "a kernel of ", op.name, " cannot be made"));
  for (const auto& [attr, dtype] : kernel.types) {
    const TypeAttrDef* type = FindType(op, attr);
    RETURN_IF_ERROR(Expect(type != nullptr, "a kernel of ", op.name, " names '", attr,
                           "', which the op has not"));
    RETURN_IF_ERROR(Expect(
        type->allowed.empty() ||
            std::find(type->allowed.begin(), type->allowed.end(), dtype) != type->allowed.end(),
        "a kernel of ", op.name, " is for ", attr, "=", Name(dtype), ", which the op excludes"));
  }
  for (const std::string& arg : kernel.host_args) {
    const auto has_name = [&](const ArgDef& def) { return def.name == arg; };
    RETURN_IF_ERROR(Expect(std::any_of(op.inputs.begin(), op.inputs.end(), has_name) ||
                               std::any_of(op.outputs.begin(), op.outputs.end(), has_name),
                           "a kernel of ", op.name, " keeps '", arg,
                           "' on the host, which the op has not"));
  }
  return OkStatus();
}

}  // namespace

// Returns an error if these ops and kernels cannot form a registry.
Status CheckDeclarations(const std::vector<OpDef>& ops, const std::vector<KernelDef>& kernels) {
  std::map<string_view, const OpDef*> known;
  for (const OpDef& op : ops) {
    RETURN_IF_ERROR(CheckOp(op));
    RETURN_IF_ERROR(
        Expect(known.emplace(op.name, &op).second, "op ", op.name, " is declared twice"));
  }
  std::map<string_view, std::vector<const KernelDef*>> by_op;
  for (const KernelDef& kernel : kernels) {
    const auto op = known.find(kernel.op);
    RETURN_IF_ERROR(Expect(op != known.end(), "a kernel is for ", kernel.op, ", which is no op"));
    RETURN_IF_ERROR(CheckKernel(*op->second, kernel));
    std::vector<const KernelDef*>& others = by_op[kernel.op];
    for (const KernelDef* other : others) {
      RETURN_IF_ERROR(Expect(other->device != kernel.device || other->types != kernel.types,
                             "two kernels of ", kernel.op, " for ", Describe(kernel)));
    }
    others.push_back(&kernel);
  }
  return OkStatus();
}

}  // namespace penstock

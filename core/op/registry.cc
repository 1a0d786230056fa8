// SPDX-License-Identifier: Apache-2.0
#include "core/op/registry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "core/base/check.h"

namespace penstock {

// Declared in core/base/suggest.h.
std::string SuggestNames(string_view name, const std::vector<string_view>& known);
// Defined in check_declarations.cc. There is no private header, because all code that uses core/op
// would depend on it.
Status CheckDeclarations(const std::vector<OpDef>& ops, const std::vector<KernelDef>& kernels);

// Returns the kernel's device and types: "CPU (T=float)", or "CPU" if it is for all types.
std::string Describe(const KernelDef& kernel) {
  if (kernel.types.empty()) return kernel.device;
  return StrCat(kernel.device, " (",
                absl::StrJoin(kernel.types, ", ",
                              [](std::string* out, const auto& type) {
                                StrAppend(out, type.first, "=", Name(type.second));
                              }),
                ")");
}

namespace {

bool Fits(const KernelDef& kernel, string_view device_type, const Attrs& attrs) {
  if (kernel.device != device_type) return false;
  return std::all_of(kernel.types.begin(), kernel.types.end(), [&](const auto& required) {
    const auto it = attrs.find(required.first);
    const EdgeType* type = it == attrs.end() ? nullptr : it->second.template get<EdgeType>();
    return type != nullptr && type->dtype == required.second;
  });
}

std::string DescribeTypes(const OpDef& op, const Attrs& attrs) {
  std::vector<std::string> types;
  for (const TypeAttrDef& type : op.types) {
    const auto it = attrs.find(type.name);
    if (it != attrs.end()) types.push_back(StrCat(type.name, "=", it->second.ToString()));
  }
  return types.empty() ? "" : StrCat(" with ", absl::StrJoin(types, ", "));
}

}  // namespace

Registry::Registry(std::vector<OpDef> ops, std::vector<KernelDef> kernels) {
  CHECK_OK(CheckDeclarations(ops, kernels));
  for (OpDef& op : ops) {
    const std::string name = op.name;
    ops_.emplace(name, std::move(op));
  }
  for (KernelDef& kernel : kernels) kernels_[kernel.op].push_back(std::move(kernel));
}

const OpDef* Registry::FindOp(string_view op) const {
  const auto it = ops_.find(op);
  return it == ops_.end() ? nullptr : &it->second;
}

StatusOr<const OpDef*> Registry::GetOp(string_view op) const {
  const OpDef* found = FindOp(op);
  if (found != nullptr) return found;
  std::vector<string_view> known;
  for (const auto& [name, def] : ops_) known.push_back(name);
  return NotFound("there is no op '", op, "'", SuggestNames(op, known));
}

StatusOr<const KernelDef*> Registry::FindKernel(string_view op, string_view device_type,
                                                const Attrs& attrs) const {
  ASSIGN_OR_RETURN(const OpDef* def, GetOp(op));
  const std::vector<const KernelDef*> candidates = kernels(op);
  const KernelDef* best = nullptr;  // the matching kernel that names the most types
  for (const KernelDef* kernel : candidates) {
    if (!Fits(*kernel, device_type, attrs)) continue;
    if (best == nullptr || kernel->types.size() > best->types.size()) best = kernel;
  }
  if (best != nullptr) return best;
  return NotFound(
      "op '", op, "' has no kernel for ", device_type, DescribeTypes(*def, attrs), "; it has ",
      candidates.empty()
          ? "none at all"
          : absl::StrJoin(candidates, ", ", [](std::string* out, const KernelDef* kernel) {
              out->append(Describe(*kernel));
            }));
}

StatusOr<std::unique_ptr<Kernel>> Registry::MakeKernel(string_view device_type,
                                                       const KernelInit& node) const {
  ASSIGN_OR_RETURN(const KernelDef* def, FindKernel(node.op.name, device_type, node.attrs));
  std::unique_ptr<Kernel> kernel = def->make();
  RETURN_IF_ERROR(kernel->Init(node));
  return kernel;
}

std::vector<const OpDef*> Registry::ops() const {
  std::vector<const OpDef*> ops;
  for (const auto& [name, def] : ops_) ops.push_back(&def);
  return ops;
}

std::vector<const KernelDef*> Registry::kernels(string_view op) const {
  std::vector<const KernelDef*> kernels;
  const auto it = kernels_.find(op);
  if (it == kernels_.end()) return kernels;
  for (const KernelDef& kernel : it->second) kernels.push_back(&kernel);
  return kernels;
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "core/op/registry.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "core/base/check.h"

namespace penstock {
namespace {

struct DeclaredOp {
  const char* name;
  OpDef (*make)();
};

// Function-local: declarations of other files run in any order.
std::vector<DeclaredOp>& OpList() {
  static auto& list = *new std::vector<DeclaredOp>;
  return list;
}

std::vector<std::vector<KernelDef> (*)()>& KernelList() {
  static auto& list = *new std::vector<std::vector<KernelDef> (*)()>;
  return list;
}

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

void CheckArg(const OpDef& op, const ArgDef& arg) {
  const ArgType& type = arg.type;
  const bool known =
      type.list ? HasAttr<TypeList>(op, type.type)
                : DTypeFromName(type.type) != DType::kInvalid || FindType(op, type.type) != nullptr;
  CHECK(known, "op ", op.name, ": the type '", type.type, "' of '", arg.name, "' is not declared");
  CHECK(type.count.empty() || HasAttr<Ints>(op, type.count), "op ", op.name, ": the count '",
        type.count, "' of '", arg.name, "' is not declared");
}

void CheckOp(const OpDef& op) {
  std::set<string_view> names;
  for (const auto* args : {&op.inputs, &op.outputs}) {
    for (const ArgDef& arg : *args) {
      CHECK(names.insert(arg.name).second, "op ", op.name, " declares '", arg.name, "' twice");
      CheckArg(op, arg);
    }
  }
  names.clear();
  OpDef optional{.name = op.name};  // its defaults must pass its own checks
  Attrs defaults;
  for (const TypeAttrDef& type : op.types) {
    CHECK(names.insert(type.name).second, "op ", op.name, " declares '", type.name, "' twice");
    if (type.default_type == DType::kInvalid) continue;
    optional.types.push_back(type);
    defaults[type.name] = type.default_type;
  }
  for (const AttrDef& attr : op.attrs) {
    CHECK(names.insert(attr.name).second, "op ", op.name, " declares '", attr.name, "' twice");
    if (attr.required()) continue;
    optional.attrs.push_back(attr);
    defaults[attr.name] = attr.default_value;
  }
  CHECK_OK(CompleteAttrs(optional, &defaults));
}

void CheckKernel(const OpDef& op, const KernelDef& kernel) {
  CHECK(kernel.make != nullptr, "a kernel of ", op.name, " cannot be made");
  for (const auto& [attr, dtype] : kernel.types) {
    const TypeAttrDef* type = FindType(op, attr);
    CHECK(type != nullptr, "a kernel of ", op.name, " names '", attr, "', which the op has not");
    CHECK(type->allowed.empty() ||
              std::find(type->allowed.begin(), type->allowed.end(), dtype) != type->allowed.end(),
          "a kernel of ", op.name, " is for ", attr, "=", Name(dtype), ", which the op excludes");
  }
  for (const std::string& arg : kernel.host_args) {
    const auto is_it = [&](const ArgDef& def) { return def.name == arg; };
    CHECK(std::any_of(op.inputs.begin(), op.inputs.end(), is_it) ||
              std::any_of(op.outputs.begin(), op.outputs.end(), is_it),
          "a kernel of ", op.name, " keeps '", arg, "' on the host, which the op has not");
  }
}

int EditDistance(string_view a, string_view b) {
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    int diagonal = std::exchange(row[0], static_cast<int>(i) + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const bool same = absl::ascii_tolower(a[i]) == absl::ascii_tolower(b[j]);
      const int best = std::min({row[j] + 1, row[j + 1] + 1, diagonal + !same});
      diagonal = std::exchange(row[j + 1], best);
    }
  }
  return row.back();
}

bool Fits(const KernelDef& kernel, string_view device_type, const Attrs& attrs) {
  if (kernel.device != device_type) return false;
  return std::all_of(kernel.types.begin(), kernel.types.end(), [&](const auto& wanted) {
    const auto it = attrs.find(wanted.first);
    const EdgeType* type = it == attrs.end() ? nullptr : it->second.template get<EdgeType>();
    return type != nullptr && type->dtype == wanted.second;
  });
}

// "CPU (T=float)".
std::string Describe(const KernelDef& kernel) {
  if (kernel.types.empty()) return kernel.device;
  return StrCat(kernel.device, " (",
                absl::StrJoin(kernel.types, ", ",
                              [](std::string* out, const auto& type) {
                                StrAppend(out, type.first, "=", Name(type.second));
                              }),
                ")");
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

OpDeclaration::OpDeclaration(const char* name, OpDef (*make)()) {
  OpList().push_back({name, make});
}
KernelDeclaration::KernelDeclaration(std::vector<KernelDef> (*make)()) {
  KernelList().push_back(make);
}

std::vector<OpDef> DeclaredOps() {
  std::vector<OpDef> ops;
  for (const DeclaredOp& declared : OpList()) {
    ops.push_back(declared.make());
    ops.back().name = declared.name;
  }
  return ops;
}

std::vector<KernelDef> DeclaredKernels() {
  std::vector<KernelDef> kernels;
  for (const auto make : KernelList()) {
    for (KernelDef& kernel : make()) kernels.push_back(std::move(kernel));
  }
  return kernels;
}

const Registry& Registry::Global() {
  static const Registry& registry = *new Registry(DeclaredOps(), DeclaredKernels());
  return registry;
}

Registry::Registry(std::vector<OpDef> ops, std::vector<KernelDef> kernels) {
  for (OpDef& op : ops) {
    CheckOp(op);
    const std::string name = op.name;
    CHECK(ops_.emplace(name, std::move(op)).second, "op ", name, " is declared twice");
  }
  for (KernelDef& kernel : kernels) {
    const OpDef* op = FindOp(kernel.op);
    CHECK(op != nullptr, "a kernel is for ", kernel.op, ", which is no op");
    CheckKernel(*op, kernel);
    std::vector<KernelDef>& known = kernels_[kernel.op];
    for (const KernelDef& other : known) {
      CHECK(other.device != kernel.device || other.types != kernel.types, "two kernels of ",
            kernel.op, " for ", Describe(kernel));
    }
    known.push_back(std::move(kernel));
  }
}

const OpDef* Registry::FindOp(string_view op) const {
  const auto it = ops_.find(op);
  return it == ops_.end() ? nullptr : &it->second;
}

StatusOr<const OpDef*> Registry::GetOp(string_view op) const {
  const OpDef* found = FindOp(op);
  if (found != nullptr) return found;
  std::vector<std::pair<int, string_view>> close;
  const int far = std::max<int>(2, static_cast<int>(op.size()) / 3);
  for (const auto& [name, def] : ops_) {
    const int distance = op.size() > 100 ? far + 1 : EditDistance(op, name);
    if (distance <= far) close.emplace_back(distance, name);
  }
  std::sort(close.begin(), close.end());
  if (close.size() > 3) close.resize(3);
  const std::string suggestion =
      close.empty() ? ""
                    : StrCat("; did you mean ",
                             absl::StrJoin(close, " or ",
                                           [](std::string* out, const auto& candidate) {
                                             StrAppend(out, "'", candidate.second, "'");
                                           }),
                             "?");
  return NotFound("there is no op '", op, "'", suggestion);
}

StatusOr<const KernelDef*> Registry::FindKernel(string_view op, string_view device_type,
                                                const Attrs& attrs) const {
  ASSIGN_OR_RETURN(const OpDef* def, GetOp(op));
  const std::vector<const KernelDef*> candidates = kernels(op);
  const KernelDef* best = nullptr;  // the one that names most types
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

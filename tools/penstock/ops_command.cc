// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "core/op/load_library.h"
#include "core/op/registry.h"
#include "tools/penstock/commands.h"
#include "tools/penstock/load_flag.h"
#include "tools/penstock/op_spec.h"

namespace penstock {
namespace {

constexpr size_t kBeginningMin = 3;
constexpr size_t kSuggested = 5;

// The types that a kernel's device has for an op: "float double" or, if kernels do not ask,
// "any".
std::map<std::string, std::set<std::string>> TypesByDevice(const Registry& registry,
                                                           const OpDef& op) {
  std::map<std::string, std::set<std::string>> types;
  for (const KernelDef* kernel : registry.kernels(op.name)) {
    std::vector<std::string> names;
    for (const auto& [attr, dtype] : kernel->types) names.push_back(Name(dtype));
    types[kernel->device].insert(names.empty() ? "any" : absl::StrJoin(names, "/"));
  }
  return types;
}

std::string Spell(const ArgType& type) {
  std::string text = type.ref ? StrCat("Ref(", type.type, ")") : type.type;
  if (type.list) text = StrCat("list of ", text);
  return type.count.empty() ? text : StrCat(type.count, " * ", text);
}

void PrintArgs(const char* what, const std::vector<ArgDef>& args) {
  if (args.empty()) return;
  std::printf("\n%s:\n", what);
  for (const ArgDef& arg : args) {
    std::printf("  %-20s %s%s%s\n", arg.name.c_str(), Spell(arg.type).c_str(),
                arg.doc.empty() ? "" : "  ", arg.doc.c_str());
  }
}

void Describe(const Registry& registry, const OpDef& op) {
  std::printf("%s%s\n\n%s\n", op.name.c_str(), op.stateful ? "  (stateful)" : "", op.doc.c_str());
  PrintArgs("Inputs", op.inputs);
  PrintArgs("Outputs", op.outputs);
  if (!op.types.empty() || !op.attrs.empty()) std::printf("\nAttributes:\n");
  for (const TypeAttrDef& type : op.types) {
    std::vector<std::string> names;
    for (DType dtype : type.allowed) names.push_back(Name(dtype));
    std::printf(
        "  %-20s type%s: %s\n", type.name.c_str(),
        type.default_type == DType::kInvalid ? "" : StrCat(" = ", Name(type.default_type)).c_str(),
        absl::StrJoin(names, " ").c_str());
  }
  for (const AttrDef& attr : op.attrs) {
    std::printf("  %-20s %s\n", attr.name.c_str(),
                attr.required() ? "required" : StrCat("= ", attr.default_value.ToString()).c_str());
  }
  std::printf("\nKernels:\n");
  for (const auto& [device, types] : TypesByDevice(registry, op)) {
    std::printf("  %-4s %s\n", device.c_str(), absl::StrJoin(types, " ").c_str());
  }
  std::printf("\nGradient: %s\n", op.gradient != nullptr ? "yes" : "none");
}

// The ops whose names contain `filter`, in any case.
std::vector<const OpDef*> Matching(const Registry& registry, string_view filter) {
  const std::string wanted = absl::AsciiStrToLower(filter);
  std::vector<const OpDef*> matching;
  for (const OpDef* op : registry.ops()) {
    if (absl::StrContains(absl::AsciiStrToLower(op->name), wanted)) matching.push_back(op);
  }
  return matching;
}

// Names ops that are spelled like `filter`, or that contain its beginning.
Status NothingMatches(const Registry& registry, string_view filter) {
  const Status similar = registry.GetOp(filter).status();
  if (absl::StrContains(similar.message(), "did you mean")) {
    return Annotate(similar, StrCat("--grep=", filter));
  }
  std::string near;
  for (size_t size = filter.size() - 1; size >= kBeginningMin && near.empty(); --size) {
    const auto matching = Matching(registry, filter.substr(0, size));
    for (size_t i = 0; i < matching.size() && i < kSuggested; ++i) {
      StrAppend(&near, i == 0 ? "; there are " : ", ", matching[i]->name);
    }
  }
  return NotFound("--grep=", filter, ": no op's name contains it",
                  near.empty() ? "; `penstock ops` lists all" : near);
}

void PrintTable(const Registry& registry, const std::vector<const OpDef*>& ops) {
  std::set<std::string> devices = {"CPU"};
  for (const OpDef* op : registry.ops()) {
    for (const KernelDef* kernel : registry.kernels(op->name)) devices.insert(kernel->device);
  }
  for (const OpDef* op : ops) {
    std::printf("%-40s %-9s", op->name.c_str(), op->gradient != nullptr ? "gradient" : "");
    const auto types = TypesByDevice(registry, *op);
    for (const std::string& device : devices) {
      const auto it = types.find(device);
      std::printf(" %s[%s]", device.c_str(),
                  it == types.end() ? "" : absl::StrJoin(it->second, " ").c_str());
    }
    std::printf("\n");
  }
  std::printf("%zu ops\n", ops.size());
}

// The library that has brought an op; "" if it is built in.
std::string LibraryOf(const OpDef& op) {
  for (const OpLibrary& library : LoadedLibraries()) {
    if (std::count(library.ops.begin(), library.ops.end(), op.name) > 0) return library.path;
  }
  return "";
}

void PrintJson(const std::vector<const OpDef*>& ops) {
  auto specs = nlohmann::json::array();
  for (const OpDef* op : ops) {
    specs.push_back(OpSpec(*op));
    specs.back()["library"] = LibraryOf(*op);
  }
  std::printf("%s\n", specs.dump(1).c_str());
}

struct OpsOptions {
  std::string name, filter;
  bool json = false;
};

Status ListOps(const OpsOptions& options) {
  const Registry& registry = Registry::Global();
  if (!options.name.empty()) {
    ASSIGN_OR_RETURN(const OpDef* const op, registry.GetOp(options.name));
    options.json ? PrintJson({op}) : Describe(registry, *op);
    return OkStatus();
  }
  const std::vector<const OpDef*> matching = Matching(registry, options.filter);
  if (matching.empty()) return NothingMatches(registry, options.filter);
  options.json ? PrintJson(matching) : PrintTable(registry, matching);
  return OkStatus();
}

}  // namespace

void AddOpsCommand(CLI::App& app, int* exit_code) {
  CLI::App* ops = app.add_subcommand("ops", "List the ops: which devices and types each runs on");
  ops->footer(
      "  penstock ops              the table of all ops\n"
      "  penstock ops MatMul       everything about one\n"
      "  penstock ops --grep=Pool  those whose names contain Pool, in any case\n"
      "  penstock ops --load=libtriple.so Triple  an op of a library\n");
  auto options = std::make_shared<OpsOptions>();
  ops->add_option("op", options->name, "Describe this op");
  ops->add_option("--grep", options->filter, "Only ops whose names contain this, in any case");
  ops->add_flag("--json", options->json,
                "Print for programs: signatures as TensorFlow spells them, and which library has "
                "brought the op");
  AddLoadFlag(*ops);
  ops->callback([options, exit_code] { *exit_code = ExitCodeOf(ListOps(*options)); });
}

}  // namespace penstock

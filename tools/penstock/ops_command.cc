// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "core/op/registry.h"
#include "tools/penstock/commands.h"

namespace penstock {
namespace {

// The types that a kernel's device has for an op: "float double" or, where kernels do not ask,
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

void PrintTable(const Registry& registry, const std::string& filter) {
  std::set<std::string> devices = {"CPU"};
  for (const OpDef* op : registry.ops()) {
    for (const KernelDef* kernel : registry.kernels(op->name)) devices.insert(kernel->device);
  }
  int count = 0;
  for (const OpDef* op : registry.ops()) {
    if (op->name.find(filter) == std::string::npos) continue;
    ++count;
    std::printf("%-40s %-9s", op->name.c_str(), op->gradient != nullptr ? "gradient" : "");
    const auto types = TypesByDevice(registry, *op);
    for (const std::string& device : devices) {
      const auto it = types.find(device);
      std::printf(" %s[%s]", device.c_str(),
                  it == types.end() ? "" : absl::StrJoin(it->second, " ").c_str());
    }
    std::printf("\n");
  }
  std::printf("%d ops\n", count);
}

}  // namespace

void AddOpsCommand(CLI::App& app, int* exit_code) {
  CLI::App* ops = app.add_subcommand("ops", "List the ops: which devices and types each runs on");
  ops->footer(
      "  penstock ops              the table of all ops\n"
      "  penstock ops MatMul       everything about one\n"
      "  penstock ops --grep=Pool  those whose names contain Pool\n");
  auto name = std::make_shared<std::string>();
  auto filter = std::make_shared<std::string>();
  ops->add_option("op", *name, "Describe this op");
  ops->add_option("--grep", *filter, "Only ops whose names contain this");
  ops->callback([name, filter, exit_code] {
    const Registry& registry = Registry::Global();
    if (name->empty()) {
      PrintTable(registry, *filter);
      return;
    }
    const StatusOr<const OpDef*> op = registry.GetOp(*name);
    if (op.ok()) Describe(registry, **op);
    *exit_code = ExitCodeOf(op.status());
  });
}

}  // namespace penstock

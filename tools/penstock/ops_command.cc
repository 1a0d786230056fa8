// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "core/base/suggest.h"
#include "core/op/load_library.h"
#include "core/op/registry.h"
#include "tools/penstock/commands.h"
#include "tools/penstock/load_flag.h"
#include "tools/penstock/op_facts.h"
#include "tools/penstock/op_page.h"
#include "tools/penstock/op_spec.h"

namespace penstock {
namespace {

constexpr size_t kBeginningMin = 3;
constexpr size_t kSuggested = 5;

void PrintFacts(const char* what, const std::vector<OpFact>& facts) {
  if (facts.empty()) return;
  std::printf("\n%s:\n", what);
  for (const OpFact& fact : facts) {
    std::printf("  %-20s %s%s%s\n", fact.name.c_str(), fact.type.c_str(),
                fact.doc.empty() ? "" : "  ", fact.doc.c_str());
  }
}

void Describe(const Registry& registry, const OpDef& op) {
  const OpFacts facts = FactsOf(registry, op);
  std::printf("%s%s\n\n%s\n", op.name.c_str(), op.stateful ? "  (stateful)" : "", op.doc.c_str());
  PrintFacts("Inputs", facts.inputs);
  PrintFacts("Outputs", facts.outputs);
  PrintFacts("Attributes", facts.attributes);
  std::printf("\nKernels:\n");
  for (const auto& [device, types] : facts.kernels) {
    std::printf("  %-4s %s\n", device.c_str(), absl::StrJoin(types, " ").c_str());
  }
  std::printf("\nGradient: %s\n", facts.gradient ? "yes" : "none");
}

// Returns the ops whose names contain `filter`, ignoring case.
std::vector<const OpDef*> Matching(const Registry& registry, string_view filter) {
  const std::string wanted = absl::AsciiStrToLower(filter);
  std::vector<const OpDef*> matching;
  for (const OpDef* op : registry.ops()) {
    if (absl::StrContains(absl::AsciiStrToLower(op->name), wanted)) matching.push_back(op);
  }
  return matching;
}

// Returns NotFound. The error names ops with a spelling similar to `filter`; if there are none, ops
// whose names contain the beginning of `filter`.
Status NothingMatches(const Registry& registry, string_view filter) {
  std::vector<string_view> names;
  for (const OpDef* op : registry.ops()) names.push_back(op->name);
  const std::string similar = SuggestNames(filter, names);
  if (!similar.empty())
    return NotFound("--grep=", filter, ": there is no op '", filter, "'", similar);
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
    const auto types = KernelTypes(registry, *op);
    for (const std::string& device : devices) {
      const auto it = types.find(device);
      std::printf(" %s[%s]", device.c_str(),
                  it == types.end() ? "" : absl::StrJoin(it->second, " ").c_str());
    }
    std::printf("\n");
  }
  std::printf("%zu ops\n", ops.size());
}

// Returns the library that contains the op; "" if it is built in.
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
  // A library's texts may be invalid UTF-8.
  const std::string text = specs.dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::printf("%s\n", text.c_str());
}

struct OpsOptions {
  std::string name, filter;
  bool json = false, html = false;
};

void PrintOps(const Registry& registry, const std::vector<const OpDef*>& ops,
              const OpsOptions& options) {
  if (options.json) return PrintJson(ops);
  if (options.html) return void(std::fputs(OpPage(registry, ops).c_str(), stdout));
  options.name.empty() ? PrintTable(registry, ops) : Describe(registry, *ops[0]);
}

Status ListOps(const OpsOptions& options) {
  const Registry& registry = Registry::Global();
  if (!options.name.empty()) {
    ASSIGN_OR_RETURN(const OpDef* const op, registry.GetOp(options.name));
    PrintOps(registry, {op}, options);
    return OkStatus();
  }
  const std::vector<const OpDef*> matching = Matching(registry, options.filter);
  if (matching.empty()) return NothingMatches(registry, options.filter);
  PrintOps(registry, matching, options);
  return OkStatus();
}

}  // namespace

void AddOpsCommand(CLI::App& app, int* exit_code) {
  CLI::App* ops = app.add_subcommand("ops", "List the ops: which devices and types each runs on");
  ops->footer(
      "  penstock ops              the table of all ops\n"
      "  penstock ops MatMul       everything about one\n"
      "  penstock ops --grep=Pool  those whose names contain Pool, in any case\n"
      "  penstock ops --load=libtriple.so Triple  an op of a library\n"
      "  penstock ops --html > ops.html           the reference as a page for a browser\n");
  auto options = std::make_shared<OpsOptions>();
  ops->add_option("op", options->name, "Describe this op");
  ops->add_option("--grep", options->filter, "Only ops whose names contain this, in any case");
  CLI::Option* html =
      ops->add_flag("--html", options->html, "Print one HTML page, with a field that filters");
  ops->add_flag("--json", options->json,
                "Print JSON: the ops' signatures in TensorFlow's notation, and the library that "
                "contains each op")
      ->excludes(html);
  AddLoadFlag(*ops);
  ops->callback([options, exit_code] { *exit_code = ExitCodeOf(ListOps(*options)); });
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "core/compiler/compile.h"
#include "core/graph/graph_proto.h"
#include "tools/penstock/commands.h"
#include "tools/penstock/compile_flags.h"
#include "tools/penstock/load_flag.h"

namespace penstock {
namespace {

struct GraphOptions {
  std::string path, after, out;
  bool dot = false, explain = false;
  CompileFlags compile;
};

void Print(const Graph& graph) {
  for (const Node* node : graph.nodes()) {
    std::vector<std::string> inputs;
    for (const Endpoint& in : node->inputs()) {
      inputs.push_back(in.index == 0 ? in.node->name() : StrCat(in.node->name(), ":", in.index));
    }
    for (const Node* control : node->control_inputs()) inputs.push_back("^" + control->name());
    std::vector<std::string> types;
    for (const EdgeType& type : node->output_types()) types.push_back(Name(type));
    const std::string& device =
        node->assigned_device().empty() ? node->requested_device() : node->assigned_device();
    std::printf("%s = %s(%s)%s%s%s%s\n", node->name().c_str(), node->op_name().c_str(),
                absl::StrJoin(inputs, ", ").c_str(), types.empty() ? "" : " -> ",
                absl::StrJoin(types, ", ").c_str(), device.empty() ? "" : "  @ ", device.c_str());
  }
  std::printf("%d nodes\n", graph.num_nodes());
}

void PrintDot(const Graph& graph) {
  std::printf("digraph {\n  rankdir=BT; node [shape=box, fontname=sans, fontsize=10];\n");
  for (const Node* node : graph.nodes()) {
    std::printf("  n%d [label=\"%s\\n%s\"];\n", node->id(), node->name().c_str(),
                node->op_name().c_str());
    for (const Endpoint& in : node->inputs())
      std::printf("  n%d -> n%d;\n", in.node->id(), node->id());
    for (const Node* control : node->control_inputs()) {
      std::printf("  n%d -> n%d [style=dashed];\n", control->id(), node->id());
    }
  }
  std::printf("}\n");
}

Status Show(const Graph& graph, const GraphOptions& options) {
  if (!options.out.empty()) return WriteGraphFile(Env::Real(), graph, options.out);
  options.dot ? PrintDot(graph) : Print(graph);
  return OkStatus();
}

Status ShowAfterPass(const Graph& graph, const GraphOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<DeviceInfo> devices, options.compile.Devices());
  ASSIGN_OR_RETURN(CompileOptions compile, options.compile.Options(devices));
  compile.predict = options.explain;
  Status shown;
  bool seen = false, partitioned = false;
  compile.dump = [&](string_view pass, const Graph& g) {
    partitioned |= pass == "partition";
    if (pass != options.after || !shown.ok()) return;
    seen = true;
    if (partitioned) std::printf("# %s\n", g.nodes().front()->assigned_device().c_str());
    shown = Show(g, options);
  };
  CompileReport report;
  RETURN_IF_ERROR(Compile(graph, devices, compile, &report).status());
  if (!seen) return InvalidArgument("--after=", options.after, ": --disable_passes leaves it out");
  if (options.explain) std::fputs(ToString(report).c_str(), stdout);
  return shown;
}

Status RunGraphCommand(const GraphOptions& options) {
  const CompileFlags& compile = options.compile;
  const bool compiles = options.explain || compile.bfloat16_transfers ||
                        compile.memory_limit != 0 || !compile.disabled_passes.empty();
  if (options.after.empty() && compiles) {
    return InvalidArgument(
        "--explain, --bfloat16_transfers, --memory_limit and --disable_passes tell of a "
        "compilation: give --after too");
  }
  ASSIGN_OR_RETURN(const Graph graph, ReadGraphFile(Env::Real(), options.path, Registry::Global()));
  return options.after.empty() ? Show(graph, options) : ShowAfterPass(graph, options);
}

}  // namespace

void AddGraphCommand(CLI::App& app, int* exit_code) {
  CLI::App* graph = app.add_subcommand("graph", "Print or convert a graph, as written or compiled");
  graph->footer(
      "  penstock graph model.pb                                    its nodes, a line each\n"
      "  penstock graph model.pb --out=model.pbtxt                  as text\n"
      "  penstock graph model.pb --after=place --fetch=loss:0       what the compiler makes of it\n"
      "  penstock graph model.pb --after=place --fetch=loss:0 --explain\n"
      "                                                             and the reasons\n"
      "  penstock graph model.pb --dot | dot -Tsvg > model.svg      a picture\n");
  auto options = std::make_shared<GraphOptions>();
  graph->add_option("file", options->path, "A GraphDef, binary or text")->required();
  graph->add_option("--after", options->after, "Compile, and show the graph after this pass")
      ->check(CLI::IsMember(PassNames()));
  options->compile.AddTo(*graph);
  graph->add_option("--out", options->out, "Write the graph to this file (.pbtxt: as text)");
  CLI::Option* const dot = graph->add_flag("--dot", options->dot, "Print in Graphviz's language");
  graph
      ->add_flag("--explain", options->explain,
                 "Also print the time of each pass, and the reason for each node's placement")
      ->excludes(dot);
  AddLoadFlag(*graph);
  graph->callback([options, exit_code] { *exit_code = ExitCodeOf(RunGraphCommand(*options)); });
}

}  // namespace penstock

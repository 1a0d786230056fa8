// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/compile.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/compiler/cost_model.h"
#include "core/compiler/late_reads.h"
#include "core/compiler/partitioner.h"
#include "core/compiler/passes/passes.h"
#include "core/compiler/placer.h"

namespace penstock {
namespace {

// The optimisations, in order. Each can be run alone; all are off without CompileOptions::optimize.
struct Optimization {
  const char* name;
  Status (*run)(Graph* graph, const CompileOptions& options);
};
constexpr Optimization kOptimizations[] = {
    {"fold",
     [](Graph* g, const CompileOptions& o) { return FoldConstants(g, *o.env, *o.threads); }},
    {"merge", [](Graph* g, const CompileOptions&) { return EliminateCommonSubexpressions(g); }},
    {"sweep", [](Graph* g, const CompileOptions& o) { return RemoveDeadNodes(g, o.targets); }},
};

Status PlaceAll(const std::vector<DeviceInfo>& devices, const CompileOptions& options,
                Graph* graph) {
  const PlaceOptions place{.allow_soft_placement = options.allow_soft_placement,
                           .client_device = options.client_device};
  if (options.cost_model != nullptr) return Place(devices, *options.cost_model, place, graph);
  ASSIGN_OR_RETURN(ShapeMap shapes, InferShapes(*graph));
  return Place(devices, *NewStaticCostModel(std::move(shapes)), place, graph);
}

Status Verified(string_view pass, const Graph& graph, const CompileOptions& options) {
  RETURN_IF_ERROR(Annotate(graph.Validate(), StrCat("after pass '", pass, "'")));
  if (options.dump) options.dump(pass, graph);
  return OkStatus();
}

}  // namespace

StatusOr<std::vector<Partition>> Compile(const Graph& graph, const std::vector<DeviceInfo>& devices,
                                         const CompileOptions& options) {
  CHECK(!options.optimize || (options.env != nullptr && options.threads != nullptr));
  ASSIGN_OR_RETURN(Graph g, Prune(graph, options));
  RETURN_IF_ERROR(Verified("prune", g, options));
  for (const Optimization& optimization : kOptimizations) {
    if (!options.optimize) break;
    RETURN_IF_ERROR(optimization.run(&g, options));
    RETURN_IF_ERROR(Verified(optimization.name, g, options));
  }
  RETURN_IF_ERROR(PlaceAll(devices, options, &g));
  RETURN_IF_ERROR(Verified("place", g, options));
  RETURN_IF_ERROR(ReadVariablesLate(&g));
  RETURN_IF_ERROR(Verified("read", g, options));
  return PartitionGraph(g, devices);
}

std::vector<std::string> PassNames() {
  std::vector<std::string> names = {"prune"};
  for (const Optimization& optimization : kOptimizations) names.push_back(optimization.name);
  names.insert(names.end(), {"place", "read"});
  return names;
}

}  // namespace penstock

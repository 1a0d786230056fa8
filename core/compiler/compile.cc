// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/compile.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "core/base/env.h"
#include "core/compiler/passes/passes.h"

namespace penstock {
namespace {

constexpr Pass kPasses[] = {
    {"prune", Stage::kGraph, Pass::kRequired, Prune},
    {"gradients", Stage::kGraph, Pass::kRequired, ExpandFunctionGradients},
    {"fold", Stage::kGraph, Pass::kOptional, FoldConstants},
    {"simplify", Stage::kGraph, Pass::kOptional, SimplifyArithmetic},
    {"merge", Stage::kGraph, Pass::kOptional, EliminateCommonSubexpressions},
    {"sweep", Stage::kGraph, Pass::kOptional, RemoveDeadNodes},
    {"gather", Stage::kGraph, Pass::kOptional, GatherFromVariables},
    {"place", Stage::kGraph, Pass::kRequired, PlaceNodes},
    {"read", Stage::kPlaced, Pass::kRequired, ReadVariablesLate},
    {"compress", Stage::kPlaced, Pass::kRequired, CompressTransfers},
    {"fuse", Stage::kPlaced, Pass::kOptional, FuseElementwise},
    {"schedule", Stage::kPlaced, Pass::kOptional, ScheduleTransfers},
    {"memory", Stage::kPlaced, Pass::kRequired, FitMemory},
    {"partition", Stage::kPlaced, Pass::kRequired, MakePartitions},
    {"controls", Stage::kPartition, Pass::kOptional, DropControls},
};

std::string NamesOf(absl::Span<const Pass> passes, bool optional_only) {
  std::vector<std::string> names;
  for (const Pass& pass : passes) {
    if (!optional_only || pass.need == Pass::kOptional) names.emplace_back(pass.name);
  }
  return absl::StrJoin(names, ", ");
}

Status CheckDisabled(absl::Span<const Pass> passes, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto pass = std::find_if(passes.begin(), passes.end(),
                                   [&](const Pass& known) { return known.name == name; });
    if (pass == passes.end()) {
      return InvalidArgument("disabled_passes: there is no pass '", name,
                             "'. The passes are: ", NamesOf(passes, false));
    }
    if (pass->need == Pass::kRequired) {
      return InvalidArgument("disabled_passes: no step runs without the pass '", name,
                             "'. These can be disabled: ", NamesOf(passes, true));
    }
  }
  return OkStatus();
}

bool IsDisabled(const Pass& pass, const CompileOptions& options) {
  const std::vector<std::string>& names = options.disabled_passes;
  return pass.need == Pass::kOptional &&
         (!options.optimize || std::find(names.begin(), names.end(), pass.name) != names.end());
}

Status Run(const Pass& pass, PassContext& context) {
  if (pass.stage != Stage::kPartition) return pass.run(context);
  for (Partition& partition : context.partitions) {
    context.graph = &partition.graph;
    context.shapes.reset();
    RETURN_IF_ERROR(Annotate(pass.run(context), StrCat("partition of ", partition.device)));
  }
  return OkStatus();
}

Status Verify(const Pass& pass, const PassContext& context) {
  const auto verify = [&](const Graph& graph, const std::string& where) -> Status {
    RETURN_IF_ERROR(Annotate(graph.Validate(), StrCat("after pass '", pass.name, "'", where)));
    if (context.options.dump) context.options.dump(pass.name, graph);
    return OkStatus();
  };
  if (context.partitions.empty()) return verify(*context.graph, "");
  for (const Partition& partition : context.partitions) {
    RETURN_IF_ERROR(verify(partition.graph, StrCat(", partition of ", partition.device)));
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::vector<Partition>> RunPasses(absl::Span<const Pass> passes, const Graph& graph,
                                           const std::vector<DeviceInfo>& devices,
                                           const CompileOptions& options, CompileReport* report) {
  CHECK(options.env != nullptr && options.threads != nullptr);
  RETURN_IF_ERROR(CheckDisabled(passes, options.disabled_passes));
  CompileReport own;
  Graph changing(graph.registry());
  PassContext context{.program = graph,
                      .devices = devices,
                      .options = options,
                      .report = report != nullptr ? *report : own,
                      .graph = &changing,
                      .costs = options.costs != nullptr ? *options.costs : CostTable()};
  context.report = {};
  for (const Pass& pass : passes) {
    if (IsDisabled(pass, options)) continue;
    context.shapes.reset();
    const int64_t begin_ns = options.env->NowNanos();
    RETURN_IF_ERROR(Run(pass, context));
    context.report.passes.push_back({pass.name, options.env->NowNanos() - begin_ns});
    RETURN_IF_ERROR(Verify(pass, context));
  }
  return std::move(context.partitions);
}

StatusOr<std::vector<Partition>> Compile(const Graph& graph, const std::vector<DeviceInfo>& devices,
                                         const CompileOptions& options, CompileReport* report) {
  return RunPasses(kPasses, graph, devices, options, report);
}

absl::Span<const Pass> Passes() { return kPasses; }

std::vector<std::string> PassNames() {
  std::vector<std::string> names;
  for (const Pass& pass : kPasses) names.emplace_back(pass.name);
  return names;
}

Status CheckDisabledPasses(const std::vector<std::string>& names) {
  return CheckDisabled(kPasses, names);
}

}  // namespace penstock

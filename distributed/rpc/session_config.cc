// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/session_config.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/base/timeout.h"
#include "core/compiler/compile.h"
#include "proto/tensorflow/config.pb.h"

namespace penstock {
namespace {

using tensorflow::RewriterConfig;

constexpr char kOurOptimizer[] = "penstock";
constexpr char kDisabledPasses[] = "disabled_passes";
constexpr char kPlacement[] = "placement";
constexpr char kMemoryLimit[] = "memory_limit";

// The setting of TensorFlow that switches one pass.
struct Switch {
  const char* pass;
  RewriterConfig::Toggle (RewriterConfig::*toggle)() const;
};
constexpr Switch kSwitches[] = {
    {"fold", &RewriterConfig::constant_folding},
    {"merge", &RewriterConfig::common_subgraph_elimination},
    {"simplify", &RewriterConfig::arithmetic_optimization},
    {"fuse", &RewriterConfig::remapping},
};

std::vector<std::string> DisabledPasses(const RewriterConfig& config) {
  std::vector<std::string> passes;
  for (const Switch& one : kSwitches) {
    if ((config.*one.toggle)() == RewriterConfig::OFF) passes.emplace_back(one.pass);
  }
  for (const auto& optimizer : config.custom_optimizers()) {
    if (optimizer.name() != kOurOptimizer) continue;
    const auto given = optimizer.parameter_map().find(kDisabledPasses);
    if (given == optimizer.parameter_map().end()) continue;
    const auto& names = given->second.list().s();
    passes.insert(passes.end(), names.begin(), names.end());
  }
  return passes;
}

// Returns whether the value is a list that contains nothing but strings.
bool IsListOfStrings(const tensorflow::AttrValue& value) {
  if (value.value_case() != tensorflow::AttrValue::kList) return false;
  tensorflow::AttrValue::ListValue others = value.list();
  others.clear_s();
  return others.ByteSizeLong() == 0;
}

bool IsOn(RewriterConfig::Toggle toggle) {
  return toggle == RewriterConfig::ON || toggle == RewriterConfig::AGGRESSIVE;
}

// Applies opt_level. As in TensorFlow, L0 disables the optional passes that no other field switches
// on. Returns false if that disables all optional passes; else adds the disabled ones to
// `disabled`.
bool ApplyLevel(const tensorflow::GraphOptions& graph, std::vector<std::string>* disabled) {
  const tensorflow::OptimizerOptions& config = graph.optimizer_options();
  if (config.opt_level() != tensorflow::OptimizerOptions::L0) return true;
  std::vector<string_view> on;
  if (config.do_constant_folding()) on.emplace_back("fold");
  if (config.do_common_subexpression_elimination()) on.emplace_back("merge");
  for (const Switch& one : kSwitches) {
    if (IsOn((graph.rewrite_options().*one.toggle)())) on.emplace_back(one.pass);
  }
  if (on.empty()) return false;
  for (const Pass& pass : Passes()) {
    const bool is_on = std::find(on.begin(), on.end(), pass.name) != on.end();
    if (pass.need == Pass::kOptional && !is_on) disabled->emplace_back(pass.name);
  }
  return true;
}

// Returns the last value of "placement", because a client's values are merged behind the server's
// defaults.
std::string PlacementOf(const RewriterConfig& config) {
  std::string placement = SessionOptions().placement;
  for (const auto& optimizer : config.custom_optimizers()) {
    if (optimizer.name() != kOurOptimizer) continue;
    const auto given = optimizer.parameter_map().find(kPlacement);
    if (given != optimizer.parameter_map().end()) placement = given->second.s();
  }
  return placement;
}

// Returns the last value of "memory_limit" in bytes; -1, which no session accepts, if it is not an
// integer.
int64_t MemoryLimitOf(const RewriterConfig& config) {
  int64_t limit = SessionOptions().memory_limit;
  for (const auto& optimizer : config.custom_optimizers()) {
    if (optimizer.name() != kOurOptimizer) continue;
    const auto given = optimizer.parameter_map().find(kMemoryLimit);
    if (given == optimizer.parameter_map().end()) continue;
    limit = given->second.value_case() == tensorflow::AttrValue::kI ? given->second.i() : -1;
  }
  return limit;
}

}  // namespace

void ToProto(const SessionOptions& options, tensorflow::ConfigProto* config) {
  config->set_operation_timeout_in_ms(options.operation_timeout_ms);
  config->set_allow_soft_placement(options.allow_soft_placement);
  config->set_log_device_placement(options.log_device_placement);
  config->set_isolate_session_state(options.isolate_state);
  for (const std::string& filter : options.device_filters) config->add_device_filters(filter);
  tensorflow::GraphOptions& graph = *config->mutable_graph_options();
  graph.set_build_cost_model(options.build_cost_model);
  graph.set_build_cost_model_after(options.build_cost_model_after);
  if (!options.optimize) {
    graph.mutable_optimizer_options()->set_opt_level(tensorflow::OptimizerOptions::L0);
  }
  if (options.bfloat16_transfers) graph.set_enable_bfloat16_sendrecv(true);
  const bool placed = options.placement != SessionOptions().placement;
  const bool limited = options.memory_limit != SessionOptions().memory_limit;
  if (options.disabled_passes.empty() && !placed && !limited) return;
  auto* const ours = graph.mutable_rewrite_options()->add_custom_optimizers();
  ours->set_name(kOurOptimizer);
  if (placed) (*ours->mutable_parameter_map())[kPlacement].set_s(options.placement);
  if (limited) (*ours->mutable_parameter_map())[kMemoryLimit].set_i(options.memory_limit);
  if (options.disabled_passes.empty()) return;
  auto* const names = (*ours->mutable_parameter_map())[kDisabledPasses].mutable_list();
  for (const std::string& pass : options.disabled_passes) names->add_s(pass);
}

Status CheckParameters(const tensorflow::ConfigProto& config) {
  for (const auto& optimizer : config.graph_options().rewrite_options().custom_optimizers()) {
    if (optimizer.name() != kOurOptimizer) continue;
    const auto given = optimizer.parameter_map().find(kDisabledPasses);
    if (given != optimizer.parameter_map().end() && !IsListOfStrings(given->second)) {
      return InvalidArgument("disabled_passes: must be a list of strings, the names of passes");
    }
  }
  return OkStatus();
}

SessionOptions FromProto(const tensorflow::ConfigProto& config) {
  std::vector<std::string> disabled = DisabledPasses(config.graph_options().rewrite_options());
  const bool optimizes = ApplyLevel(config.graph_options(), &disabled);
  return {.operation_timeout_ms = LimitTimeout(config.operation_timeout_in_ms()),
          .allow_soft_placement = config.allow_soft_placement(),
          .log_device_placement = config.log_device_placement(),
          .optimize = optimizes,
          .disabled_passes = std::move(disabled),
          .bfloat16_transfers = config.graph_options().enable_bfloat16_sendrecv(),
          .placement = PlacementOf(config.graph_options().rewrite_options()),
          .memory_limit = MemoryLimitOf(config.graph_options().rewrite_options()),
          .build_cost_model = std::max<int64_t>(config.graph_options().build_cost_model(), 0),
          .build_cost_model_after =
              std::max<int64_t>(config.graph_options().build_cost_model_after(), 0),
          .isolate_state = config.isolate_session_state(),
          .device_filters = {config.device_filters().begin(), config.device_filters().end()}};
}

StatusOr<tensorflow::ConfigProto> ParseSessionConfig(const std::string& text) {
  google::protobuf::TextFormat::Parser parser;
  parser.AllowUnknownField(true);
  tensorflow::ConfigProto config;
  if (parser.ParseFromString(text, &config)) return config;
  return InvalidArgument("default_session_config: '", text, "' is not a ConfigProto in text form");
}

StatusOr<int> NumThreadsOf(const std::string& default_session_config) {
  ASSIGN_OR_RETURN(const tensorflow::ConfigProto config,
                   ParseSessionConfig(default_session_config));
  constexpr int kThreadsMax = 4096;
  const int intra = config.intra_op_parallelism_threads();
  const int inter = config.inter_op_parallelism_threads();
  for (const auto& [name, count] : {std::pair("intra_op_parallelism_threads", intra),
                                    std::pair("inter_op_parallelism_threads", inter)}) {
    if (count <= kThreadsMax) continue;
    return InvalidArgument("default_session_config.", name, ": expected at most ", kThreadsMax,
                           " threads, got ", count);
  }
  return intra == 0 || inter == 0 ? 0 : std::max({intra, inter, 1});
}

}  // namespace penstock

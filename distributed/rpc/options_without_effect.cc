// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/options_without_effect.h"

#include "absl/algorithm/container.h"
#include "absl/types/span.h"
#include "core/base/status.h"
#include "google/protobuf/message.h"
#include "google/protobuf/unknown_field_set.h"
#include "proto/tensorflow/config.pb.h"

namespace penstock {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using Paths = absl::Span<const char* const>;

// The paths of the fields that have an effect. If a message is listed, all of its fields have one.
constexpr const char* kSessionFields[] = {
    "allow_soft_placement",
    "cluster_def",  // refused with an error if it differs from the server's
    "device_filters",
    "graph_options.build_cost_model",
    "graph_options.build_cost_model_after",
    "graph_options.enable_bfloat16_sendrecv",
    "graph_options.optimizer_options.do_common_subexpression_elimination",
    "graph_options.optimizer_options.do_constant_folding",
    // Counts as effective, because Penstock always inlines functions.
    "graph_options.optimizer_options.do_function_inlining",
    "graph_options.optimizer_options.opt_level",
    "graph_options.rewrite_options.arithmetic_optimization",
    "graph_options.rewrite_options.common_subgraph_elimination",
    "graph_options.rewrite_options.constant_folding",
    "graph_options.rewrite_options.custom_optimizers",  // AddCustomOptimizers checks each of them
    "graph_options.rewrite_options.remapping",
    "isolate_session_state",
    "log_device_placement",
    "operation_timeout_in_ms",
};
constexpr const char* kStepFields[] = {"output_partition_graphs", "timeout_in_ms", "trace_level"};
constexpr const char* kCallableFields[] = {
    "feed",
    "fetch",
    "run_options.output_partition_graphs",
    "run_options.timeout_in_ms",
    "run_options.trace_level",
    "target",
    "tensor_connection",  // refused with an error
};
// Parameters of the custom optimizer "penstock".
constexpr const char* kParameters[] = {"disabled_passes", "memory_limit", "placement"};

void AddWithoutEffect(const Message& message, const std::string& prefix, Paths effective,
                      std::vector<std::string>* found) {
  const auto& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> set;
  reflection.ListFields(message, &set);
  for (const FieldDescriptor* const field : set) {
    const std::string path = StrCat(prefix, field->name());
    if (absl::c_linear_search(effective, path)) continue;
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field->is_repeated()) {
      AddWithoutEffect(reflection.GetMessage(message, field), path + ".", effective, found);
    } else {
      found->push_back(path);
    }
  }
  const auto& unknown = reflection.GetUnknownFields(message);
  for (int i = 0; i < unknown.field_count(); ++i) {
    const std::string path = StrCat(prefix, "field ", unknown.field(i).number());
    if (!absl::c_linear_search(*found, path)) found->push_back(path);
  }
}

// Adds custom optimizers for other runtimes, and unknown parameters of the optimizer "penstock".
void AddCustomOptimizers(const tensorflow::RewriterConfig& config,
                         std::vector<std::string>* found) {
  const std::string path = "graph_options.rewrite_options.custom_optimizers";
  for (const auto& optimizer : config.custom_optimizers()) {
    const std::string name = StrCat(path, "['", optimizer.name(), "']");
    if (optimizer.name() != "penstock") {
      found->push_back(name);
      continue;
    }
    std::vector<std::string> unknown;
    for (const auto& [parameter, value] : optimizer.parameter_map()) {
      if (absl::c_linear_search(kParameters, parameter)) continue;
      unknown.push_back(StrCat(name, ".parameter_map['", parameter, "']"));
    }
    absl::c_sort(unknown);  // a map has no order
    found->insert(found->end(), unknown.begin(), unknown.end());
  }
}

}  // namespace

std::vector<std::string> OptionsWithoutEffect(const tensorflow::ConfigProto& config) {
  std::vector<std::string> found;
  AddWithoutEffect(config, "", kSessionFields, &found);
  AddCustomOptimizers(config.graph_options().rewrite_options(), &found);
  return found;
}

std::vector<std::string> OptionsWithoutEffect(const tensorflow::RunOptions& options) {
  std::vector<std::string> found;
  AddWithoutEffect(options, "", kStepFields, &found);
  return found;
}

std::vector<std::string> OptionsWithoutEffect(const tensorflow::CallableOptions& options) {
  std::vector<std::string> found;
  AddWithoutEffect(options, "", kCallableFields, &found);
  return found;
}

}  // namespace penstock

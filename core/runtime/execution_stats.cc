// SPDX-License-Identifier: Apache-2.0
//
// What is written down of a node in steps that are observed.
#include <atomic>
#include <utility>

#include "core/runtime/execution.h"

namespace penstock {
namespace {

// "NAME = Op(IN1, IN2:1)"
std::string Label(const Node& node) {
  std::string label = StrCat(node.name(), " = ", node.op_name(), "(");
  for (int i = 0; i < node.num_inputs(); ++i) {
    const Endpoint input = node.input(i);
    StrAppend(&label, i > 0 ? ", " : "", input.node->name());
    if (input.index > 0) StrAppend(&label, ":", input.index);
  }
  return label + ")";
}

uint32_t ThreadNumber() {
  static std::atomic<uint32_t> last{0};
  static thread_local const uint32_t number = ++last;
  return number;
}

}  // namespace

void Execution::Observe(Iteration& it, const Item& item, int64_t start_ns, const Tensor* outputs) {
  const int64_t end_ns = options_.env->NowNanos();
  const Node& node = *item.node;
  if (item.kernel != nullptr && (item.special & Program::kAsync) == 0) {
    program_.RecordCost(IndexOf(root_, item), end_ns - start_ns);
  }
  if (args_.stats == nullptr) return;
  NodeStats stats{.node = node.name(),
                  .label = Label(node),
                  .scheduled_ns = it.ready_ns[IndexOf(it, item)] + wall_offset_ns_,
                  .start_ns = start_ns + wall_offset_ns_,
                  .end_ns = end_ns + wall_offset_ns_,
                  .thread = ThreadNumber()};
  for (uint32_t i = 0; i < item.num_outputs; ++i) {
    if (!outputs[i].valid()) continue;
    stats.outputs.push_back({.index = static_cast<int>(i),
                             .dtype = outputs[i].dtype(),
                             .shape = outputs[i].shape(),
                             .bytes = static_cast<int64_t>(outputs[i].bytes())});
  }
  args_.stats->Add(device_.name(), std::move(stats));
}

}  // namespace penstock

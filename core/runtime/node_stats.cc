// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/node_stats.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <typeinfo>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "core/op/block_kernel.h"
#include "core/op/task_name.h"
#include "core/op/variable.h"

namespace penstock {
namespace {

std::vector<NodeStats::Input> InputsOf(const Node& node) {
  std::vector<NodeStats::Input> inputs;
  for (const Endpoint& input : node.inputs()) inputs.push_back({input.node->name(), input.index});
  for (const Node* const control : node.control_inputs()) {
    inputs.push_back({control->name(), NodeStats::Input::kControl});
  }
  return inputs;
}

// Returns the name of the node's op; for a _Fused node also the names of the first nodes that it
// runs, and how many others it runs.
std::string OpOf(const Node& node) {
  if (node.op_name() != kFusedOp) return node.op_name();
  const auto* const names = node.attr<std::vector<std::string>>(kFusedNodes);
  if (names == nullptr) return kFusedOp;
  constexpr size_t kNamesMax = 4;
  const auto shown = absl::MakeConstSpan(*names).first(std::min(kNamesMax, names->size()));
  std::string op = StrCat(kFusedOp, "[", absl::StrJoin(shown, " "));
  if (names->size() > shown.size()) StrAppend(&op, " and ", names->size() - shown.size(), " more");
  return op + "]";
}

// Returns the transfer that a _Send or a _Recv takes part in; nullopt for other nodes.
std::optional<NodeStats::Transfer> EdgeOf(const Node& node) {
  if (node.op().end != EndOp::kSend && node.op().end != EndOp::kRecv) return std::nullopt;
  return NodeStats::Transfer{.edge = *node.attr<std::string>("tensor_name"),
                             .from = "",
                             .to = *node.attr<std::string>("recv_device")};
}

NodeStats::Out Describe(int index, const Tensor& value) {
  const Buffer* const buffer = value.buffer();
  const Allocator* const allocator = buffer == nullptr ? nullptr : buffer->allocator();
  return {.index = index,
          .dtype = value.dtype(),
          .shape = value.shape(),
          .bytes = static_cast<int64_t>(value.bytes()),
          .allocator = allocator == nullptr ? "" : allocator->name(),
          .address = buffer == nullptr ? 0 : reinterpret_cast<uint64_t>(buffer->data())};
}

// `reference` is the value of the last output in `stats`. If it refers to a variable with a value,
// replaces the description of the reference by that of the variable's value.
void DescribeVariable(const Tensor& reference, NodeStats* stats) {
  if (reference.dtype() != DType::kResource) return;
  const Resource* const resource = reference.scalar<ResourceHandle>().resource.get();
  if (resource == nullptr || typeid(*resource) != typeid(Variable)) return;
  NodeStats::Out& out = stats->outputs.back();
  (void)static_cast<const Variable*>(resource)->Inspect([&](const Tensor& value) {
    out = Describe(out.index, value);
    return OkStatus();
  });
}

// Returns the additional row of a tensor from another task (kTransferStats), as TensorFlow's
// workers write it for TensorFlow's timeline. Nullopt if `recv` is not a _Recv, or receives from
// its own task.
std::optional<NodeStats> TransferOf(const Node& recv, const NodeStats& stats) {
  if (recv.op().end != EndOp::kRecv) return std::nullopt;
  const std::string& from = *recv.attr<std::string>("send_device");
  const StatusOr<TaskName> producer = TaskName::OfDevice(from);
  const StatusOr<TaskName> consumer = TaskName::OfDevice(stats.transfer->to);
  if (!producer.ok() || !consumer.ok() || *producer == *consumer) return std::nullopt;
  NodeStats transfer = stats;
  transfer.memory.clear();  // the memory is counted in the _Recv's row
  transfer.node = kTransferStats;
  transfer.op.clear();
  transfer.inputs.clear();
  transfer.transfer->from = from;
  return transfer;
}

uint32_t ThreadNumber() {
  static std::atomic<uint32_t> last{0};
  static thread_local const uint32_t number = ++last;
  return number;
}

}  // namespace

std::vector<NodeStats::Memory> NewOutputs(const Iteration& it, const Executable::Item& item,
                                          const Tensor* outputs) {
  const Tensor* const inputs = &it.inputs[item.first_input];
  std::vector<NodeStats::Memory> memory;
  for (uint32_t i = 0; i < item.num_outputs; ++i) {
    const Buffer* const buffer = outputs[i].buffer();
    if (buffer == nullptr || buffer->allocator() == nullptr) continue;
    if (std::any_of(inputs, inputs + item.num_inputs,
                    [&](const Tensor& input) { return input.buffer() == buffer; })) {
      continue;
    }
    const auto bytes = static_cast<int64_t>(buffer->bytes());
    const std::string& name = buffer->allocator()->name();
    auto used = std::find_if(memory.begin(), memory.end(),
                             [&](const NodeStats::Memory& m) { return m.allocator == name; });
    if (used == memory.end()) used = memory.insert(used, {.allocator = name});
    used->total_bytes += bytes;
    used->peak_bytes += bytes;
    used->live_bytes += bytes;
  }
  return memory;
}

int64_t RecordNode(const RunningStep& step, const Iteration& it, const Executable::Item& item,
                   int64_t start_ns, const Tensor* outputs, std::vector<NodeStats::Memory> memory) {
  const int64_t end_ns = step.NowNanos();
  const Node& node = *item.node;
  if (item.kernel != nullptr && (item.special & Executable::kAsync) == 0) {
    it.executable.RecordCost(it.executable.IndexOf(item), end_ns - start_ns);
  }
  if (!step.traced()) return end_ns - start_ns;
  // Constants and variables return memory that was allocated before the step. Nodes that
  // the compiler added are excluded: they pass on the tensors of other nodes.
  const bool is_persistent = item.num_inputs == 0 && memory.empty() && !node.op().internal();
  const int64_t offset_ns = step.wall_offset_ns();
  NodeStats stats{.node = node.name(),
                  .op = OpOf(node),
                  .inputs = InputsOf(node),
                  .transfer = EdgeOf(node),
                  .scheduled_ns = it.ready_ns[it.IndexOf(item)] + offset_ns,
                  .start_ns = start_ns + offset_ns,
                  .end_ns = end_ns + offset_ns,
                  .thread = ThreadNumber(),
                  .memory = std::move(memory)};
  for (uint32_t i = 0; i < item.num_outputs; ++i) {
    if (!outputs[i].valid()) continue;
    stats.outputs.push_back(Describe(static_cast<int>(i), outputs[i]));
    if (node.output_type(static_cast<int>(i)).ref) DescribeVariable(outputs[i], &stats);
    if (is_persistent) stats.persistent_bytes += stats.outputs.back().bytes;
  }
  if (std::optional<NodeStats> transfer = TransferOf(node, stats)) {
    step.stats()->Add(step.device().name(), *std::move(transfer));
  }
  step.stats()->Add(step.device().name(), std::move(stats));
  return end_ns - start_ns;
}

}  // namespace penstock

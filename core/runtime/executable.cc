// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/executable.h"

#include <algorithm>
#include <utility>

#include "core/base/error_origin.h"
#include "core/op/private_attrs.h"
#include "core/runtime/placement.h"

namespace penstock {
namespace {

// A node that takes longer is expensive: it pays to hand it to another thread. A hand-over takes
// about a microsecond if a thread of the pool is awake, and several if the system must wake one.
constexpr int32_t kExpensiveNanos = 4'000;
// A quick partition has at most this many items, which together take at most kQuickNanosMax: about
// the cost of handing a step to another thread.
constexpr uint32_t kQuickItemsMax = 64;
constexpr int64_t kQuickNanosMax = 20'000;
// The cap of a sample. A thread may lose its core for milliseconds in the middle of a node. One or
// two such samples must not make a cheap node count as expensive, because the step would then use
// several threads, which slows down all its nodes.
constexpr int64_t kSampleNanosMax = 2 * kExpensiveNanos;

}  // namespace

StatusOr<std::unique_ptr<Executable>> Executable::Make(Graph graph, Device& device,
                                                       KernelCache* cache) {
  KernelCache own_cache;
  std::unique_ptr<Executable> executable(new Executable(std::move(graph)));
  executable->cache_ = cache != nullptr ? cache : &own_cache;
  ASSIGN_OR_RETURN(std::vector<Node*> order, executable->graph_.TopologicalOrder());
  ASSIGN_OR_RETURN(const LoopFrames frames, FindLoopFrames(executable->graph_));
  const auto frame_of = [&frames](const Node* node) { return frames.of_node[node->id()]; };
  if (frames.any()) {
    std::stable_sort(order.begin(), order.end(),
                     [&](const Node* a, const Node* b) { return frame_of(a) < frame_of(b); });
  }
  executable->MakeLoops(frames);
  if (!device.allocator().host_accessible()) {
    executable->swapped_ = SwappedStacks::Find(executable->graph_);
  }
  size_t num_outputs = 0;
  for (const Node* node : order) num_outputs += node->num_outputs();
  executable->output_dtypes_.reserve(num_outputs);  // items point to its elements
  executable->items_.reserve(order.size());
  for (Node* node : order) {
    Loop& loop = executable->loops_[frame_of(node)];
    RETURN_IF_ERROR(AtNode(executable->MakeItem(node, loop, device), node->name()));
  }
  executable->AddFlow(frames);
  RETURN_IF_ERROR(executable->AddCounts(frames));
  executable->AddEdges(frames);
  return executable;
}

void Executable::MakeLoops(const LoopFrames& frames) {
  loops_.resize(frames.frames.size());
  for (uint32_t i = 1; i < loops_.size(); ++i) {
    const LoopFrame& frame = frames.frames[i];
    Loop& parent = loops_[frame.parent];
    loops_[i].name = frame.name;
    loops_[i].parent = static_cast<uint32_t>(frame.parent);
    loops_[i].child = parent.num_children++;
    loops_[i].parallel_iterations = frame.parallel_iterations;
  }
}

Status Executable::MakeItem(Node* node, Loop& loop, Device& device) {
  if (loop.num_items == 0) loop.first_item = num_items();
  Item& item = items_.emplace_back();
  Detail detail;
  item.node = node;
  item.num_inputs = node->num_inputs();
  item.num_outputs = node->num_outputs();
  item.first_input = loop.num_slots;
  loop.num_slots += item.num_inputs;
  outputs_max_ = std::max(outputs_max_, item.num_outputs);
  item.output_dtypes = output_dtypes_.data() + output_dtypes_.size();
  for (const EdgeType& type : node->output_types()) {
    output_dtypes_.push_back(type.ref ? DType::kResource : type.dtype);
  }
  for (int i = 0; i < node->num_inputs(); ++i) {
    const Endpoint source = node->input(i);
    if (source.node == nullptr) return InvalidArgument("input ", i, " is not connected");
    if (source.node->output_type(source.index).ref && !node->input_type(i).ref) {
      detail.variable_inputs.push_back(i);
    }
  }
  if (!detail.variable_inputs.empty()) item.special |= kReadsVariables;
  RETURN_IF_ERROR(AddKernel(*node, device, &item, &detail));
  if (item.special != 0) {
    item.detail = static_cast<uint32_t>(details_.size());
    if ((item.special & kAsync) != 0 || !detail.inputs_to_host.empty()) {
      detail.wait = static_cast<int>(loop.waits.size());
      loop.waits.push_back(loop.num_items);
    }
    details_.push_back(std::move(detail));
  }
  ++loop.num_items;
  return OkStatus();
}

Status Executable::AddKernel(const Node& node, Device& device, Item* item, Detail* detail) {
  const OpDef& op = node.op();
  if (op.runs_dead) item->special |= kRunsDead;
  if (op.only_orders) {
    item->special |= kNoOp;
    if (node.attr<bool>(kCommitAttr) != nullptr) item->special |= kCommits;
    return OkStatus();
  }
  item->flow = op.flow;
  if (item->flow != FlowOp::kNone) {
    item->special |= kFlow;
  } else {
    const KernelInit init{node.name(),        op, node.attrs(), device.name(), node.input_types(),
                          node.output_types()};
    ASSIGN_OR_RETURN(std::shared_ptr<Kernel> kernel,
                     cache_->Get(graph_.registry(), device.type(), init));
    item->kernel = kernel.get();
    detail->async = kernel->AsAsync();
    kernels_.push_back(std::move(kernel));
  }
  if (detail->async != nullptr) item->special |= kAsync;
  if (op.end == EndOp::kRecv) item->special |= kMayBeDead;
  if (op.end == EndOp::kFetch) item->special |= kFetch;
  return device.allocator().host_accessible() ? OkStatus()
                                              : PlaceArguments(node, device, item, detail);
}

// Determines which arguments are in host memory and which in device memory, if the host cannot read
// the device's memory.
Status Executable::PlaceArguments(const Node& node, Device& device, Item* item, Detail* detail) {
  ASSIGN_OR_RETURN(Placement placement,
                   PlaceValues(node, swapped_, graph_.registry(), device.type()));
  detail->inputs_to_host = std::move(placement.inputs_to_host);
  detail->inputs_to_device = std::move(placement.inputs_to_device);
  if (!detail->inputs_to_host.empty() || !detail->inputs_to_device.empty()) {
    item->special |= kCopiesInputs;
  }
  const std::vector<bool>& on_host = placement.outputs_on_host;
  if (std::find(on_host.begin(), on_host.end(), true) == on_host.end()) return OkStatus();
  item->special |= kHostOutputs;
  detail->output_on_host = std::make_unique<bool[]>(on_host.size());
  std::copy(on_host.begin(), on_host.end(), detail->output_on_host.get());
  return OkStatus();
}

void Executable::AddFlow(const LoopFrames& frames) {
  for (Loop& loop : loops_) {
    for (uint32_t i = 0; i < loop.num_items; ++i) {
      const Item& item = items_[loop.first_item + i];
      if (item.flow == FlowOp::kExit) {
        details_[item.detail].exit = static_cast<int>(loop.exits.size());
        loop.exits.push_back(i);
      } else if (item.flow == FlowOp::kEnter) {
        Detail& detail = details_[item.detail];
        detail.loop = static_cast<uint32_t>(frames.of_outputs[item.node->id()]);
        Loop& entered = loops_[detail.loop];
        ++entered.num_enters;
        const bool* const constant = item.node->attr<bool>("is_constant");
        if (constant != nullptr && *constant) {
          detail.constant = static_cast<int>(entered.num_constants++);
        }
      }
    }
  }
}

// Computes the initial pending count of a node, and the one for later iterations if it differs.
// Sets the flag kMerges for a Merge, unless the Merge has only one input in each iteration: such a
// Merge is counted like other nodes, because that costs less.
Status Executable::CountInputs(const Item& item, Loop* loop, uint32_t* count) {
  const uint32_t controls = static_cast<uint32_t>(item.node->control_inputs().size());
  *count = item.num_inputs + controls;
  if (item.flow != FlowOp::kMerge) return OkStatus();
  uint32_t back = 0;
  for (const Endpoint& in : item.node->inputs()) back += IsLoopBackEdge(*in.node, *item.node);
  uint32_t first = item.num_inputs - back, later = back;
  if (first != 1 || back > 1 || controls > 0) {
    if (item.num_inputs > kInputs || controls >= kControls / kControl) {
      return InvalidArgument("a Merge may have ", kInputs, " inputs");
    }
    Item& merge = items_[&item - items_.data()];
    merge.special |= kMerges;
    first += controls * kControl;
    later += controls * kControl;
  }
  *count = first;
  if (back > 0) {
    const auto index = static_cast<uint32_t>(&item - &items_[loop->first_item]);
    loop->later_pending.emplace_back(index, later);
  }
  return OkStatus();
}

Status Executable::AddCounts(const LoopFrames& frames) {
  pending_ = std::make_unique<std::atomic<uint32_t>[]>(num_items());
  cost_ns_ = std::make_unique<std::atomic<int32_t>[]>(num_items());
  for (uint32_t i = 0; i < num_items(); ++i) {
    const Node& node = *items_[i].node;
    const int64_t cost = items_[i].kernel == nullptr ? 0 : items_[i].kernel->CostNanos();
    uint32_t count = 0;
    Loop& loop = loops_[frames.of_node[node.id()]];
    RETURN_IF_ERROR(AtNode(CountInputs(items_[i], &loop, &count), node.name()));
    cost_ns_[i] = static_cast<int32_t>(std::clamp<int64_t>(cost, 0, kSampleNanosMax));
    pending_[i] = count | (cost > kExpensiveNanos ? kExpensive : 0);
    if (node.num_inputs() == 0 && node.control_inputs().empty()) {
      roots_.push_back(IndexInLoop(items_[i], frames));
    }
  }
  return OkStatus();
}

uint32_t Executable::IndexInLoop(const Item& item, const LoopFrames& frames) const {
  const Loop& loop = loops_[frames.of_node[item.node->id()]];
  return static_cast<uint32_t>(&item - &items_[loop.first_item]);
}

// REQUIRES: AddCounts has set kMerges.
void Executable::AddEdges(const LoopFrames& frames) {
  std::vector<const Item*> item_of(graph_.max_id());
  for (const Item& item : items_) item_of[item.node->id()] = &item;
  for (Item& item : items_) AddEdgesOf(item, item_of, frames);
}

void Executable::AddEdgesOf(Item& item, const std::vector<const Item*>& item_of,
                            const LoopFrames& frames) {
  item.first_edge = static_cast<uint32_t>(edges_.size());
  for (const OutEdge& edge : item.node->out_edges()) {
    const Item& dst = *item_of[edge.dst->id()];
    const bool merges = (dst.special & kMerges) != 0;
    if (merges) item.special |= kFeedsMerge;
    edges_.push_back({.dst = IndexInLoop(dst, frames),
                      .slot = dst.first_input + edge.dst_index,
                      .output = static_cast<uint32_t>(edge.src_index),
                      .merges = merges,
                      .last = 0});
  }
  item.num_edges = static_cast<uint32_t>(edges_.size()) - item.first_edge;
  std::sort(edges_.end() - item.num_edges, edges_.end(), [](const Edge& a, const Edge& b) {
    return std::pair(+a.output, a.slot) < std::pair(+b.output, b.slot);
  });
  uint32_t used = 0;
  for (uint32_t e = item.first_edge; e < edges_.size(); ++e) {
    edges_[e].last = e + 1 == edges_.size() || edges_[e + 1].output != edges_[e].output;
    used += edges_[e].last;
  }
  item.drops_output = used < item.num_outputs;
  item.first_control = static_cast<uint32_t>(controls_.size());
  for (const Node* node : item.node->control_outputs()) {
    const Item& dst = *item_of[node->id()];
    controls_.push_back(IndexInLoop(dst, frames));
    if ((dst.special & kMerges) != 0) item.special |= kFeedsMerge;
  }
  item.num_controls = static_cast<uint32_t>(controls_.size()) - item.first_control;
}

bool Executable::quick() const {
  if (num_items() > kQuickItemsMax) return false;
  int64_t sum = 0;
  for (uint32_t i = 0; i < num_items(); ++i) {
    if (items_[i].kernel == nullptr) continue;
    const int32_t cost = cost_ns_[i].load(std::memory_order_relaxed);
    if (cost == 0 || (items_[i].special & kAsync) != 0) return false;
    sum += cost;
  }
  return sum <= kQuickNanosMax;
}

void Executable::RecordCost(uint32_t i, int64_t nanos) const {
  const int32_t sample = static_cast<int32_t>(std::clamp<int64_t>(nanos, 1, kSampleNanosMax));
  const int32_t old = cost_ns_[i].load(std::memory_order_relaxed);
  // The estimate falls quickly and rises slowly, because noise only makes samples longer. The first
  // run of a kernel is slow because the caches are cold, so the second sample replaces the first.
  const int32_t cost = old == 0       ? std::min(sample, kExpensiveNanos)
                       : sample < old ? (old + sample) / 2
                                      : old + (sample - old + 3) / 4;
  cost_ns_[i].store(cost, std::memory_order_relaxed);
  const uint32_t pending = pending_[i].load(std::memory_order_relaxed);
  const uint32_t now = (pending & kCount) | (cost > kExpensiveNanos ? kExpensive : 0);
  if (now != pending) pending_[i].store(now, std::memory_order_relaxed);
}

}  // namespace penstock

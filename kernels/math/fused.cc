// SPDX-License-Identifier: Apache-2.0
//
// _Fused: several elementwise nodes as one node. The pass "fuse" adds it
// (core/compiler/passes/fuse_elementwise.cc).
//
// The kernel works through blocks that fit into the first-level cache: for each block it runs the
// kernels of all nodes (BlockKernel), so the tensors between the nodes are never written to memory.
// If the inputs have other shapes than the compiler expected, the kernel runs the nodes one after
// the other on whole tensors. Both ways compute the same bits as the nodes alone.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "core/base/error_origin.h"
#include "core/op/block_kernel.h"
#include "core/op/flops.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "core/tensor/type_lists.h"
#include "kernels/engine/broadcast.h"
#include "kernels/engine/elementwise.h"
#include "kernels/math/block_operand.h"

namespace penstock {
namespace {

// The scratch memory of one thread, which leaves room for the inputs in a cache of 32 KiB.
constexpr int64_t kScratchBytes = 16 << 10;
// Scratch memory of up to this size is on the stack. Many slots of kBlockMin elements can take more
// than kScratchBytes.
constexpr int64_t kStackBytes = 32 << 10;
constexpr int64_t kBlockMin = 256, kBlockMax = 4096;  // elements

// One of the nodes.
struct Part {
  std::string name;
  std::unique_ptr<Kernel> kernel;
  const BlockKernel* blocks = nullptr;  // the interface of `kernel`
  std::vector<int> operands;      // >= 0: an input of the _Fused node; -1 - i: part i's result
  std::vector<bool> is_last_use;  // of each operand
  std::vector<EdgeType> input_types, output_types;
  int slot = -1;  // where the result of a block is in the scratch memory; -1: in the output
};

class FusedKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override;
  Status Compute(KernelContext& ctx) override;

 private:
  using Shapes = absl::InlinedVector<const Shape*, 4>;
  struct Plan {
    Shape shape;
    absl::InlinedVector<BlockOperand, 8> inputs;
    int64_t block = 0;  // elements
    double nanos = 0;   // for one element
  };

  Status AddPart(const KernelInit& node, const FunctionName& function, std::string name,
                 absl::Span<const int64_t> operands);
  void FindLastUses();
  void AssignSlots();
  // Sets `plan`; returns false if the inputs need another way of broadcasting than blocks allow, or
  // if a part does not accept their shapes.
  bool MakePlan(const KernelContext& ctx, Plan* plan) const;
  void ChooseBlock(Plan* plan) const;
  Status Allocate(KernelContext& ctx, const Plan& plan, Tensor** output) const;
  void RunBlocks(const Plan& plan, char* output, int64_t begin, int64_t end) const;
  Status RunOneByOne(KernelContext& ctx) const;

  std::vector<Part> parts_;
  std::vector<EdgeType> input_types_;
  int num_slots_ = 0;
  int64_t size_max_ = 1;  // bytes of the largest element
};

Status FusedKernel::Init(const KernelInit& node) {
  std::vector<FunctionName> functions;
  std::vector<std::string> names;
  std::vector<int64_t> operands;
  RETURN_IF_ERROR(node.Attr("nodes", &functions));
  RETURN_IF_ERROR(node.Attr(kFusedNodes, &names));
  RETURN_IF_ERROR(node.Attr("operands", &operands));
  input_types_ = node.input_types;
  if (names.empty() || names.size() != functions.size()) {
    return InvalidArgument("node '", node.name, "': attributes nodes and ", kFusedNodes, " have ",
                           functions.size(), " and ", names.size(), " elements");
  }
  absl::Span<const int64_t> left = operands;
  for (size_t i = 0; i < functions.size(); ++i) {
    if (left.empty() || left[0] < 1 || left[0] >= std::ssize(left)) {
      return InvalidArgument("node '", node.name, "': attribute operands ends before ", names[i]);
    }
    const auto count = static_cast<size_t>(left[0]);
    RETURN_IF_ERROR(AddPart(node, functions[i], names[i], left.subspan(1, count)));
    left.remove_prefix(1 + count);
  }
  if (!left.empty()) {
    return InvalidArgument("node '", node.name, "': attribute operands has ", left.size(),
                           " elements after those of the last node");
  }
  if (parts_.back().output_types[0] != node.output_types[0]) {
    return InvalidArgument("node '", node.name, "': attribute T is not the type of the last node");
  }
  FindLastUses();
  AssignSlots();
  return OkStatus();
}

Status FusedKernel::AddPart(const KernelInit& node, const FunctionName& function, std::string name,
                            absl::Span<const int64_t> operands) {
  const Registry& registry = Registry::Global();
  ASSIGN_OR_RETURN(const OpDef* const op, registry.GetOp(function.name));
  Part part{.name = std::move(name)};
  Attrs attrs = function.attrs == nullptr ? Attrs() : *function.attrs;
  RETURN_IF_ERROR(CompleteAttrs(*op, &attrs));
  for (const ArgDef& arg : op->inputs) {
    RETURN_IF_ERROR(AppendArgTypes(arg, attrs, &part.input_types));
  }
  for (const ArgDef& arg : op->outputs) {
    RETURN_IF_ERROR(AppendArgTypes(arg, attrs, &part.output_types));
  }
  std::vector<EdgeType> types;
  for (const int64_t operand : operands) {
    const bool is_input = operand >= 0;
    const int64_t index = is_input ? operand : -1 - operand;
    if (index >= (is_input ? std::ssize(input_types_) : std::ssize(parts_))) {
      return InvalidArgument("node '", node.name, "': ", part.name, " has the operand ", operand);
    }
    types.push_back(is_input ? input_types_[index] : parts_[index].output_types[0]);
    part.operands.push_back(static_cast<int>(operand));
  }
  if (types != part.input_types || part.output_types.size() != 1) {
    return InvalidArgument("node '", node.name, "': the operands of ", part.name,
                           " do not have the types that ", op->name, " declares");
  }
  ASSIGN_OR_RETURN(part.kernel, registry.MakeKernel("CPU", {.name = part.name,
                                                            .op = *op,
                                                            .attrs = attrs,
                                                            .device = node.device,
                                                            .input_types = part.input_types,
                                                            .output_types = part.output_types}));
  part.blocks = dynamic_cast<const BlockKernel*>(part.kernel.get());
  if (part.blocks == nullptr || !part.blocks->RunsInBlocks()) {
    return InvalidArgument("node '", node.name, "': ", op->name, " does not run in blocks");
  }
  parts_.push_back(std::move(part));
  return OkStatus();
}

void FusedKernel::FindLastUses() {
  absl::flat_hash_set<int> used_later;
  for (size_t i = parts_.size(); i-- > 0;) {
    Part& part = parts_[i];
    part.is_last_use.resize(part.operands.size());
    for (size_t k = part.operands.size(); k-- > 0;) {
      part.is_last_use[k] = used_later.insert(part.operands[k]).second;
    }
  }
}

// Gives each part but the last one a slot for its result. A slot is used again after the last part
// that reads it.
void FusedKernel::AssignSlots() {
  for (const Part& part : parts_) {
    size_max_ = std::max<int64_t>(size_max_, SizeOf(part.output_types[0].dtype));
  }
  for (const EdgeType& type : input_types_) {
    size_max_ = std::max<int64_t>(size_max_, SizeOf(type.dtype));
  }
  std::vector<int> free;
  for (size_t i = 0; i + 1 < parts_.size(); ++i) {
    if (free.empty()) free.push_back(num_slots_++);
    parts_[i].slot = free.back();
    free.pop_back();
    for (size_t k = 0; k < parts_[i].operands.size(); ++k) {
      const int operand = parts_[i].operands[k];
      if (operand < 0 && parts_[i].is_last_use[k]) free.push_back(parts_[-1 - operand].slot);
    }
  }
}

Status FusedKernel::Compute(KernelContext& ctx) {
  Plan plan;
  if (!MakePlan(ctx, &plan)) return RunOneByOne(ctx);
  Tensor* output;
  RETURN_IF_ERROR(AtNode(Allocate(ctx, plan, &output), parts_.back().name));
  const int64_t n = plan.shape.num_elements();
  if (n == 0) return OkStatus();
  char* const to = static_cast<char*>(output->mutable_raw_data());
  const int64_t blocks = (n + plan.block - 1) / plan.block;
  ctx.threads().ParallelFor(
      blocks, plan.nanos * static_cast<double>(plan.block), [&](int64_t begin, int64_t end) {
        RunBlocks(plan, to, begin * plan.block, std::min(n, end * plan.block));
      });
  return OkStatus();
}

bool FusedKernel::MakePlan(const KernelContext& ctx, Plan* plan) const {
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    const Shape& shape = ctx.input(i).shape();
    if (i == 0 || shape.num_elements() > plan->shape.num_elements() ||
        (shape.num_elements() == plan->shape.num_elements() && shape.rank() > plan->shape.rank())) {
      plan->shape = shape;
    }
  }
  // Every part must have a result of the shape of the largest input.
  for (const Part& part : parts_) {
    Shapes shapes;
    bool any_full = false;
    for (const int operand : part.operands) {
      shapes.push_back(operand < 0 ? &plan->shape : &ctx.input(operand).shape());
      any_full = any_full || *shapes.back() == plan->shape;
    }
    if (!any_full || !part.blocks->AcceptsShapes(plan->shape, shapes)) return false;
    plan->nanos += part.blocks->BlockNanos();
  }
  plan->nanos += TrafficNanos(SizeOf(parts_.back().output_types[0].dtype));
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    const auto operand = BlockOperand::Make(ctx.input(i), plan->shape);
    if (!operand.has_value()) return false;
    plan->inputs.push_back(*operand);
    if (operand->is_full()) plan->nanos += TrafficNanos(SizeOf(input_types_[i].dtype));
  }
  ChooseBlock(plan);
  return true;
}

// The blocks begin at the beginnings of rows of broadcast operands, if that is possible, because
// such blocks need no copies, or the same copies again.
void FusedKernel::ChooseBlock(Plan* plan) const {
  int64_t slots = num_slots_ + 1, row = 0;
  for (const BlockOperand& input : plan->inputs) {
    if (input.row() > 0) ++slots;
    row = std::max(row, input.row());
  }
  const int64_t fits = std::clamp(kScratchBytes / (slots * size_max_), kBlockMin, kBlockMax);
  if (row == 0) {
    plan->block = fits;
  } else if (row <= fits) {
    plan->block = fits / row * row;
  } else {  // cuts each row into equal blocks
    const int64_t pieces = (row + fits - 1) / fits;
    plan->block = row % pieces == 0 ? row / pieces : fits;
  }
  plan->block = std::min(plan->block, std::max<int64_t>(1, plan->shape.num_elements()));
}

Status FusedKernel::Allocate(KernelContext& ctx, const Plan& plan, Tensor** output) const {
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    const Tensor& input = ctx.input(i);
    if (input_types_[i].dtype == ctx.output_type(0).dtype && plan.inputs[i].is_full() &&
        input.unique()) {
      return ctx.ForwardOrAllocate(i, 0, plan.shape, output);
    }
  }
  return ctx.Allocate(0, plan.shape, output);
}

void FusedKernel::RunBlocks(const Plan& plan, char* output, int64_t begin, int64_t end) const {
  struct alignas(64) Line {
    char bytes[64];
  };
  const size_t size = SizeOf(parts_.back().output_types[0].dtype);
  const int64_t lines = (plan.block * size_max_ + 63) / 64;  // of a slot
  int64_t slots = num_slots_;
  for (const BlockOperand& input : plan.inputs) slots += input.row() > 0;
  Line on_stack[kStackBytes / sizeof(Line)];
  std::unique_ptr<Line[]> on_heap;
  if (slots * lines > std::ssize(on_stack)) {
    on_heap = std::make_unique_for_overwrite<Line[]>(slots * lines);
  }
  Line* const memory = on_heap != nullptr ? on_heap.get() : on_stack;
  const auto slot = [&](int64_t i) { return memory[i * lines].bytes; };
  absl::InlinedVector<BlockOperand::Scratch, 8> scratch(plan.inputs.size());
  for (size_t i = scratch.size(); i-- > 0;) {
    if (plan.inputs[i].row() > 0) scratch[i].data = slot(--slots);
  }
  absl::InlinedVector<BlockInput, 8> inputs(plan.inputs.size());
  absl::InlinedVector<BlockInput, 4> operands;
  for (int64_t first = begin; first < end; first += plan.block) {
    const int64_t n = std::min(plan.block, end - first);
    for (size_t i = 0; i < inputs.size(); ++i) {
      inputs[i] = plan.inputs[i].At(first, n, &scratch[i]);
    }
    for (const Part& part : parts_) {
      operands.clear();
      for (const int operand : part.operands) {
        operands.push_back(operand >= 0 ? inputs[operand]
                                        : BlockInput{slot(parts_[-1 - operand].slot)});
      }
      void* const to = part.slot >= 0 ? slot(part.slot) : output + first * size;
      part.blocks->RunBlock(operands.data(), to, n);
    }
  }
}

// Moves inputs and results at their last use, so that they are freed or written to as early as
// those of single nodes.
Status FusedKernel::RunOneByOne(KernelContext& ctx) const {
  std::vector<Tensor> values(parts_.size());
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    std::vector<Tensor> inputs;
    for (size_t k = 0; k < part.operands.size(); ++k) {
      const int operand = part.operands[k];
      if (part.is_last_use[k]) {
        inputs.push_back(operand >= 0 ? ctx.TakeInput(operand) : std::move(values[-1 - operand]));
      } else {
        inputs.push_back(operand >= 0 ? ctx.input(operand) : values[-1 - operand]);
      }
    }
    KernelContext context({.step = &ctx.step(),
                           .node_name = &part.name,
                           .device_name = &ctx.device_name(),
                           .allocator = &ctx.allocator(),
                           .host_allocator = &ctx.allocator(),
                           .inputs = inputs.data(),
                           .outputs = &values[i],
                           .output_types = part.output_types.data(),
                           .num_inputs = static_cast<int>(inputs.size()),
                           .num_outputs = 1,
                           .frame = ctx.frame(),
                           .iteration = ctx.iteration()});
    RETURN_IF_ERROR(AtNode(part.kernel->Compute(context), part.name));
  }
  ctx.SetOutput(0, std::move(values.back()));
  return OkStatus();
}

// Each node broadcasts its operands. If the inputs do not broadcast, the kernel's error names the
// node.
Status FusedShape(ShapeScope& s) {
  PartialShape shape = s.input(0);
  for (int i = 1; i < s.num_inputs(); ++i) {
    const StatusOr<PartialShape> both = Broadcast(shape, s.input(i));
    if (!both.ok()) return UnknownShape(s);
    shape = *both;
  }
  s.set_output(0, std::move(shape));
  return OkStatus();
}

double FusedFlops(const FlopsScope& scope) {
  const auto nodes = scope.attrs.find("nodes");
  const auto* const functions =
      nodes == scope.attrs.end() ? nullptr : nodes->second.get<std::vector<FunctionName>>();
  return functions == nullptr ? 0
                              : static_cast<double>(functions->size()) * Elements(scope.outputs[0]);
}

}  // namespace

OP(_Fused) {
  return {
      .doc = "Runs several elementwise nodes, which only the last one's output leaves.",
      .inputs = {{"inputs", List("Tin")}},
      .outputs = {{"output", "T"}},
      .types = {{"T", TypesOf<PLAIN_TYPES>()}},
      // `nodes`: the op and the attributes of each node; `names`: their names. `operands`: for each
      // node the number of its operands, then the operands: an input's index, or -1 - i for the
      // result of node i.
      .attrs = {{"Tin", TypeList{.min_length = 1, .allowed = TypesOf<PLAIN_TYPES>()}},
                {"nodes", FunctionList{}},
                {kFusedNodes, StringList{}},
                {"operands", IntList{}}},
      .shape = FusedShape,
      .gradient = NoGradient,
      .reuses = Reuse::kAny,
      .flops = FusedFlops,
  };
}
KERNEL_ANY_TYPE(_Fused, FusedKernel);

}  // namespace penstock

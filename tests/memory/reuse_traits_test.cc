// SPDX-License-Identifier: Apache-2.0
//
// Tests the traits of ops that say how kernels use the buffers of their inputs (OpDef::reuses,
// is_view), and which kernels may wait for other nodes (may_wait). Runs the kernels of all ops.
#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/env.h"
#include "core/base/thread_pool.h"
#include "core/op/registry.h"
#include "gtest/gtest.h"
#include "tests/conformance/samples.h"

namespace penstock {
namespace {

// Adds the attributes that the inputs determine, and the default values of the others.
Status Complete(const SampleCall& call, Attrs* attrs) {
  std::vector<std::vector<EdgeType>> types;
  std::vector<bool> is_list;
  for (size_t i = 0; i < call.args.size(); ++i) {
    const ArgType& type = call.op->inputs[i].type;
    is_list.push_back(type.list || !type.count.empty());
    types.emplace_back();
    for (const Tensor& tensor : call.args[i]) types.back().push_back({tensor.dtype()});
  }
  RETURN_IF_ERROR(InferAttrs(*call.op, types, is_list, attrs));
  return CompleteAttrs(*call.op, attrs);
}

// One run of a sample call's kernel.
struct OneRun {
  StatusOr<std::vector<Tensor>> Run(const SampleCall& call, std::vector<Tensor> inputs) {
    Attrs attrs = call.attrs;
    std::vector<EdgeType> input_types, output_types;
    RETURN_IF_ERROR(Complete(call, &attrs));
    for (const ArgDef& arg : call.op->inputs) {
      RETURN_IF_ERROR(AppendArgTypes(arg, attrs, &input_types));
    }
    for (const ArgDef& arg : call.op->outputs) {
      RETURN_IF_ERROR(AppendArgTypes(arg, attrs, &output_types));
    }
    const std::string name = "node", device = "/job:localhost/replica:0/task:0/device:CPU:0";
    ASSIGN_OR_RETURN(const auto kernel,
                     Registry::Global().MakeKernel("CPU", {.name = name,
                                                           .op = *call.op,
                                                           .attrs = attrs,
                                                           .device = device,
                                                           .input_types = input_types,
                                                           .output_types = output_types}));
    if (kernel->AsAsync() != nullptr) return Unimplemented("runs elsewhere");
    std::vector<Tensor> outputs(output_types.size());
    Cancellation cancellation;
    StepContext step = {.step_id = 1,
                        .resources = call.resources.get(),
                        .step_resources = &of_step,
                        .cancellation = &cancellation,
                        .threads = &threads,
                        .env = &Env::Real()};
    KernelContext context(KernelContext::Params{.step = &step,
                                                .node_name = &name,
                                                .device_name = &device,
                                                .allocator = &CpuAllocator(),
                                                .host_allocator = &CpuAllocator(),
                                                .inputs = inputs.data(),
                                                .outputs = outputs.data(),
                                                .output_types = output_types.data(),
                                                .num_inputs = static_cast<int>(inputs.size()),
                                                .num_outputs = static_cast<int>(outputs.size())});
    RETURN_IF_ERROR(kernel->Compute(context));
    return outputs;
  }

  ThreadPool threads{"one", 1};
  ResourceStore of_step;
};

// Runs the call while the test holds references to all inputs except input `free` (-1: to all
// inputs). Returns the pairs (output, input) that share a buffer, and sets the number of outputs.
StatusOr<std::set<std::pair<int, int>>> SharedBuffers(const SampleCall& call, int free,
                                                      int* num_outputs) {
  std::vector<Tensor> inputs, held;
  std::vector<const Buffer*> buffers;
  for (const Tensor& input : call.Inputs()) {
    const bool is_free = static_cast<int>(inputs.size()) == free;
    inputs.push_back(IsPlain(input.dtype()) ? input.Clone() : input);
    buffers.push_back(inputs.back().buffer());
    if (!is_free) held.push_back(inputs.back());
  }
  ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, OneRun().Run(call, std::move(inputs)));
  *num_outputs = static_cast<int>(outputs.size());
  std::set<std::pair<int, int>> shared;
  for (size_t o = 0; o < outputs.size(); ++o) {
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (!outputs[o].valid() || buffers[i] == nullptr) continue;
      if (outputs[o].buffer() == buffers[i]) {
        shared.emplace(static_cast<int>(o), static_cast<int>(i));
      }
    }
  }
  return shared;
}

bool CanBeSampled(const OpDef& op) {
  if (op.internal() || op.flow != FlowOp::kNone || op.end != EndOp::kNone || op.acts_outside ||
      !op.untestable_alone.empty() || op.outputs.empty() || op.inputs.empty()) {
    return false;
  }
  return std::none_of(op.inputs.begin(), op.inputs.end(), [](const ArgDef& arg) {
    return arg.type.ref || arg.type.type == "resource" || arg.type.type == "variant";
  });
}

// Records how kernels use the inputs of sample calls. Calls that fail do not count.
struct Seen {
  int calls = 0;
  int calls_with_views = 0;  // calls in which each output k had the buffer of input k
  bool reuses_first = false, reuses_others = false;

  Reuse reuses() const {
    return reuses_others ? Reuse::kAny : reuses_first ? Reuse::kFirst : Reuse::kNone;
  }
  void Add(const SampleCall& call) {
    int num_outputs = 0;
    const auto views = SharedBuffers(call, -1, &num_outputs);
    if (!views.ok()) return;
    ++calls;
    int num_views = 0;
    for (int o = 0; o < num_outputs; ++o) num_views += views->contains({o, o});
    calls_with_views += num_outputs > 0 && num_views == num_outputs;
    const int num_inputs = static_cast<int>(call.Inputs().size());
    for (int i = 0; i < num_inputs; ++i) {
      const auto shared = SharedBuffers(call, i, &num_outputs);
      if (!shared.ok() || !shared->contains({0, i}) || views->contains({0, i})) continue;
      (i == 0 ? reuses_first : reuses_others) = true;
    }
  }
};

TEST(ReuseTraitsTest, SayWhatKernelsDoWithTheirInputs) {
  for (const OpDef* op : Registry::Global().ops()) {
    if (!CanBeSampled(*op)) continue;
    Seen seen;
    const auto samples = SamplesOf(*op);  // the conformance test says which ops lack an example
    if (samples.ok()) {
      for (const SampleCall& call : *samples) seen.Add(call);
    }
    const bool is_view = op->is_view || op->passes_through;
    EXPECT_EQ(seen.calls > 0 && seen.calls_with_views == seen.calls, is_view) << op->name;
    // The memory plan predicts too much memory if a trait is missing, and too little if the kernel
    // does not do what the trait says.
    EXPECT_EQ(static_cast<int>(seen.reuses()), static_cast<int>(op->reuses)) << op->name;
  }
}

TEST(ReuseTraitsTest, AllKernelsThatMayWaitAreKnown) {
  for (const OpDef* op : Registry::Global().ops()) {
    for (const KernelDef* def : Registry::Global().kernels(op->name)) {
      const std::unique_ptr<Kernel> kernel = def->make();
      const AsyncKernel* const async = kernel->AsAsync();
      if (op->internal() || async == nullptr || !async->WaitsForNodes()) continue;
      EXPECT_TRUE(op->may_wait) << op->name << " has a kernel that waits";
      break;
    }
  }
}

}  // namespace
}  // namespace penstock

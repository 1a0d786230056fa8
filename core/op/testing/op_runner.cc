// SPDX-License-Identifier: Apache-2.0
#include "core/op/testing/op_runner.h"

#include <algorithm>
#include <utility>

#include "core/base/cond_var.h"
#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/base/thread_pool.h"
#include "core/op/shape_scope.h"

namespace penstock {
namespace {

constexpr auto kAsyncDeadline = std::chrono::seconds(10);
constexpr auto kCancelGrace = std::chrono::seconds(2);

// One execution. Shared with the Done of an asynchronous kernel, which may be called late.
struct Execution {
  const OpDef* op = nullptr;
  std::string node_name, device_type, device_name;
  Attrs attrs;
  std::vector<Tensor> inputs, outputs;
  std::vector<EdgeType> input_types, output_types;
  std::vector<PartialShape> output_shapes;
  OpRunner::Accelerator accelerator;
  std::unique_ptr<bool[]> output_on_host;
  std::shared_ptr<ResourceStore> resources, step_resources;
  Cancellation cancellation;
  StepContext step;
  std::unique_ptr<Kernel> kernel;
  std::unique_ptr<KernelContext> context;

  Mutex mu;
  CondVar done;
  bool finished ABSL_GUARDED_BY(mu) = false;
  Status status ABSL_GUARDED_BY(mu);

  // Waits for the kernel's end; returns whether it has ended within `limit`.
  bool Await(std::chrono::nanoseconds limit) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (!finished && done.WaitUntil(mu, deadline)) {
    }
    return finished;
  }
};

Scheduler& Threads() {
  static Scheduler& threads = *new ThreadPool("op_runner", 2);
  return threads;
}

// Returns the type of an edge that carries `tensor`: for a handle given to a Ref input, a reference
// to the type of the variable's value.
EdgeType TypeOf(const Tensor& tensor, bool ref) {
  if (!ref || tensor.dtype() != DType::kResource || tensor.num_elements() != 1) {
    return {tensor.dtype(), ref};
  }
  const auto& elements = tensor.scalar<ResourceHandle>().elements;
  return {elements.empty() ? DType::kInvalid : elements[0].dtype, ref};
}

Status Prepare(Execution& run, const std::vector<std::vector<Tensor>>& args,
               const std::vector<bool>& is_list) {
  std::vector<std::vector<EdgeType>> types;
  for (size_t i = 0; i < args.size(); ++i) {
    const bool ref = i < run.op->inputs.size() && run.op->inputs[i].type.ref;
    types.emplace_back();
    for (const Tensor& tensor : args[i]) {
      types.back().push_back(TypeOf(tensor, ref));
      run.input_types.push_back(types.back().back());
      run.inputs.push_back(tensor);
    }
  }
  RETURN_IF_ERROR(InferAttrs(*run.op, types, is_list, &run.attrs));
  RETURN_IF_ERROR(CompleteAttrs(*run.op, &run.attrs));
  for (const ArgDef& arg : run.op->outputs) {
    RETURN_IF_ERROR(AppendArgTypes(arg, run.attrs, &run.output_types));
  }
  run.outputs.resize(run.output_types.size());
  return OkStatus();
}

Status InferShapes(Execution& run, OpRunner::Known known) {
  std::vector<ShapeScope::Input> inputs;
  for (const Tensor& tensor : run.inputs) {
    ShapeScope::Input input{.shape = tensor.shape(), .constant = &tensor};
    if (tensor.dtype() == DType::kResource && tensor.num_elements() == 1) {
      const auto& elements = tensor.scalar<ResourceHandle>().elements;
      if (!elements.empty()) input.element = &elements[0];
    }
    inputs.push_back(input);
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    // A ref edge has the type and shape of the variable's value.
    if (run.input_types[i].ref && inputs[i].element != nullptr) {
      inputs[i].shape = inputs[i].element->shape;
      inputs[i].constant = nullptr;
    }
  }
  for (ShapeScope::Input& input : inputs) {
    if (known != OpRunner::Known::kValues) input.constant = nullptr;
    if (known == OpRunner::Known::kNothing) input.shape = PartialShape();
  }
  ShapeScope scope(*run.op, run.attrs, std::move(inputs), static_cast<int>(run.outputs.size()));
  RETURN_IF_ERROR(run.op->shape != nullptr ? run.op->shape(scope) : UnknownShape(scope));
  run.output_shapes = scope.outputs();
  return OkStatus();
}

Status Execute(const std::shared_ptr<Execution>& run) {
  run->step = {.step_id = 1,
               .resources = run->resources.get(),
               .step_resources = run->step_resources.get(),
               .cancellation = &run->cancellation,
               .threads = &Threads(),
               .env = &Env::Real()};
  run->context = std::make_unique<KernelContext>(
      KernelContext::Params{.step = &run->step,
                            .node_name = &run->node_name,
                            .device_name = &run->device_name,
                            .allocator = run->accelerator.allocator,
                            .host_allocator = &CpuAllocator(),
                            .stream = run->accelerator.stream,
                            .device_handles = run->accelerator.handles,
                            .inputs = run->inputs.data(),
                            .outputs = run->outputs.data(),
                            .output_types = run->output_types.data(),
                            .output_on_host = run->output_on_host.get(),
                            .num_inputs = static_cast<int>(run->inputs.size()),
                            .num_outputs = static_cast<int>(run->outputs.size())});
  AsyncKernel* async = run->kernel->AsAsync();
  if (async == nullptr) return run->kernel->Compute(*run->context);

  async->ComputeAsync(*run->context, Done([run](Status status) {
    MutexLock lock(run->mu);
    run->status = std::move(status);
    run->finished = true;
    run->done.NotifyAll();
  }));
  MutexLock lock(run->mu);
  if (run->Await(kAsyncDeadline)) return run->status;
  lock.Unlock();
  run->cancellation.Cancel(DeadlineExceeded("'", run->op->name, "' did not end in 10 s"));
  lock.Lock();
  if (run->Await(kCancelGrace)) return run->status;
  return Internal("'", run->op->name, "' ended neither in 10 s nor when cancelled");
}

bool AlwaysOnHost(const EdgeType& type) { return type.ref || !IsPlain(type.dtype); }

// Returns, for each tensor of `args`, whether the kernel wants it in host memory.
StatusOr<std::vector<bool>> OnHost(const Execution& run, const std::vector<ArgDef>& args,
                                   const std::vector<std::string>& host_args) {
  std::vector<EdgeType> types;
  std::vector<bool> on_host;
  for (const ArgDef& arg : args) {
    const bool listed = std::find(host_args.begin(), host_args.end(), arg.name) != host_args.end();
    RETURN_IF_ERROR(AppendArgTypes(arg, run.attrs, &types));
    while (on_host.size() < types.size()) {
      on_host.push_back(listed || AlwaysOnHost(types[on_host.size()]));
    }
  }
  return on_host;
}

Status ExecuteOnAccelerator(const std::shared_ptr<Execution>& run, const Registry& registry) {
  const OpRunner::Accelerator& accelerator = run->accelerator;
  ASSIGN_OR_RETURN(const KernelDef* kernel,
                   registry.FindKernel(run->op->name, accelerator.type, run->attrs));
  ASSIGN_OR_RETURN(const std::vector<bool> inputs,
                   OnHost(*run, run->op->inputs, kernel->host_args));
  ASSIGN_OR_RETURN(const std::vector<bool> outputs,
                   OnHost(*run, run->op->outputs, kernel->host_args));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i]) continue;
    ASSIGN_OR_RETURN(run->inputs[i], accelerator.to_device(run->inputs[i]));
  }
  run->output_on_host = std::make_unique<bool[]>(outputs.size());
  std::copy(outputs.begin(), outputs.end(), run->output_on_host.get());
  RETURN_IF_ERROR(Execute(run));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] || !run->outputs[i].valid()) continue;
    ASSIGN_OR_RETURN(run->outputs[i], accelerator.from_device(run->outputs[i]));
  }
  return OkStatus();
}

// Internal unless the outputs have the declared types and the inferred shapes.
Status CheckOutputs(const Execution& run) {
  for (size_t i = 0; i < run.outputs.size(); ++i) {
    const Tensor& output = run.outputs[i];
    const EdgeType declared = run.output_types[i];
    const DType expected = declared.ref ? DType::kResource : declared.dtype;
    if (output.dtype() != expected) {
      return Internal("output ", i, " of '", run.op->name, "' is ", Name(output.dtype()),
                      ", promised was ", Name(declared));
    }
    if (declared.ref || run.output_shapes[i].Compatible(output.shape())) continue;
    return Internal("output ", i, " of '", run.op->name, "' has shape ", output.shape().ToString(),
                    ", its shape function promised ", run.output_shapes[i].ToString());
  }
  return OkStatus();
}

}  // namespace

OpRunner::OpRunner(string_view op, std::shared_ptr<ResourceStore> resources,
                   const Registry& registry)
    : op_(op),
      node_name_(op),
      registry_(registry),
      resources_(resources != nullptr ? std::move(resources) : std::make_shared<ResourceStore>()) {}

OpRunner& OpRunner::In(Tensor tensor) {
  args_.push_back({std::move(tensor)});
  arg_is_list_.push_back(false);
  return *this;
}

OpRunner& OpRunner::InList(std::vector<Tensor> tensors) {
  args_.push_back(std::move(tensors));
  arg_is_list_.push_back(true);
  return *this;
}

OpRunner& OpRunner::Attr(string_view name, AttrValue value) {
  attrs_[std::string(name)] = std::move(value);
  return *this;
}

OpRunner& OpRunner::NodeName(string_view name) {
  node_name_ = std::string(name);
  return *this;
}

OpRunner& OpRunner::Device(string_view device_type) {
  device_type_ = std::string(device_type);
  return *this;
}

OpRunner& OpRunner::On(Accelerator accelerator) {
  device_type_ = accelerator.type;
  accelerator_ = std::move(accelerator);
  return *this;
}

OpRunner& OpRunner::StepResources(std::shared_ptr<ResourceStore> store) {
  step_resources_ = std::move(store);
  return *this;
}

OpRunner& OpRunner::SetKnownInputs(Known known) {
  known_ = known;
  return *this;
}

StatusOr<std::vector<Tensor>> OpRunner::Run() {
  auto run = std::make_shared<Execution>();
  ASSIGN_OR_RETURN(run->op, registry_.GetOp(op_));
  run->node_name = node_name_;
  run->device_name = StrCat("/job:localhost/replica:0/task:0/device:", device_type_, ":0");
  run->attrs = attrs_;
  run->resources = resources_;
  run->step_resources =
      step_resources_ != nullptr ? step_resources_ : std::make_shared<ResourceStore>();
  RETURN_IF_ERROR(Prepare(*run, args_, arg_is_list_));
  RETURN_IF_ERROR(InferShapes(*run, known_));
  ASSIGN_OR_RETURN(run->kernel,
                   registry_.MakeKernel(device_type_, {.name = run->node_name,
                                                       .op = *run->op,
                                                       .attrs = run->attrs,
                                                       .device = run->device_name,
                                                       .input_types = run->input_types,
                                                       .output_types = run->output_types}));
  if (accelerator_.allocator != nullptr) {
    run->accelerator = accelerator_;
    RETURN_IF_ERROR(ExecuteOnAccelerator(run, registry_));
  } else {
    run->accelerator.allocator = &CpuAllocator();
    RETURN_IF_ERROR(Execute(run));
  }
  RETURN_IF_ERROR(CheckOutputs(*run));
  return std::move(run->outputs);
}

StatusOr<Tensor> OpRunner::Run1() {
  ASSIGN_OR_RETURN(std::vector<Tensor> outputs, Run());
  CHECK(outputs.size() == 1, op_, " has ", outputs.size(), " outputs");
  return std::move(outputs[0]);
}

}  // namespace penstock

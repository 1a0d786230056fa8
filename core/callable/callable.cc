// SPDX-License-Identifier: Apache-2.0
#include "core/callable/callable.h"

#include <utility>

#include "core/callable/function_graph.h"
#include "core/compiler/compile.h"
#include "core/runtime/deadline_timer.h"
#include "core/runtime/device.h"
#include "core/runtime/executor.h"

namespace penstock {
namespace {

// The data of the step of one run. Cancels the step when the CallPlace's cancellation is cancelled.
class Run {
 public:
  Run(const CallPlace& place, std::vector<Tensor> args, size_t results)
      : place_(place), args_(std::move(args)), results_(results) {
    registered_ =
        place.cancellation->Register([this](const Status& why) { own_.Cancel(why); }, &token_);
    if (!registered_) own_.Cancel(place.cancellation->status());
  }
  ~Run() {
    if (registered_) place_.cancellation->Deregister(token_);
  }

  StepArgs Args() {
    return {.step_id = place_.step_id,
            .cancellation = &own_,
            .resources = place_.resources,
            .step_resources = &step_resources_,
            .feeds = args_.data(),
            .num_feeds = static_cast<int>(args_.size()),
            .fetches = results_.data(),
            .num_fetches = static_cast<int>(results_.size())};
  }
  std::vector<Tensor> TakeResults() { return std::move(results_); }

 private:
  const CallPlace place_;
  std::vector<Tensor> args_, results_;
  ResourceStore step_resources_;
  Cancellation own_;
  Cancellation::Token token_ = 0;
  bool registered_ = false;
};

class GraphCallable;

class GraphCall final : public Callable::Call {
 public:
  // `executor` is null for a function that only passes arguments on.
  GraphCall(std::shared_ptr<const Callable> of, std::shared_ptr<Executor> executor)
      : callable_(std::move(of)), executor_(std::move(executor)) {}

  Status Run(const CallPlace& place, absl::Span<const Tensor> args,
             std::vector<Tensor>* results) override {
    RETURN_IF_ERROR(CheckArgs(args));
    if (PassOn(args, results)) return OkStatus();
    penstock::Run run(place, {args.begin(), args.end()}, callable_->result_types().size());
    RETURN_IF_ERROR(executor_->Run(run.Args()));
    *results = run.TakeResults();
    return OkStatus();
  }

  void RunAsync(const CallPlace& place, std::vector<Tensor> args, Callable::Ended ended) override {
    std::vector<Tensor> results;
    const Status status = CheckArgs(args);
    if (!status.ok() || PassOn(args, &results)) return ended(status, std::move(results));
    auto run =
        std::make_shared<penstock::Run>(place, std::move(args), callable_->result_types().size());
    const StepArgs step = run->Args();
    executor_->RunAsync(
        step, Done([run = std::move(run), ended = std::move(ended)](Status status) mutable {
          std::vector<Tensor> results;
          if (status.ok()) results = run->TakeResults();
          run = nullptr;  // deregisters before it calls `ended`, which may destroy the place
          ended(std::move(status), std::move(results));
        }));
  }

 private:
  Status CheckArgs(absl::Span<const Tensor> args) const {
    const std::vector<DType>& types = callable_->arg_types();
    if (args.size() != types.size()) {
      return InvalidArgument("function '", callable_->name(), "' takes ", types.size(),
                             " arguments, it is given ", args.size());
    }
    for (size_t i = 0; i < args.size(); ++i) {
      if (args[i].dtype() == types[i]) continue;
      return InvalidArgument("function '", callable_->name(), "': argument ", i, " must be ",
                             Name(types[i]), ", is ", Name(args[i].dtype()));
    }
    return OkStatus();
  }

  bool PassOn(absl::Span<const Tensor> args, std::vector<Tensor>* results) const {
    if (executor_ != nullptr) return false;
    results->clear();
    for (const int arg : callable_->passed_on()) results->push_back(args[arg]);
    return true;
  }

  const std::shared_ptr<const Callable> callable_;  // keeps the device alive
  const std::shared_ptr<Executor> executor_;
};

StatusOr<std::unique_ptr<Device>> MakeCpu(const std::string& name) {
  ASSIGN_OR_RETURN(DeviceName parsed, DeviceName::Parse(name));
  parsed.type = std::nullopt;
  parsed.index = std::nullopt;
  ASSIGN_OR_RETURN(auto devices, MakeDevices({.task = parsed, .gpus_max = 0}));
  return std::move(devices.front());
}

class GraphCallable final : public Callable {
 public:
  explicit GraphCallable(const Spec& spec) : threads_(*spec.threads), env_(*spec.env) {
    name_ = spec.function.name;
  }

  Status Init(const Spec& spec) {
    ASSIGN_OR_RETURN(FunctionGraph function, FunctionGraph::Make(spec.library, spec.function));
    arg_types_ = function.arg_types;
    result_types_ = function.result_types;
    ASSIGN_OR_RETURN(device_, MakeCpu(spec.device));
    if (FindPassedOn(function)) return OkStatus();
    RETURN_IF_ERROR(Compile(&function.graph));
    for (const Node* node : graph_->nodes()) stateful_ |= IsStateful(*node);
    ASSIGN_OR_RETURN(executor_, NewExecutor());
    waits_ = Waits();
    return OkStatus();
  }

  StatusOr<std::unique_ptr<Call>> NewCall() const override {
    std::shared_ptr<Executor> executor = executor_;
    if (stateful_) {
      ASSIGN_OR_RETURN(executor, NewExecutor());
    }
    return std::make_unique<GraphCall>(shared_from_this(), std::move(executor));
  }

 private:
  // _Feed and _Fetch nodes do not count, although their ops are stateful.
  static bool IsStateful(const Node& node) {
    return node.op().stateful && node.op().end == EndOp::kNone;
  }

  // Returns true and sets passed_on_ if the function only passes its arguments on, as lambda x: x
  // does. Such a function needs no executor.
  bool FindPassedOn(const FunctionGraph& function) {
    const Graph& graph = function.graph;
    if (graph.num_nodes() != static_cast<int>(arg_types_.size()) + 1) return false;
    const Node& results = *graph.FindNode(FunctionGraph::kResults);
    for (const Endpoint& input : results.inputs()) passed_on_.push_back(input.node->id());
    return true;
  }

  Status Compile(Graph* graph) {
    CompileOptions options{.env = &env_, .threads = &threads_};
    options.client_device = device_->info().name;
    for (size_t i = 0; i < arg_types_.size(); ++i) {
      options.feeds.push_back({.node = FunctionGraph::Parameter(static_cast<int>(i))});
    }
    for (size_t i = 0; i < result_types_.size(); ++i) {
      options.fetches.push_back({.node = FunctionGraph::kResults, .index = static_cast<int>(i)});
    }
    options.targets.push_back(FunctionGraph::kResults);
    for (Node* node : graph->nodes()) {
      // The function runs on this device, independently of the devices that the client requested.
      // Nodes with side effects run even if their results are not used.
      graph->set_requested_device(node, "");
      if (node->op().stateful && !node->op().is_placeholder) {
        options.targets.push_back(node->name());
      }
    }
    ASSIGN_OR_RETURN(std::vector<Partition> partitions,
                     penstock::Compile(*graph, {device_->info()}, options));
    graph_ = std::make_unique<Graph>(partitions.empty() ? Graph(Registry::Global())
                                                        : std::move(partitions.front().graph));
    return OkStatus();
  }

  StatusOr<std::unique_ptr<Executor>> NewExecutor() const {
    return MakeExecutor(graph_->Clone(), {.device = device_.get(),
                                          .threads = &threads_,
                                          .env = &env_,
                                          .timer = &DeadlineTimer::Real()});
  }

  bool Waits() const {
    for (const Node* node : graph_->nodes()) {
      const auto kernel = Registry::Global().FindKernel(node->op_name(), "CPU", node->attrs());
      if (kernel.ok() && (*kernel)->make()->AsAsync() != nullptr) return true;
    }
    return false;
  }

  Scheduler& threads_;
  Env& env_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Graph> graph_;
  std::shared_ptr<Executor> executor_;  // shared by all calls, unless the function is stateful
  bool stateful_ = false;
};

}  // namespace

StatusOr<std::shared_ptr<const Callable>> Callable::Make(const Spec& spec) {
  auto made = std::make_shared<GraphCallable>(spec);
  RETURN_IF_ERROR(Annotate(made->Init(spec), StrCat("function '", spec.function.name, "'")));
  return std::shared_ptr<const Callable>(std::move(made));
}

}  // namespace penstock

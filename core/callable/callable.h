// SPDX-License-Identifier: Apache-2.0
//
// Callable: a function of a graph's library, compiled for one CPU device, that a kernel calls while
// the kernel runs. Call: the state of one user of a Callable (random numbers, other stateful
// kernels).
//
//   ASSIGN_OR_RETURN(auto callable, Callable::Make({.library = ..., .function = f, ...}));
//   ASSIGN_OR_RETURN(auto call, callable->NewCall());
//   RETURN_IF_ERROR(call->Run(place, {x}, &results));
//
// A run is a step of its own, in a CallPlace that the caller's step or resource provides. Run
// returns an error of the run as its status; the error does not end the step that started the run.
// If CallPlace::cancellation is cancelled, the run ends. Both classes are thread-safe. Several runs
// of one Call may overlap. A Call must outlive its runs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/base/cancellation.h"
#include "core/base/env.h"
#include "core/base/scheduler.h"
#include "core/base/status.h"
#include "core/op/attr.h"
#include "core/op/resource.h"
#include "core/tensor/tensor.h"

namespace penstock {

// The resources, the cancellation and the step that a run uses. Borrowed until the run has ended.
struct CallPlace {
  ResourceStore* resources = nullptr;
  Cancellation* cancellation = nullptr;
  int64_t step_id = 0;
};

class Callable : public std::enable_shared_from_this<Callable> {
 public:
  struct Spec {
    const std::string& library;    // serialized: the value of a node's attribute kFunctionsAttr
    const FunctionName& function;  // with the values of its attributes
    const std::string& device;     // full name, of a CPU
    Scheduler* threads = nullptr;  // borrowed by the Callable and its Calls
    Env* env = nullptr;            // borrowed by the Callable and its Calls
  };
  // Compiles the function. Errors name the function and say what is wrong with it.
  static StatusOr<std::shared_ptr<const Callable>> Make(const Spec& spec);
  virtual ~Callable() = default;

  // Called when a run has ended. `results` are empty unless the status is OK.
  using Ended = std::function<void(Status status, std::vector<Tensor> results)>;
  class Call {
   public:
    virtual ~Call() = default;
    // Runs on this thread, which may block if waits() is true. InvalidArgument if `args` do not
    // match the function's parameters in number or type.
    virtual Status Run(const CallPlace& place, absl::Span<const Tensor> args,
                       std::vector<Tensor>* results) = 0;
    // Calls `ended` on any thread.
    virtual void RunAsync(const CallPlace& place, std::vector<Tensor> args, Ended ended) = 0;
  };
  // Returns a Call whose stateful kernels are in their initial state.
  virtual StatusOr<std::unique_ptr<Call>> NewCall() const = 0;

  const std::string& name() const { return name_; }
  const std::vector<DType>& arg_types() const { return arg_types_; }
  const std::vector<DType>& result_types() const { return result_types_; }
  // Returns whether a kernel of the function may wait for an event outside of the call, such as an
  // enqueue by another node.
  bool waits() const { return waits_; }
  // If the function only passes arguments on as its results, returns for each result the index of
  // the argument; else returns an empty vector.
  const std::vector<int>& passed_on() const { return passed_on_; }

 protected:
  std::string name_;
  std::vector<DType> arg_types_, result_types_;
  std::vector<int> passed_on_;
  bool waits_ = false;
};

}  // namespace penstock

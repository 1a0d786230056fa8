// SPDX-License-Identifier: Apache-2.0
//
// Callable: a function of a graph's library, compiled for one CPU, that a kernel calls while it
// runs; Call: the state of one user of it (its random numbers, its other stateful kernels).
//
//   ASSIGN_OR_RETURN(auto callable, Callable::Make({.library = ..., .function = f, ...}));
//   ASSIGN_OR_RETURN(auto call, callable->NewCall());
//   RETURN_IF_ERROR(call->Run(place, {x}, &results));
//
// A call is a step of its own, inside the step or the resource that makes it: what goes wrong in it
// is the status of the call and ends nothing else; the cancellation of its place ends it.
// Thread-safe: both. A Call may run many times at once, and outlives its runs.
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

// The resources, the cancellation and the step of a call. Borrowed until the call has ended.
struct CallPlace {
  ResourceStore* resources = nullptr;
  Cancellation* cancellation = nullptr;
  int64_t step_id = 0;
};

class Callable : public std::enable_shared_from_this<Callable> {
 public:
  struct Spec {
    const std::string& library;    // serialized: the attribute kFunctionsAttr of a node
    const FunctionName& function;  // with the values of its parameters
    const std::string& device;     // full name, of a CPU
    Scheduler* threads = nullptr;  // borrowed by the Callable and its Calls
    Env* env = nullptr;            // the same
  };
  // InvalidArgument names the function and says what is wrong with it.
  static StatusOr<std::shared_ptr<const Callable>> Make(const Spec& spec);
  virtual ~Callable() = default;

  // Ends a call. `results` are empty unless the status is OK.
  using Ended = std::function<void(Status status, std::vector<Tensor> results)>;
  class Call {
   public:
    virtual ~Call() = default;
    // On this thread, which may wait where waits() says so. InvalidArgument where `args` do not fit
    // the function's parameters in number or type.
    virtual Status Run(const CallPlace& place, absl::Span<const Tensor> args,
                       std::vector<Tensor>* results) = 0;
    // `ended` is called on any thread.
    virtual void RunAsync(const CallPlace& place, std::vector<Tensor> args, Ended ended) = 0;
  };
  // Stateful kernels begin anew with each Call.
  virtual StatusOr<std::unique_ptr<Call>> NewCall() const = 0;

  const std::string& name() const { return name_; }
  const std::vector<DType>& arg_types() const { return arg_types_; }
  const std::vector<DType>& result_types() const { return result_types_; }
  // Whether a kernel of it may wait for something outside, such as a queue.
  bool waits() const { return waits_; }
  // If the results are arguments passed on, and nothing else happens: for each result, which. Else
  // empty.
  const std::vector<int>& passed_on() const { return passed_on_; }

 protected:
  std::string name_;
  std::vector<DType> arg_types_, result_types_;
  std::vector<int> passed_on_;
  bool waits_ = false;
};

}  // namespace penstock

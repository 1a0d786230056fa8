// SPDX-License-Identifier: Apache-2.0
//
// PyFunc and similar ops: calls of functions that only the client's process has. They are declared
// so that a graph that contains them can be imported, and its other nodes can run. Running one
// returns an error that says what to do instead. SymbolicGradient: the compiler replaces the node
// by the gradient's nodes if the graph has its function.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"

namespace penstock {
namespace {

class PyFuncKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    op_ = node.op.name;
    return node.Attr("token", &token_);
  }
  Status Compute(KernelContext&) override {
    return Unimplemented(
        op_, " calls the Python function '", token_, "' of the process that built the graph, ",
        "which a server cannot do: call it in the client and feed what it returns");
  }

 private:
  std::string op_, token_;
};

class SymbolicGradientKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    FunctionName function;
    RETURN_IF_ERROR(node.Attr("f", &function));
    name_ = function.name;
    return OkStatus();
  }
  Status Compute(KernelContext&) override {
    return Unimplemented("SymbolicGradient: the graph's library has no function '", name_, "'");
  }

 private:
  std::string name_;
};

OpDef PyFuncOp(const char* doc) {
  return {
      .doc = doc,
      .inputs = {{"input", List("Tin")}},
      .outputs = {{"output", List("Tout")}},
      .attrs = {{"token", Strings{}}, {"Tin", TypeList{}}, {"Tout", TypeList{}}},
      .shape = UnknownShape,
      .stateful = true,
      .untestable_alone = "returns an error when it runs: kernels/flow has its tests",
  };
}

OpDef EagerPyFuncOp() {
  OpDef op =
      PyFuncOp("Calls a Python function of the client on eager tensors. A server cannot run it.");
  op.attrs.push_back({"is_async", false});
  return op;
}

}  // namespace

OP(PyFunc) { return PyFuncOp("Calls a Python function of the client. A server cannot run it."); }
OP(PyFuncStateless) {
  return PyFuncOp(
      "The same as PyFunc, for a function without side effects. A server cannot run it.");
}

OP(EagerPyFunc) { return EagerPyFuncOp(); }
KERNEL_ANY_TYPE(PyFunc, PyFuncKernel);
KERNEL_ANY_TYPE(PyFuncStateless, PyFuncKernel);
KERNEL_ANY_TYPE(EagerPyFunc, PyFuncKernel);

OP(SymbolicGradient) {
  return {
      .doc =
          "Computes the gradients of a function of the graph's library. The inputs are the "
          "function's arguments and the gradients of its results; the outputs are the gradients of "
          "its arguments.",
      .inputs = {{"input", List("Tin")}},
      .outputs = {{"output", List("Tout")}},
      .attrs = {{"Tin", TypeList{.min_length = 1}},
                {"Tout", TypeList{.min_length = 1}},
                {"f", Functions{}}},
      .shape = UnknownShape,
      .untestable_alone = "needs a function: core/functions has its tests",
  };
}
KERNEL_ANY_TYPE(SymbolicGradient, SymbolicGradientKernel);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// GeneratorDataset: a dataset whose elements are made by Python functions of the client, which a
// server cannot call. The op is declared so that a graph that contains it can be imported, and its
// other nodes can run.
#include "core/op/registry.h"
#include "kernels/dataset/dataset_kernel.h"

namespace penstock {
namespace {

class GeneratorKernel final : public DatasetKernel {
 public:
  Status Init(const KernelInit& node) override {
    FunctionName function;
    RETURN_IF_ERROR(node.Attr("next_func", &function));
    name_ = function.name;
    return OkStatus();
  }

 private:
  StatusOr<DatasetPtr> MakeDataset(KernelContext&) override {
    return Unimplemented("GeneratorDataset calls the Python generator of the process that built ",
                         "the graph (function '", name_, "'), which a server cannot do: write its ",
                         "elements to a TFRecord file, or feed them");
  }

  std::string name_;
};

OP(GeneratorDataset) {
  return DatasetOp{
      .doc = "Elements that a Python generator of the client makes. A server cannot run it.",
      .inputs = {{"init_func_other_args", List("Tinit_func_args")},
                 {"next_func_other_args", List("Tnext_func_args")},
                 {"finalize_func_other_args", List("Tfinalize_func_args")}},
      .attrs = {{"init_func", Functions{}},
                {"next_func", Functions{}},
                {"finalize_func", Functions{}},
                TypesAttr("Tinit_func_args", 0),
                TypesAttr("Tnext_func_args", 0),
                TypesAttr("Tfinalize_func_args", 0)},
      .stateful = true};
}
KERNEL_ANY_TYPE(GeneratorDataset, GeneratorKernel);

}  // namespace
}  // namespace penstock

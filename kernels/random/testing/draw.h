// SPDX-License-Identifier: Apache-2.0
//
// For tests of random ops: draws once with given seeds, or runs a node step after step.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/env.h"
#include "core/base/thread_pool.h"
#include "core/op/testing/op_runner.h"
#include "kernels/array/testing/op_check.h"

namespace penstock {

inline Attrs Seeds(int64_t seed, int64_t seed2) { return {{"seed", seed}, {"seed2", seed2}}; }
inline Attrs With(Attrs attrs, const char* name, AttrValue value) {
  attrs[name] = std::move(value);
  return attrs;
}
inline Tensor Draw(const char* op, DType dtype, std::vector<int64_t> shape, int64_t seed = 87,
                   int64_t seed2 = 12) {
  return OpCall{op, {Longs(shape)}, With(Seeds(seed, seed2), "dtype", dtype)}.Run1();
}

// A kernel that runs several times, like a node of a graph in successive steps.
class RepeatedOp {
 public:
  RepeatedOp(string_view op, Attrs attrs, std::vector<Tensor> inputs)
      : inputs_(std::move(inputs)), op_(**Registry::Global().GetOp(op)), attrs_(std::move(attrs)) {
    std::vector<std::vector<EdgeType>> args;
    for (const Tensor& input : inputs_) {
      args.push_back({{input.dtype()}});
      input_types_.push_back({input.dtype()});
    }
    CHECK_OK(InferAttrs(op_, args, std::vector<bool>(args.size()), &attrs_));
    CHECK_OK(CompleteAttrs(op_, &attrs_));
    for (const ArgDef& arg : op_.outputs) CHECK_OK(AppendArgTypes(arg, attrs_, &output_types_));
    auto kernel = Registry::Global().MakeKernel("CPU", {.name = name_,
                                                        .op = op_,
                                                        .attrs = attrs_,
                                                        .device = device_,
                                                        .input_types = input_types_,
                                                        .output_types = output_types_});
    CHECK_OK(kernel.status());
    kernel_ = *std::move(kernel);
  }
  Tensor Run() { return RunAll()[0]; }
  std::vector<Tensor> RunAll() {
    std::vector<Tensor> inputs = inputs_, outputs(output_types_.size());
    KernelContext ctx({.step = &step_,
                       .node_name = &name_,
                       .device_name = &device_,
                       .allocator = &CpuAllocator(),
                       .host_allocator = &CpuAllocator(),
                       .inputs = inputs.data(),
                       .outputs = outputs.data(),
                       .output_types = output_types_.data(),
                       .num_inputs = static_cast<int>(inputs.size()),
                       .num_outputs = static_cast<int>(outputs.size())});
    CHECK_OK(kernel_->Compute(ctx));
    return outputs;
  }

 private:
  std::vector<Tensor> inputs_;
  const std::string name_ = "node", device_ = "/job:localhost/replica:0/task:0/device:CPU:0";
  const OpDef& op_;
  Attrs attrs_;
  std::vector<EdgeType> input_types_, output_types_;
  std::unique_ptr<Kernel> kernel_;
  ThreadPool threads_{"test", 2};
  StepContext step_{.threads = &threads_, .env = &Env::Real()};
};

}  // namespace penstock

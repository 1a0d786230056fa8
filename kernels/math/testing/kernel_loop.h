// SPDX-License-Identifier: Apache-2.0
//
// Runs one kernel repeatedly, for benchmarks, without a graph or an executor.
#pragma once

#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/op/registry.h"

namespace penstock {

class KernelLoop {
 public:
  // Keeps references to the inputs' buffers, so that the kernel cannot compute in place.
  KernelLoop(const std::string& op, Attrs attrs, std::vector<Tensor> inputs, DType output,
             int threads)
      : name_(op),
        attrs_(std::move(attrs)),
        inputs_(std::move(inputs)),
        output_type_{output},
        threads_("benchmark", threads) {
    const OpDef* def = *Registry::Global().GetOp(op);
    for (const Tensor& input : inputs_) input_types_.push_back({input.dtype()});
    if (!attrs_.contains("T")) attrs_["T"] = inputs_.back().dtype();
    CHECK_OK(CompleteAttrs(*def, &attrs_));
    auto kernel = Registry::Global().MakeKernel("CPU", {.name = name_,
                                                        .op = *def,
                                                        .attrs = attrs_,
                                                        .device = name_,
                                                        .input_types = input_types_,
                                                        .output_types = {output_type_}});
    CHECK_OK(kernel.status());
    kernel_ = *std::move(kernel);
  }

  void Run(benchmark::State& state) {
    StepContext step{.threads = &threads_};
    Tensor output;
    KernelContext ctx({.step = &step,
                       .allocator = &CpuAllocator(),
                       .host_allocator = &CpuAllocator(),
                       .inputs = inputs_.data(),
                       .outputs = &output,
                       .output_types = &output_type_,
                       .num_inputs = static_cast<int>(inputs_.size()),
                       .num_outputs = 1});
    for (auto _ : state) {
      CHECK_OK(kernel_->Compute(ctx));
      benchmark::DoNotOptimize(output.raw_data());
    }
  }

 private:
  const std::string name_;
  Attrs attrs_;
  std::vector<Tensor> inputs_;
  std::vector<EdgeType> input_types_;
  const EdgeType output_type_;
  ThreadPool threads_;
  std::unique_ptr<Kernel> kernel_;
};

}  // namespace penstock

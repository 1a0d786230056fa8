// SPDX-License-Identifier: Apache-2.0
//
// The kernels that move tensors into and out of tensor arrays. One kernel serves all generations of
// an op. element_ops.cc declares the ops.
#pragma once

#include "kernels/tensor_array/array_kernel.h"

namespace penstock {

// Inputs: handle, index, value, flow_in.   Output: flow_out.
class TensorArrayWriteKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override;
};

// Inputs: handle, index, flow_in.   Output: value.
class TensorArrayReadKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override;
};

// Inputs: handle, [indices,] flow_in. Output: value, with a new dimension in front. Without
// indices: all elements.
class TensorArrayGatherKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override;
  Status Compute(KernelContext& ctx) override;

 private:
  PartialShape element_shape_;
};

// Inputs: handle, [indices,] value, flow_in.   Output: flow_out.
class TensorArrayScatterKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override;
};

// Inputs: handle, flow_in. Outputs: value, the concatenation of all elements; lengths.
class TensorArrayConcatKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override;
  Status Compute(KernelContext& ctx) override;

 private:
  PartialShape element_shape_except0_;
};

// Inputs: handle, value, lengths, flow_in.   Output: flow_out.
class TensorArraySplitKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override;
};

}  // namespace penstock

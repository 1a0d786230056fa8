// SPDX-License-Identifier: Apache-2.0
//
// BlockKernel: an interface of kernels of elementwise ops. Such a kernel can compute a block of its
// output from the blocks of its inputs at the same place, so a _Fused node can run several of them
// block by block (core/compiler/passes/fuse_elementwise.cc, kernels/math/fused.cc).
//
// A class derives from Kernel and from BlockKernel. Thread-safe after Kernel::Init, as Kernel is.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "core/tensor/shape.h"

namespace penstock {

// The op of nodes that run several elementwise nodes block by block. Its attribute kFusedNodes
// (names) lists these nodes in the order in which they run.
inline constexpr char kFusedOp[] = "_Fused";
inline constexpr char kFusedNodes[] = "names";

// An input's part of a block.
struct BlockInput {
  const void* data;
  bool repeats = false;  // one element serves the whole block
};

class BlockKernel {
 public:
  virtual ~BlockKernel() = default;
  // Returns whether RunBlock computes what Compute does. If false, the functions below must not be
  // called.
  virtual bool RunsInBlocks() const = 0;
  // Returns whether Compute accepts inputs of these shapes, which broadcast to the shape `output`
  // by NumPy's rules, and broadcasts them in this way. By default true.
  virtual bool AcceptsShapes(const Shape& output, absl::Span<const Shape* const> inputs) const {
    return true;
  }
  // Returns the time for one element in nanoseconds, if all data are in the first-level cache.
  virtual double BlockNanos() const = 0;
  // Computes `n` elements of the output, with the same bits as Compute. `output` may be the data of
  // an input that does not repeat. REQUIRES: n > 0; at least one input does not repeat.
  virtual void RunBlock(const BlockInput* inputs, void* output, int64_t n) const = 0;
};

}  // namespace penstock

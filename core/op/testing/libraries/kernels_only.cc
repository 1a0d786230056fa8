// SPDX-License-Identifier: Apache-2.0
//
// An op library for tests: a kernel for an op of the test's process; the op has a float kernel
// already.
#include "core/op/op_library.h"

namespace {

using namespace penstock;  // NOLINT

class NoKernel final : public Kernel {
 public:
  Status Compute(KernelContext&) override { return Unimplemented("a kernel of the test"); }
};

KERNEL_DEF({.op = "TypedOpOfTheTest", .types = {{"T", DType::kDouble}}, .make = Make<NoKernel>});

}  // namespace

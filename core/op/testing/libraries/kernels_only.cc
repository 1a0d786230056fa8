// SPDX-License-Identifier: Apache-2.0
//
// An op library for tests: a kernel for an op that the test's process has already, with a float
// kernel.
#include "core/op/op_library.h"

namespace {

using namespace penstock;  // NOLINT

class NoKernel final : public Kernel {
 public:
  Status Compute(KernelContext&) override { return Unimplemented("a kernel of the test"); }
};

KERNEL_DEF({.op = "TypedOpOfTheTest", .types = {{"T", DType::kDouble}}, .make = Make<NoKernel>});

}  // namespace

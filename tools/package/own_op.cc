// SPDX-License-Identifier: Apache-2.0
//
// A program outside the tree that defines its own op: schema, shapes, gradient, kernel.
// install_test.py builds it against an installation.
#include <cstdio>

#include "client/gradients.h"
#include "client/program.h"
#include "client/session.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"

using namespace penstock;          // NOLINT
using namespace penstock::client;  // NOLINT

template <class T>
class TripleKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    Tensor* y = nullptr;
    RETURN_IF_ERROR(ctx.ForwardOrAllocate(0, 0, ctx.input(0).shape(), &y));
    const auto from = ctx.input(0).flat<T>();
    const auto to = y->mutable_flat<T>();
    for (size_t i = 0; i < from.size(); ++i) to[i] = 3 * from[i];
    return OkStatus();
  }
};

OP(Triple) {
  return {
      .doc = "y = 3 x.",
      .inputs = {{"x", "T"}},
      .outputs = {{"y", "T"}},
      .types = {{"T", kFloating}},
      .shape = SameShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> { return {g.dy() * 3.0}; },
      .reuses = Reuse::kFirst,
  };
}
KERNEL(Triple, TripleKernel, float, double);

int main() {
  Program program;
  const Output x = Constant(program, Tensor::Vector<float>({1, 2}));
  const Output y = Call("Triple", {x});
  const Output dx = Gradients(program, {y}, {x})[0].values;
  auto session = Session::New(program, "");
  CHECK_OK(session.status());
  std::printf("y = %s\n", (*session)->Fetch(y)->ToString().c_str());
  std::printf("dx = %s\n", (*session)->Fetch(dx)->ToString().c_str());
}

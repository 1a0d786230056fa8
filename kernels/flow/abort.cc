// SPDX-License-Identifier: Apache-2.0
//
// Abort: ends the process that runs the node. Programs use it to test how other tasks react.
#include <cstdio>
#include <cstdlib>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"

namespace penstock {
namespace {

class AbortKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("error_msg", &message_));
    return node.Attr("exit_without_error", &exits_);
  }

  Status Compute(KernelContext& ctx) override {
    std::fprintf(stderr, "Abort '%s': %s\n", ctx.node_name().c_str(), message_.c_str());
    std::fflush(nullptr);
    // Exits without running destructors, because other threads are still running.
    if (exits_) std::_Exit(0);
    std::abort();
  }

 private:
  std::string message_;
  bool exits_ = false;
};

OP(Abort) {
  return {
      .doc =
          "Ends the process that runs this node: by SIGABRT or, with `exit_without_error`, with "
          "exit status 0.",
      .attrs = {{"error_msg", ""}, {"exit_without_error", false}},
      .shape = NoOutputs,
      .gradient = NoGradient,
      .stateful = true,
      .acts_outside = true,
      .untestable_alone = "ends the process",
  };
}
KERNEL_ANY_TYPE(Abort, AbortKernel);

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Print and PrintV2: write text to the standard streams of the node's task.
#include <atomic>
#include <cstdio>

#include "absl/strings/match.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/flow/summarize.h"

namespace penstock {
namespace {

// Writes the text with one call, so that lines of several threads do not mix.
void Write(std::FILE* stream, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stream);
  std::fflush(stream);
}

class PrintKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("message", &message_));
    RETURN_IF_ERROR(node.Attr("first_n", &first_n_));
    return node.Attr("summarize", &summarize_);
  }

  Status Compute(KernelContext& ctx) override {
    if (first_n_ < 0 || printed_.fetch_add(1, std::memory_order_relaxed) < first_n_) {
      std::string text = message_;
      for (int i = 1; i < ctx.num_inputs(); ++i) {
        StrAppend(&text, "[", Summarize(ctx.input(i), summarize_), "]");
      }
      Write(stderr, text + "\n");
    }
    ctx.SetOutput(0, ctx.TakeInput(0));
    return OkStatus();
  }

 private:
  std::string message_;
  int64_t first_n_ = -1, summarize_ = 3;
  std::atomic<int64_t> printed_{0};  // number of calls in all steps, for the attribute first_n
};

class PrintV2Kernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    std::string stream;
    RETURN_IF_ERROR(node.Attr("output_stream", &stream));
    RETURN_IF_ERROR(node.Attr("end", &end_));
    if (stream == "stdout") {
      stream_ = stdout;
    } else if (stream == "stderr" || absl::StartsWith(stream, "log(")) {
      stream_ = stderr;
    } else if (absl::StartsWith(stream, "file://")) {
      return Unimplemented("node '", node.name, "': printing to a file (", stream, ")");
    } else {
      return InvalidArgument("node '", node.name, "': no output_stream is called '", stream, "'");
    }
    return OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    if (input.rank() != 0) {
      return InvalidArgument("Input is expected to be scalar, but got ", input.shape().ToString());
    }
    Write(stream_, input.scalar<std::string>() + end_);
    return OkStatus();
  }

 private:
  std::FILE* stream_ = stderr;
  std::string end_;
};

std::vector<Gradient> PassThroughGradient(const GradientScope& g) {
  std::vector<Gradient> dx(g.num_inputs());
  dx[0] = g.raw_dy();
  return dx;
}

Status TextShape(ShapeScope& s) { return s.WithRank(0, 0).status(); }

Status PrintShape(ShapeScope& s) {
  s.set_output(0, s.input(0));
  return OkStatus();
}

OP(Print) {
  return {
      .doc = "Returns the input, and prints `message` and `data` on standard error.",
      .inputs = {{"input", "T"}, {"data", List("U")}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAllTypes}},
      .attrs = {{"U", TypeList{.min_length = 0, .allowed = kAllTypes}},
                {"message", ""},
                {"first_n", -1},
                {"summarize", 3}},
      .shape = PrintShape,
      .gradient = PassThroughGradient,
      .stateful = true,
      .is_view = true,
      .acts_outside = true,
  };
}

OP(PrintV2) {
  return {
      .doc = "Prints a string to the stream or file `output_stream`.",
      .inputs = {{"input", "string"}},
      .attrs = {{"output_stream", "stderr"}, {"end", "\n"}},
      .shape = TextShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{}}}}}},
      .stateful = true,
      .acts_outside = true,
  };
}
KERNEL_ANY_TYPE(Print, PrintKernel);
KERNEL_ANY_TYPE(PrintV2, PrintV2Kernel);
KERNEL_DEF({.op = "Print", .device = "GPU", .host_args = {"data"}, .make = Make<PrintKernel>});
KERNEL_DEF({.op = "PrintV2", .device = "GPU", .host_args = {"input"}, .make = Make<PrintV2Kernel>});

}  // namespace
}  // namespace penstock

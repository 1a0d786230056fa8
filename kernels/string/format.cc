// SPDX-License-Identifier: Apache-2.0
//
// StringFormat: replaces placeholders in a template by tensors, printed like NumPy.
#include <algorithm>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/flow/summarize.h"

namespace penstock {
namespace {

// Prints the first and last `edge` elements of each dimension, and "..." for the elements between
// them; all elements if `edge` is negative.
class Printer {
 public:
  Printer(const Tensor& tensor, int64_t edge)
      : shape_(tensor.shape()),
        flat_(tensor.Reshaped(Shape{tensor.num_elements()})),
        // Limits the edge to the number of elements, so that nothing is printed for the rows of a
        // tensor without elements.
        edge_(edge < 0 ? flat_.num_elements() : std::min(edge, flat_.num_elements())) {}

  std::string Text() {
    if (shape_.rank() == 0 && edge_ == 0) return "...";
    Add(0, 0);
    return std::move(text_);
  }

 private:
  std::string Element(int64_t at) const {
    if (IsComplex(flat_.dtype())) return "?";  // as TensorFlow prints complex numbers
    const std::string text = Summarize(flat_.Slice(at, at + 1).Reshaped(Shape()), 1);
    return flat_.dtype() == DType::kString ? StrCat("\"", text, "\"") : text;
  }

  // Returns the text between elements of a dimension: a space in the innermost dimension, one line
  // break between rows, two between matrices, and so on. Each line is indented to its bracket.
  std::string Separator(int dim) const {
    const int inner = shape_.rank() - 1 - dim;
    return inner == 0 ? " " : StrCat(std::string(inner, '\n'), std::string(dim + 1, ' '));
  }

  void Add(int dim, int64_t at) {
    if (dim == shape_.rank()) {
      text_ += Element(at);
      return;
    }
    int64_t step = 1;
    for (int d = dim + 1; d < shape_.rank(); ++d) step *= shape_.dim(d);
    const int64_t size = shape_.dim(dim);
    text_ += "[";
    for (int64_t i = 0; i < size; ++i) {
      if (i > 0) text_ += Separator(dim);
      if (i == edge_ && size - i > edge_) {
        if (i == 0) text_ += Separator(dim);
        text_ += "...";
        i = size - edge_ - 1;
        continue;
      }
      Add(dim + 1, at + i * step);
    }
    text_ += "]";
  }

  const Shape shape_;
  const Tensor flat_;
  const int64_t edge_;
  std::string text_;
};

class StringFormatKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    std::string whole, placeholder;
    RETURN_IF_ERROR(node.Attr("template", &whole));
    RETURN_IF_ERROR(node.Attr("placeholder", &placeholder));
    RETURN_IF_ERROR(node.Attr("summarize", &summarize_));
    if (placeholder.empty()) return InvalidArgument("placeholder must not be empty");
    parts_ = absl::StrSplit(whole, placeholder);
    if (parts_.size() == node.input_types.size() + 1) return OkStatus();
    return InvalidArgument("num placeholders in template and num inputs must match: ",
                           parts_.size() - 1, " vs. ", node.input_types.size());
  }

  Status Compute(KernelContext& ctx) override {
    std::string text = parts_[0];
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      StrAppend(&text, Printer(ctx.input(i), summarize_).Text(), parts_[i + 1]);
    }
    ctx.SetOutput(0, Tensor::Scalar(text));
    return OkStatus();
  }

 private:
  std::vector<std::string> parts_;
  int64_t summarize_ = 3;
};

}  // namespace

OP(StringFormat) {
  return {
      .doc =
          "Returns `template` with each `placeholder` replaced by the text of a tensor: the "
          "first and last `summarize` elements of each dimension (-1: all).",
      .inputs = {{"inputs", List("T")}},
      .outputs = {{"output", "string"}},
      .attrs = {{"T", TypeList{.min_length = 0}},
                {"template", "%s"},
                {"placeholder", "%s"},
                {"summarize", 3}},
      .shape = ScalarShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2, 3}}, {{}}}}, .attrs = {{"template", "x = %s, y = %s"}}}},
  };
}
KERNEL_ANY_TYPE(StringFormat, StringFormatKernel);

}  // namespace penstock

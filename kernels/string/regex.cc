// SPDX-License-Identifier: Apache-2.0
//
// Ops with regular expressions, in RE2's syntax. The static forms have the expression as an
// attribute, and compile it once.
#include <re2/re2.h>

#include <memory>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"

namespace penstock {
namespace {

StatusOr<std::shared_ptr<const RE2>> Compile(const std::string& pattern) {
  auto regex = std::make_shared<const RE2>(pattern, RE2::Quiet);
  if (regex->ok()) return regex;
  return InvalidArgument("Invalid pattern: ", pattern, ", error: ", regex->error());
}

StatusOr<std::string> Scalar(const Tensor& tensor, const char* name) {
  if (tensor.rank() == 0) return tensor.scalar<std::string>();
  return InvalidArgument(name, " must be scalar, but received ", tensor.shape().ToString());
}

// The base of the kernels. The expression is an attribute of the node if it has one, else an input.
class RegexKernel : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    if (node.attrs.count("pattern") == 0) return OkStatus();
    std::string pattern;
    RETURN_IF_ERROR(node.Attr("pattern", &pattern));
    ASSIGN_OR_RETURN(static_, Compile(pattern));
    return OkStatus();
  }

 protected:
  bool is_static() const { return static_ != nullptr; }
  StatusOr<std::shared_ptr<const RE2>> Pattern(const KernelContext& ctx) const {
    if (is_static()) return static_;
    ASSIGN_OR_RETURN(const std::string pattern, Scalar(ctx.input(1), "Pattern"));
    return Compile(pattern);
  }

 private:
  std::shared_ptr<const RE2> static_;
};

class FullMatchKernel final : public RegexKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto regex, Pattern(ctx));
    const Tensor& input = ctx.input(0);
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, input.shape(), &output));
    for (int64_t i = 0; i < input.num_elements(); ++i) {
      output->mutable_data<bool>()[i] = RE2::FullMatch(input.data<std::string>()[i], *regex);
    }
    return OkStatus();
  }
};

class ReplaceKernel final : public RegexKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("replace_global", &replace_global_));
    if (node.attrs.count("rewrite") > 0) RETURN_IF_ERROR(node.Attr("rewrite", &rewrite_));
    return RegexKernel::Init(node);
  }

  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto regex, Pattern(ctx));
    std::string rewrite = rewrite_;
    if (!is_static()) {
      ASSIGN_OR_RETURN(rewrite, Scalar(ctx.input(2), "Rewrite"));
    }
    const Tensor& input = ctx.input(0);
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, input.shape(), &output));
    for (int64_t i = 0; i < input.num_elements(); ++i) {
      std::string* const text = output->mutable_data<std::string>() + i;
      *text = input.data<std::string>()[i];
      if (replace_global_) {
        RE2::GlobalReplace(text, *regex, rewrite);
      } else {
        RE2::Replace(text, *regex, rewrite);
      }
    }
    return OkStatus();
  }

 private:
  bool replace_global_ = true;
  std::string rewrite_;
};

OP(StaticRegexFullMatch) {
  return {
      .doc = "Returns which strings the pattern matches completely.",
      .inputs = {{"input", "string"}},
      .outputs = {{"output", "bool"}},
      .attrs = {{"pattern", Strings{}}},
      .shape = SameShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{3}}}}, .attrs = {{"pattern", "[ab]"}}}},
  };
}

OP(RegexFullMatch) {
  return {
      .doc = "Returns which strings the pattern matches completely.",
      .inputs = {{"input", "string"}, {"pattern", "string"}},
      .outputs = {{"output", "bool"}},
      .shape = SameShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{3}}}, {{}}}}},
  };
}

OP(StaticRegexReplace) {
  return {
      .doc =
          "Replaces the matches of a pattern in strings by `rewrite`, in which \\1 stands "
          "for the first group. Strings stay unchanged if the rewrite names a group that "
          "the pattern does not have.",
      .inputs = {{"input", "string"}},
      .outputs = {{"output", "string"}},
      .attrs = {{"pattern", Strings{}}, {"rewrite", Strings{}}, {"replace_global", true}},
      .shape = SameShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{3}}}}, .attrs = {{"pattern", "(b)"}, {"rewrite", "<\\1>"}}}},
  };
}

OP(RegexReplace) {
  return {
      .doc =
          "Replaces the matches of a pattern in strings by `rewrite`, in which \\1 stands "
          "for the first group.",
      .inputs = {{"input", "string"}, {"pattern", "string"}, {"rewrite", "string"}},
      .outputs = {{"output", "string"}},
      .attrs = {{"replace_global", true}},
      .shape = SameShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{3}}}, {{}}, {{}}}}},
  };
}
KERNEL_ANY_TYPE(StaticRegexFullMatch, FullMatchKernel);
KERNEL_ANY_TYPE(RegexFullMatch, FullMatchKernel);
KERNEL_ANY_TYPE(StaticRegexReplace, ReplaceKernel);
KERNEL_ANY_TYPE(RegexReplace, ReplaceKernel);

}  // namespace
}  // namespace penstock

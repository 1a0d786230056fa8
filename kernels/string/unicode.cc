// SPDX-License-Identifier: Apache-2.0
//
// UnicodeDecode, UnicodeDecodeWithOffsets, UnicodeEncode, UnicodeTranscode, UnicodeScript.
#include <unicode/uscript.h>

#include <limits>
#include <string>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/string/strings.h"
#include "kernels/string/unicode_text.h"

namespace penstock {
namespace {

// The base of kernels that decode their input.
class DecodingKernel : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("input_encoding", &encoding_));
    RETURN_IF_ERROR(errors_.Init(node));
    return UnicodeDecoder::Make(encoding_, errors_).status();
  }

 protected:
  explicit DecodingKernel(bool strict_about_controls) {
    errors_.strict_about_controls = strict_about_controls;
  }
  StatusOr<UnicodeDecoder> Decoder() const { return UnicodeDecoder::Make(encoding_, errors_); }

 private:
  std::string encoding_;
  UnicodeErrors errors_;
};

// If the op has a third output, the kernel writes the offsets to it.
template <class Splits>
class UnicodeDecodeKernel final : public DecodingKernel {
 public:
  UnicodeDecodeKernel() : DecodingKernel(false) {}
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(UnicodeDecoder decoder, Decoder());
    const auto texts = ctx.input(0).flat<std::string>();
    std::vector<int32_t> points;
    std::vector<int64_t> offsets;
    Tensor* splits;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape({ctx.input(0).num_elements() + 1}), &splits));
    Splits* split = splits->mutable_data<Splits>();
    *split++ = 0;
    for (const std::string& text : texts) {
      RETURN_IF_ERROR(decoder.Decode(text, [&](UChar32 c, int64_t offset) {
        points.push_back(c);
        offsets.push_back(offset);
      }));
      if (points.size() > static_cast<size_t>(std::numeric_limits<Splits>::max())) {
        return InvalidArgument("there are more code points than Tsplits can count");
      }
      *split++ = static_cast<Splits>(points.size());
    }
    ctx.SetOutput(1, Tensor::Vector(points));
    if (ctx.num_outputs() > 2) ctx.SetOutput(2, Tensor::Vector(offsets));
    return OkStatus();
  }
};

class UnicodeTranscodeKernel final : public DecodingKernel {
 public:
  UnicodeTranscodeKernel() : DecodingKernel(true) {}
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(ReadOutputEncoding(node, &output_));
    return DecodingKernel::Init(node);
  }
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(UnicodeDecoder decoder, Decoder());
    return MapStrings<std::string>(ctx, [&](const std::string& text, std::string* out) {
      return decoder.Decode(text, [&](UChar32 c, int64_t) { AppendCodePoint(output_, c, out); });
    });
  }

 private:
  UnicodeEncoding output_ = UnicodeEncoding::kUtf8;
};

template <class Splits>
class UnicodeEncodeKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(ReadOutputEncoding(node, &output_));
    return errors_.Init(node);
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor &points = ctx.input(0), &splits = ctx.input(1);
    RETURN_IF_ERROR(CheckSplits(points, splits));
    const int64_t rows = splits.dim(0) - 1;
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape({rows}), &output));
    const Splits* split = splits.data<Splits>();
    for (int64_t row = 0; row < rows; ++row) {
      std::string& text = output->mutable_data<std::string>()[row];
      for (int64_t i = split[row]; i < split[row + 1]; ++i) {
        const int32_t c = points.data<int32_t>()[i];
        const bool valid = UnicodeErrors::IsCodePoint(c);
        if (!valid && errors_.strict) {
          return InvalidArgument(
              "Code point is out of range for Unicode, or is a surrogate: "
              "input_values[",
              i, "] is ", c);
        }
        if (!valid && errors_.ignore) continue;
        AppendCodePoint(output_, valid ? c : errors_.replacement, &text);
      }
    }
    return OkStatus();
  }

 private:
  static Status CheckSplits(const Tensor& points, const Tensor& splits) {
    if (points.rank() != 1 || splits.rank() != 1 || splits.dim(0) == 0) {
      return InvalidArgument(
          "input_values must be a vector and input_splits one with elements, "
          "have shapes ",
          points.shape().ToString(), " and ", splits.shape().ToString());
    }
    const auto all = splits.flat<Splits>();
    if (all.front() != 0) {
      return InvalidArgument("First value in input_splits must be zero, is ", all.front());
    }
    if (all.back() != points.dim(0)) {
      return InvalidArgument("Last value in input_splits must be ", points.dim(0),
                             ", the length of input_values, is ", all.back());
    }
    for (size_t i = 1; i < all.size(); ++i) {
      if (all[i] >= all[i - 1]) continue;
      return InvalidArgument("input_splits must not fall, [", i, "] is ", all[i], " after ",
                             all[i - 1]);
    }
    return OkStatus();
  }

  UnicodeEncoding output_ = UnicodeEncoding::kUtf8;
  UnicodeErrors errors_;
};

class UnicodeScriptKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    const Tensor& points = ctx.input(0);
    Tensor* scripts;
    RETURN_IF_ERROR(ctx.Allocate(0, points.shape(), &scripts));
    for (int64_t i = 0; i < points.num_elements(); ++i) {
      UErrorCode error = U_ZERO_ERROR;
      const UScriptCode script = uscript_getScript(points.data<int32_t>()[i], &error);
      scripts->mutable_data<int32_t>()[i] = U_SUCCESS(error) ? script : USCRIPT_INVALID_CODE;
    }
    return OkStatus();
  }
};

Status DecodeShape(ShapeScope& s) {
  int64_t splits = s.input(0).known_rank() ? 1 : PartialShape::kUnknown;
  if (s.input(0).known_rank()) {
    for (const int64_t dim : s.input(0).dims()) splits = MultiplyDims(splits, dim);
    splits = AddDims(splits, 1);
  }
  s.set_output(0, PartialShape({splits}));
  for (int i = 1; i < s.num_outputs(); ++i) s.set_output(i, PartialShape({PartialShape::kUnknown}));
  return OkStatus();
}

Status EncodeShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(0, 1).status());
  ASSIGN_OR_RETURN(const PartialShape splits, s.WithRank(1, 1));
  const int64_t count = splits.known_rank() ? splits.dim(0) : PartialShape::kUnknown;
  if (count == 0) return InvalidArgument("input_splits must have elements");
  s.set_output(0, PartialShape({count < 0 ? PartialShape::kUnknown : count - 1}));
  return OkStatus();
}

std::vector<AttrDef> DecodingAttrs() {
  return {{"input_encoding", Strings{}},
          {"errors", OneOf{{"strict", "replace", "ignore"}}, "replace"},
          {"replacement_char", 65533},
          {"replace_control_characters", false}};
}
const AttrDef kOutputEncoding = {"output_encoding", OneOf{{"UTF-8", "UTF-16-BE", "UTF-32-BE"}}};

OpDef DecodeOp(const char* doc) {
  return {
      .doc = doc,
      .inputs = {{"input", "string"}},
      .outputs = {{"row_splits", "Tsplits"}, {"char_values", "int32"}},
      .types = {{"Tsplits", kIndex, DType::kInt64}},
      .attrs = DecodingAttrs(),
      .shape = DecodeShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{3}}}}, .attrs = {{"input_encoding", "UTF-8"}}}},
  };
}

}  // namespace

OP(UnicodeDecode) {
  return DecodeOp(
      "Decodes strings of an encoding that ICU knows into code points, one row of a "
      "ragged tensor for each string. `errors` chooses how malformed bytes are handled: "
      "replaced by replacement_char, ignored, or refused.");
}
KERNEL_BY("Tsplits", UnicodeDecode, UnicodeDecodeKernel, int32_t, int64_t);

OP(UnicodeDecodeWithOffsets) {
  OpDef op = DecodeOp(
      "The same as UnicodeDecode, and also returns the byte offset of each code point "
      "in its string.");
  op.outputs.push_back({"char_to_byte_starts", "int64"});
  return op;
}
KERNEL_BY("Tsplits", UnicodeDecodeWithOffsets, UnicodeDecodeKernel, int32_t, int64_t);

OP(UnicodeTranscode) {
  OpDef op = {
      .doc =
          "Converts strings from one encoding to another. `errors` chooses how malformed "
          "bytes are handled.",
      .inputs = {{"input", "string"}},
      .outputs = {{"output", "string"}},
      .attrs = DecodingAttrs(),
      .shape = SameShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2, 3}}}},
                    .attrs = {{"input_encoding", "UTF-8"}, {"output_encoding", "UTF-16-BE"}}}},
  };
  op.attrs.insert(op.attrs.begin() + 1, kOutputEncoding);
  return op;
}
KERNEL_ANY_TYPE(UnicodeTranscode, UnicodeTranscodeKernel);

OP(UnicodeEncode) {
  return {
      .doc =
          "Encodes each row of a ragged tensor of code points as a string. `errors` chooses "
          "how invalid code points are handled.",
      .inputs = {{"input_values", "int32"}, {"input_splits", "Tsplits"}},
      .outputs = {{"output", "string"}},
      .types = {{"Tsplits", kIndex, DType::kInt64}},
      .attrs = {{"errors", OneOf{{"ignore", "replace", "strict"}}, "replace"},
                kOutputEncoding,
                {"replacement_char", 65533}},
      .shape = EncodeShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{3}, {97, 8364, 128512}}}, {{{3}, {0, 2, 3}}}},
                    .attrs = {{"output_encoding", "UTF-8"}}}},
  };
}
KERNEL_BY("Tsplits", UnicodeEncode, UnicodeEncodeKernel, int32_t, int64_t);

OP(UnicodeScript) {
  return {
      .doc = "Returns ICU's number of the script of each code point; -1 for an invalid one.",
      .inputs = {{"input", "int32"}},
      .outputs = {{"output", "int32"}},
      .shape = SameShape,
      .gradient = NoGradient,
  };
}
KERNEL_ANY_TYPE(UnicodeScript, UnicodeScriptKernel);

}  // namespace penstock

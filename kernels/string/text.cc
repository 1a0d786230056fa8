// SPDX-License-Identifier: Apache-2.0
//
// StringLength, Substr, StringStrip, StringLower, StringUpper: the length, substrings and case of
// strings.
#include <unicode/locid.h>
#include <unicode/unistr.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/engine/broadcast_index.h"
#include "kernels/string/strings.h"

namespace penstock {
namespace {

enum class Unit { kByte, kUtf8Char };

Status ReadUnit(const KernelInit& node, Unit* unit) {
  std::string name;
  RETURN_IF_ERROR(node.Attr("unit", &name));
  *unit = name == "BYTE" ? Unit::kByte : Unit::kUtf8Char;
  return OkStatus();
}

// Returns true for every byte except the continuation bytes 10xxxxxx.
bool BeginsCharacter(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

int64_t Length(string_view text, Unit unit) {
  if (unit == Unit::kByte) return static_cast<int64_t>(text.size());
  return std::count_if(text.begin(), text.end(), BeginsCharacter);
}

// Returns the index of the byte at which character `n` begins, or the end if there are fewer
// characters.
size_t ByteOf(string_view text, int64_t n, Unit unit) {
  if (unit == Unit::kByte) return static_cast<size_t>(n);
  for (size_t i = 0; i < text.size(); ++i) {
    if (BeginsCharacter(text[i]) && n-- == 0) return i;
  }
  return text.size();
}

class StringLengthKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return ReadUnit(node, &unit_); }
  Status Compute(KernelContext& ctx) override {
    return MapStrings<int32_t>(ctx, [this](const std::string& text, int32_t* length) {
      *length = static_cast<int32_t>(Length(text, unit_));
      return OkStatus();
    });
  }

 private:
  Unit unit_ = Unit::kByte;
};

// The kernel of Substr. Positions and lengths broadcast against the strings. Negative positions
// count from the end.
class SubstrKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return ReadUnit(node, &unit_); }

  Status Compute(KernelContext& ctx) override {
    const Tensor &input = ctx.input(0), &positions = ctx.input(1), &lengths = ctx.input(2);
    if (!(positions.shape() == lengths.shape())) {
      return InvalidArgument("pos and len should have the same shape, got: ",
                             positions.shape().ToString(), " vs. ", lengths.shape().ToString());
    }
    ASSIGN_OR_RETURN(const PartialShape both, Broadcast(input.shape(), positions.shape()));
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(both.dims()));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    for (int64_t i = 0; i < shape.num_elements(); ++i) {
      const int64_t at = BroadcastIndex(i, shape.dims(), input.shape().dims());
      const int64_t number = BroadcastIndex(i, shape.dims(), positions.shape().dims());
      RETURN_IF_ERROR(Cut(input.data<std::string>()[at], Int(positions, number),
                          Int(lengths, number), i, &output->mutable_data<std::string>()[i]));
    }
    return OkStatus();
  }

 private:
  static int64_t Int(const Tensor& ints, int64_t i) {
    return ints.dtype() == DType::kInt32 ? ints.data<int32_t>()[i] : ints.data<int64_t>()[i];
  }

  Status Cut(const std::string& text, int64_t position, int64_t length, int64_t i,
             std::string* part) const {
    const int64_t size = Length(text, unit_);
    if (position < -size || position > size) {
      return InvalidArgument("pos ", position, " out of range for string of length ", size,
                             " at index ", i);
    }
    if (position < 0) position += size;
    // A negative length takes everything up to the end.
    const int64_t rest = size - position;
    const int64_t count = length < 0 ? rest : std::min(length, rest);
    const size_t begin = ByteOf(text, position, unit_);
    *part = text.substr(begin, ByteOf(text, position + count, unit_) - begin);
    return OkStatus();
  }

  Unit unit_ = Unit::kByte;
};

class StringStripKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    return MapStrings<std::string>(ctx, [](const std::string& text, std::string* stripped) {
      *stripped = std::string(absl::StripAsciiWhitespace(text));
      return OkStatus();
    });
  }
};

// Changes the case of UTF-8 text, independently of the machine's language. Malformed bytes become
// U+FFFD.
std::string Utf8Case(const std::string& text, bool upper) {
  icu::UnicodeString characters = icu::UnicodeString::fromUTF8(text);
  if (upper) {
    characters.toUpper(icu::Locale::getRoot());
  } else {
    characters.toLower(icu::Locale::getRoot());
  }
  std::string other;
  characters.toUTF8String(other);
  return other;
}

template <bool kUpper>
class CaseKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    std::string encoding;
    RETURN_IF_ERROR(node.Attr("encoding", &encoding));
    utf8_ = encoding == "utf-8";
    if (utf8_ || encoding.empty()) return OkStatus();
    return InvalidArgument("only utf-8 or '' (no encoding) is supported, received ", encoding);
  }
  Status Compute(KernelContext& ctx) override {
    return MapStrings<std::string>(ctx, [this](const std::string& text, std::string* other) {
      if (text.size() > kUtf8BytesMax && utf8_) {
        return InvalidArgument("input has a string of ", text.size(), " bytes; with encoding ",
                               "utf-8 at most ", kUtf8BytesMax, " are allowed");
      }
      *other = utf8_    ? Utf8Case(text, kUpper)
               : kUpper ? absl::AsciiStrToUpper(text)
                        : absl::AsciiStrToLower(text);
      return OkStatus();
    });
  }

 private:
  static constexpr size_t kUtf8BytesMax = size_t{1} << 29;  // ICU counts characters in an int32
  bool utf8_ = false;
};

Status SubstrShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape numbers, s.input(1).Merge(s.input(2)));
  ASSIGN_OR_RETURN(PartialShape shape, Broadcast(s.input(0), numbers));
  s.set_output(0, std::move(shape));
  return OkStatus();
}

OpDef CaseOp(const char* doc) {
  return {
      .doc = doc,
      .inputs = {{"input", "string"}},
      .outputs = {{"output", "string"}},
      .attrs = {{"encoding", ""}},
      .shape = SameShape,
      .gradient = NoGradient,
  };
}

}  // namespace

OP(StringLength) {
  return {
      .doc = "Returns the length of each string, in bytes or in UTF-8 characters.",
      .inputs = {{"input", "string"}},
      .outputs = {{"output", "int32"}},
      .attrs = {{"unit", OneOf{{"BYTE", "UTF8_CHAR"}}, "BYTE"}},
      .shape = SameShape,
      .gradient = NoGradient,
  };
}
KERNEL_ANY_TYPE(StringLength, StringLengthKernel);

OP(Substr) {
  return {
      .doc =
          "Returns a substring of each string: `len` bytes, or UTF-8 characters, from `pos` "
          "on; fewer if the string ends earlier.",
      .inputs = {{"input", "string"}, {"pos", "T"}, {"len", "T"}},
      .outputs = {{"output", "string"}},
      .types = {{"T", kIndex}},
      .attrs = {{"unit", OneOf{{"BYTE", "UTF8_CHAR"}}, "BYTE"}},
      .shape = SubstrShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2, 3}}}, {{{3}, {0, -1, 1}}}, {{{3}}}}}},
  };
}
KERNEL_ANY_TYPE(Substr, SubstrKernel);

OP(StringStrip) {
  return {
      .doc = "Removes white space from both ends of each string.",
      .inputs = {{"input", "string"}},
      .outputs = {{"output", "string"}},
      .shape = SameShape,
      .gradient = NoGradient,
  };
}
KERNEL_ANY_TYPE(StringStrip, StringStripKernel);

OP(StringLower) {
  return CaseOp(
      "Converts each string to lower case: its ASCII letters or, if encoding is utf-8, all "
      "letters.");
}
OP(StringUpper) {
  return CaseOp(
      "Converts each string to upper case: its ASCII letters or, if encoding is utf-8, all "
      "letters.");
}
KERNEL_ANY_TYPE(StringLower, CaseKernel<false>);
KERNEL_ANY_TYPE(StringUpper, CaseKernel<true>);

}  // namespace penstock

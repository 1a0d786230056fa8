// SPDX-License-Identifier: Apache-2.0
#include "tools/penstock/spell_attr.h"

#include <cstdint>
#include <limits>
#include <variant>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"

namespace penstock {

std::string SpellTypes(const DTypes& allowed) {
  if (allowed.empty()) return "type";
  return StrCat(
      "{", absl::StrJoin(allowed, ", ", [](std::string* out, DType t) { *out += Name(t); }), "}");
}

std::string SpellText(const std::string& text) { return StrCat("'", absl::CHexEscape(text), "'"); }

namespace {

std::string AtLeast(int64_t min, int64_t none) { return min > none ? StrCat(" >= ", min) : ""; }

struct KindSpeller {
  std::string operator()(const Ints& k) const {
    return StrCat("int", AtLeast(k.min, std::numeric_limits<int64_t>::min()));
  }
  std::string operator()(const Floats&) const { return "float"; }
  std::string operator()(const Bools&) const { return "bool"; }
  std::string operator()(const Strings&) const { return "string"; }
  std::string operator()(const OneOf& k) const {
    return StrCat("{",
                  absl::StrJoin(k.allowed, ", ",
                                [](std::string* out, const auto& s) { *out += SpellText(s); }),
                  "}");
  }
  std::string operator()(const Shapes&) const { return "shape"; }
  std::string operator()(const Tensors&) const { return "tensor"; }
  std::string operator()(const Functions&) const { return "func"; }
  std::string operator()(const IntList& k) const {
    return StrCat("list(int)", AtLeast(k.min_length, 0));
  }
  std::string operator()(const FloatList&) const { return "list(float)"; }
  std::string operator()(const BoolList&) const { return "list(bool)"; }
  std::string operator()(const StringList&) const { return "list(string)"; }
  std::string operator()(const TypeList& k) const {
    // TensorFlow's default minimum is 1, so spell 0 too.
    return StrCat("list(", SpellTypes(k.allowed), ") >= ", k.min_length);
  }
  std::string operator()(const ShapeList&) const { return "list(shape)"; }
  std::string operator()(const TensorList&) const { return "list(tensor)"; }
  std::string operator()(const FunctionList&) const { return "list(func)"; }
};

}  // namespace

std::string SpellKind(const AttrDef::Kind& kind) { return std::visit(KindSpeller(), kind); }

}  // namespace penstock

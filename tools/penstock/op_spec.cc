// SPDX-License-Identifier: Apache-2.0
#include "tools/penstock/op_spec.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"

namespace penstock {
namespace {

std::string Spell(const ArgDef& arg) {
  std::string type = arg.type.type;
  if (!arg.type.count.empty()) type = StrCat(arg.type.count, " * ", type);
  return StrCat(arg.name, ": ", arg.type.ref ? StrCat("Ref(", type, ")") : type);
}

std::string SpellTypes(const DTypes& allowed) {
  if (allowed.empty()) return "type";
  return StrCat(
      "{", absl::StrJoin(allowed, ", ", [](std::string* out, DType t) { *out += Name(t); }), "}");
}

std::string AtLeast(int64_t min, int64_t none) { return min > none ? StrCat(" >= ", min) : ""; }

std::string Quote(const std::string& text) { return StrCat("'", absl::CHexEscape(text), "'"); }

struct SpellKind {
  std::string operator()(const Ints& k) const {
    return StrCat("int", AtLeast(k.min, std::numeric_limits<int64_t>::min()));
  }
  std::string operator()(const Floats&) const { return "float"; }
  std::string operator()(const Bools&) const { return "bool"; }
  std::string operator()(const Strings&) const { return "string"; }
  std::string operator()(const OneOf& k) const {
    return StrCat(
        "{",
        absl::StrJoin(k.allowed, ", ", [](std::string* out, const auto& s) { *out += Quote(s); }),
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
    // TensorFlow takes 1 for what is not said.
    return StrCat("list(", SpellTypes(k.allowed), ") >= ", k.min_length);
  }
  std::string operator()(const ShapeList&) const { return "list(shape)"; }
  std::string operator()(const TensorList&) const { return "list(tensor)"; }
  std::string operator()(const FunctionList&) const { return "list(func)"; }
};

// Spells a default; "" if there is no spelling.
struct SpellValue {
  std::string operator()(int64_t v) const { return StrCat(v); }
  std::string operator()(float v) const { return StrCat(v); }
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(const std::string& v) const { return Quote(v); }
  std::string operator()(const EdgeType& v) const { return StrCat("DT_", Upper(Name(v.dtype))); }
  std::string operator()(const PartialShape& v) const {
    if (!v.known_rank()) return "{ unknown_rank: true }";
    std::string text = "{";
    for (int i = 0; i < v.rank(); ++i) StrAppend(&text, " dim { size: ", v.dim(i), " }");
    return text + " }";
  }
  std::string operator()(const EmptyList&) const { return "[]"; }
  template <class T>
  std::string operator()(const std::vector<T>& list) const {
    std::vector<std::string> items;
    for (const T& item : list) items.push_back((*this)(item));
    return StrCat("[", absl::StrJoin(items, ", "), "]");
  }
  std::string operator()(const std::vector<Tensor>& list) const { return list.empty() ? "[]" : ""; }
  std::string operator()(const std::vector<FunctionName>& list) const {
    return list.empty() ? "[]" : "";
  }
  std::string operator()(const Tensor&) const { return ""; }
  std::string operator()(const FunctionName&) const { return ""; }
  std::string operator()(std::monostate) const { return ""; }

  static std::string Upper(std::string text) {
    for (char& c : text) c = absl::ascii_toupper(c);
    return text;
  }
};

std::string Spell(const TypeAttrDef& type) {
  const std::string text = StrCat(type.name, ": ", SpellTypes(type.allowed));
  if (type.default_type == DType::kInvalid) return text;
  return StrCat(text, " = ", SpellValue()(EdgeType{type.default_type}));
}

// Whether the attribute says how many tensors an argument has.
bool Counts(const OpDef& op, const std::string& attr) {
  const auto has = [&](const std::vector<ArgDef>& args) {
    return std::any_of(args.begin(), args.end(),
                       [&](const ArgDef& arg) { return arg.type.count == attr; });
  };
  return has(op.inputs) || has(op.outputs);
}

std::string Spell(const OpDef& op, const AttrDef& attr) {
  std::string text = StrCat(attr.name, ": ", std::visit(SpellKind(), attr.kind));
  if (text.ends_with(": int") && Counts(op, attr.name)) text += " >= 0";  // as above
  const std::string value = std::visit(SpellValue(), attr.default_value.value());
  return value.empty() ? text : StrCat(text, " = ", value);
}

template <class Parts>
nlohmann::json SpellAll(const Parts& parts) {
  auto list = nlohmann::json::array();
  for (const auto& part : parts) list.push_back(Spell(part));
  return list;
}

}  // namespace

nlohmann::json OpSpec(const OpDef& op) {
  nlohmann::json attrs = SpellAll(op.types);
  for (const AttrDef& attr : op.attrs) attrs.push_back(Spell(op, attr));
  return {{"name", op.name},
          {"doc", op.doc},
          {"stateful", op.stateful},
          {"gradient", op.gradient != nullptr},
          {"inputs", SpellAll(op.inputs)},
          {"outputs", SpellAll(op.outputs)},
          {"attrs", attrs}};
}

}  // namespace penstock

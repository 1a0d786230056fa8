// SPDX-License-Identifier: Apache-2.0
#include "tools/penstock/op_spec.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "tools/penstock/spell_attr.h"

namespace penstock {
namespace {

std::string Spell(const ArgDef& arg) {
  std::string type = arg.type.type;
  if (!arg.type.count.empty()) type = StrCat(arg.type.count, " * ", type);
  return StrCat(arg.name, ": ", arg.type.ref ? StrCat("Ref(", type, ")") : type);
}

// Spells a default value as TensorFlow does; returns "" if TensorFlow's spelling has no such value.
struct SpellValue {
  std::string operator()(int64_t v) const { return StrCat(v); }
  std::string operator()(float v) const { return StrCat(v); }
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(const std::string& v) const { return SpellText(v); }
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

// Returns whether the attribute is the number of tensors of an argument.
bool Counts(const OpDef& op, const std::string& attr) {
  const auto has = [&](const std::vector<ArgDef>& args) {
    return std::any_of(args.begin(), args.end(),
                       [&](const ArgDef& arg) { return arg.type.count == attr; });
  };
  return has(op.inputs) || has(op.outputs);
}

std::string Spell(const OpDef& op, const AttrDef& attr) {
  std::string text = StrCat(attr.name, ": ", SpellKind(attr.kind));
  // TensorFlow's default minimum for a number of tensors is 1.
  if (text.ends_with(": int") && Counts(op, attr.name)) text += " >= 0";
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

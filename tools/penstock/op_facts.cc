// SPDX-License-Identifier: Apache-2.0
#include "tools/penstock/op_facts.h"

#include "absl/strings/str_join.h"
#include "tools/penstock/spell_attr.h"

namespace penstock {
namespace {

std::string Spell(const ArgType& type) {
  std::string text = type.ref ? StrCat("Ref(", type.type, ")") : type.type;
  if (type.list) text = StrCat("list of ", text);
  return type.count.empty() ? text : StrCat(type.count, " * ", text);
}

std::vector<OpFact> ArgFacts(const std::vector<ArgDef>& args) {
  std::vector<OpFact> facts;
  for (const ArgDef& arg : args) facts.push_back({arg.name, Spell(arg.type), arg.doc});
  return facts;
}

OpFact TypeFact(const TypeAttrDef& type) {
  std::vector<std::string> names;
  for (DType dtype : type.allowed) names.push_back(Name(dtype));
  if (names.empty()) names = {"any type"};
  const std::string preset =
      type.default_type == DType::kInvalid ? "" : StrCat(" = ", Name(type.default_type));
  return {type.name, StrCat("type", preset, ": ", absl::StrJoin(names, " ")), ""};
}

OpFact AttrFact(const AttrDef& attr) {
  const std::string kind = SpellKind(attr.kind);
  return {attr.name,
          attr.required() ? StrCat(kind, ", required")
                          : StrCat(kind, " = ", attr.default_value.ToString()),
          ""};
}

}  // namespace

std::map<std::string, std::set<std::string>> KernelTypes(const Registry& registry,
                                                         const OpDef& op) {
  std::map<std::string, std::set<std::string>> types;
  for (const KernelDef* kernel : registry.kernels(op.name)) {
    std::vector<std::string> names;
    for (const auto& [attr, dtype] : kernel->types) names.push_back(Name(dtype));
    types[kernel->device].insert(names.empty() ? "any" : absl::StrJoin(names, "/"));
  }
  return types;
}

OpFacts FactsOf(const Registry& registry, const OpDef& op) {
  OpFacts facts = {.inputs = ArgFacts(op.inputs),
                   .outputs = ArgFacts(op.outputs),
                   .attributes = {},
                   .kernels = KernelTypes(registry, op),
                   .gradient = op.gradient != nullptr};
  for (const TypeAttrDef& type : op.types) facts.attributes.push_back(TypeFact(type));
  for (const AttrDef& attr : op.attrs) facts.attributes.push_back(AttrFact(attr));
  return facts;
}

}  // namespace penstock

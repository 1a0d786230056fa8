// SPDX-License-Identifier: Apache-2.0
#include "client/ops/op_signature.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "core/base/check.h"

namespace penstock::client {

namespace {

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};

// Returns `name`, changed if it is a keyword or another name that C++ does not allow here.
std::string Identifier(const std::string& name) {
  static constexpr std::array<std::string_view, 12> kTaken = {
      "and", "bool", "default",  "delete", "float",  "int",
      "new", "not",  "operator", "or",     "switch", "template"};
  for (const std::string_view taken : kTaken) {
    if (name == taken) return name + "_";
  }
  return name;
}

// Returns the C++ type of a field for an attribute.
std::string TypeOf(const AttrDef::Kind& kind) {
  return std::visit(Overloaded{
                        [](const Ints&) { return "int64_t"; },
                        [](const Floats&) { return "float"; },
                        [](const Bools&) { return "bool"; },
                        [](const Strings&) { return "std::string"; },
                        [](const OneOf&) { return "std::string"; },
                        [](const Shapes&) { return "PartialShape"; },
                        [](const Tensors&) { return "Tensor"; },
                        [](const Functions&) { return "FunctionName"; },
                        [](const IntList&) { return "std::vector<int64_t>"; },
                        [](const FloatList&) { return "std::vector<float>"; },
                        [](const BoolList&) { return "std::vector<bool>"; },
                        [](const StringList&) { return "std::vector<std::string>"; },
                        [](const TypeList&) { return "std::vector<DType>"; },
                        [](const ShapeList&) { return "std::vector<PartialShape>"; },
                        [](const TensorList&) { return "std::vector<Tensor>"; },
                        [](const FunctionList&) { return "std::vector<FunctionName>"; },
                    },
                    kind);
}

// Returns the C++ type of an argument for a field type.
std::string ArgumentType(const std::string& type) {
  const bool by_value = type == "int64_t" || type == "float" || type == "bool" || type == "DType";
  return by_value ? type : StrCat("const ", type, "&");
}

std::string Literal(bool v) { return v ? "true" : "false"; }
std::string Literal(int64_t v) {
  return v == INT64_MIN ? "std::numeric_limits<int64_t>::min()" : StrCat(v);
}
std::string Literal(float v) {
  if (std::isnan(v)) return "std::numeric_limits<float>::quiet_NaN()";
  if (std::isinf(v)) {
    return StrCat(v < 0 ? "-" : "", "std::numeric_limits<float>::infinity()");
  }
  std::array<char, 32> text;
  snprintf(text.data(), text.size(), "%.9g", v);
  std::string literal = text.data();
  if (literal.find_first_of(".e") == std::string::npos) literal += ".0";
  return literal + "f";
}
std::string Literal(const std::string& v) { return StrCat("\"", absl::CEscape(v), "\""); }
std::string Literal(EdgeType v) {
  std::string name = Name(v.dtype);
  name[0] = absl::ascii_toupper(name[0]);
  return "DType::k" + name;
}
std::string Literal(const PartialShape& v) {
  if (!v.known_rank()) return "{}";
  if (v.rank() == 0) return "PartialShape::Scalar()";
  return StrCat("PartialShape({", absl::StrJoin(v.dims(), ", "), "})");
}

// Whether values of T can be written as a C++ literal. If not, the option's field is empty by
// default, and then the op's own default applies.
template <class T>
inline constexpr bool kHasLiteral = requires(const T& v) {
  Literal(v);
};

std::string DefaultOf(const AttrValue& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (kHasLiteral<T>) {
          return Literal(v);
        } else if constexpr (requires { v.begin(); }) {
          using E = typename T::value_type;
          std::vector<std::string> elements;
          if constexpr (kHasLiteral<E>) {
            for (const E& element : v) elements.push_back(Literal(element));
          }
          return StrCat("{", absl::StrJoin(elements, ", "), "}");
        } else {
          return "{}";
        }
      },
      value.value());
}

// Returns the expression that passes an option's value to the op.
std::string ValueOf(const AttrDef& attr, const std::string& field) {
  const std::string value = "options." + field;
  if (std::holds_alternative<Tensors>(attr.kind)) {
    return StrCat(value, ".valid() ? AttrValue(", value, ") : AttrValue()");
  }
  if (std::holds_alternative<Functions>(attr.kind)) {
    return StrCat(value, ".name.empty() ? AttrValue() : AttrValue(", value, ")");
  }
  const bool list_without_literal = std::holds_alternative<TensorList>(attr.kind) ||
                                    std::holds_alternative<FunctionList>(attr.kind);
  if (list_without_literal) {
    return StrCat(value, ".empty() ? AttrValue() : AttrValue(", value, ")");
  }
  return value;
}

// Returns true if an input always has at least one tensor.
bool NeverEmpty(const ArgDef& arg, const OpDef& op) {
  if (!arg.type.list && arg.type.count.empty()) return true;
  for (const AttrDef& attr : op.attrs) {
    if (attr.name == arg.type.count) return std::get<Ints>(attr.kind).min >= 1;
    if (arg.type.list && attr.name == arg.type.type) {
      return std::get<TypeList>(attr.kind).min_length >= 1;
    }
  }
  return false;
}

// Returns whether constants of the input's type can be written in C++.
bool MayBeNumbers(const ArgDef& arg) {
  const bool list = arg.type.list || !arg.type.count.empty();
  return !list && !arg.type.ref && arg.type.type != "resource" && arg.type.type != "variant";
}

// Returns the arguments of the TypedInput constructor that describe the input's type.
std::string TypeOfInput(const ArgDef& arg, const OpDef& op) {
  const DType fixed = DTypeFromName(arg.type.type);
  if (fixed != DType::kInvalid) return StrCat("\"\", ", Literal(EdgeType{fixed}));
  for (const TypeAttrDef& type : op.types) {
    if (type.name != arg.type.type || type.default_type == DType::kInvalid) continue;
    return StrCat("\"", type.name, "\", ", Literal(EdgeType{type.default_type}));
  }
  return StrCat("\"", arg.type.type, "\"");
}

}  // namespace

OpSignature::OpSignature(const OpDef& op) : function(op.name) {
  AddInputs(op);
  AddTypes(op);
  AddAttributes(op);
  AddResults(op);
  needs_graph = std::none_of(op.inputs.begin(), op.inputs.end(),
                             [&op](const ArgDef& arg) { return NeverEmpty(arg, op); });
  options_type = options.empty() ? "NodeOptions" : function + "Options";
  for (const Option& option : options) {
    CHECK(option.name != "name", op.name, ": an option must not be called as the node's name is");
  }
}

void OpSignature::AddInputs(const OpDef& op) {
  // If a function has only one input, it cannot be a number, because a number does not name the
  // graph.
  has_operands =
      op.inputs.size() > 1 && std::any_of(op.inputs.begin(), op.inputs.end(), MayBeNumbers);
  for (const ArgDef& arg : op.inputs) {
    const bool list = arg.type.list || !arg.type.count.empty();
    const std::string name = Identifier(arg.name);
    const char* const single = has_operands ? "const Operand&" : "const LocatedOutput&";
    arguments.push_back({list ? "const LocatedOutputs&" : single, name, arg.doc});
    inputs.push_back(has_operands ? StrCat("{", name, ", ", TypeOfInput(arg, op), "}")
                                  : name + ".Noted()");
    const std::string length = list ? name + ".size()" : "";
    if (DTypeFromName(arg.type.type) == DType::kInvalid) {
      inferred_.push_back({arg.type.type, length});
    }
    if (!arg.type.count.empty()) inferred_.push_back({arg.type.count, length});
  }
}

bool OpSignature::IsInferred(const std::string& attr) const {
  return std::any_of(inferred_.begin(), inferred_.end(),
                     [&attr](const FromInput& known) { return known.attr == attr; });
}

void OpSignature::AddTypes(const OpDef& op) {
  for (const TypeAttrDef& type : op.types) {
    if (IsInferred(type.name)) continue;
    const std::string name = Identifier(type.name);
    if (type.default_type == DType::kInvalid) {
      arguments.push_back({"DType", name});
      attributes.push_back({type.name, name});
    } else {
      options.push_back({"DType", name, Literal(EdgeType{type.default_type})});
      attributes.push_back({type.name, "options." + name});
    }
  }
}

void OpSignature::AddAttributes(const OpDef& op) {
  for (const AttrDef& attr : op.attrs) {
    if (IsInferred(attr.name)) continue;
    const std::string name = Identifier(attr.name);
    if (attr.required()) {
      arguments.push_back({ArgumentType(TypeOf(attr.kind)), name});
      attributes.push_back({attr.name, name});
    } else {
      options.push_back({TypeOf(attr.kind), name, DefaultOf(attr.default_value)});
      attributes.push_back({attr.name, ValueOf(attr, name)});
    }
  }
}

std::string OpSignature::LengthOf(const std::string& attr, bool is_count) const {
  for (const FromInput& known : inferred_) {
    if (known.attr == attr && !known.length.empty()) return known.length;
  }
  for (const Attribute& given : attributes) {
    if (given.name == attr) return is_count ? given.value : given.value + ".size()";
  }
  CHECK(false, function, ": nothing says how long '", attr, "' is");
}

void OpSignature::AddResults(const OpDef& op) {
  for (const ArgDef& arg : op.outputs) {
    Result result{.name = Identifier(arg.name)};
    if (arg.type.list) result.length = LengthOf(arg.type.type, false);
    if (!arg.type.count.empty()) result.length = LengthOf(arg.type.count, true);
    result.list = !result.length.empty();
    results.push_back(std::move(result));
  }
}

}  // namespace penstock::client

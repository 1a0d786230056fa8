// SPDX-License-Identifier: Apache-2.0
#include "core/op/op_def.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "core/base/check.h"

namespace penstock {
namespace {

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;  // clang 14 does not deduce the template arguments

// Returns the kind of an attribute with this default value.
AttrDef::Kind KindOf(const std::string& name, const AttrValue& value) {
  using Kind = AttrDef::Kind;
  return std::visit(
      Overloaded{[](int64_t) -> Kind { return Ints{}; }, [](float) -> Kind { return Floats{}; },
                 [](bool) -> Kind { return Bools{}; },
                 [](const std::string&) -> Kind { return Strings{}; },
                 [](const PartialShape&) -> Kind { return Shapes{}; },
                 [](const Tensor&) -> Kind { return Tensors{}; },
                 [](const FunctionName&) -> Kind { return Functions{}; },
                 [](const std::vector<int64_t>&) -> Kind { return IntList{}; },
                 [](const std::vector<float>&) -> Kind { return FloatList{}; },
                 [](const std::vector<bool>&) -> Kind { return BoolList{}; },
                 [](const std::vector<std::string>&) -> Kind { return StringList{}; },
                 [](const std::vector<EdgeType>&) -> Kind { return TypeList{}; },
                 [](const std::vector<PartialShape>&) -> Kind { return ShapeList{}; },
                 [](const std::vector<Tensor>&) -> Kind { return TensorList{}; },
                 [](const std::vector<FunctionName>&) -> Kind { return FunctionList{}; },
                 [&](const auto&) -> Kind {
                   CHECK(false, "attribute ", name, ": a default of kind ", value.kind(),
                         " does not tell the attribute's kind (types belong in .types)");
                   __builtin_unreachable();
                 }},
      value.value());
}

// The C++ type of an attribute's value.
template <class T>
struct Holds {
  using Value = T;
};
auto ValueOf(const Ints&) { return Holds<int64_t>(); }
auto ValueOf(const Floats&) { return Holds<float>(); }
auto ValueOf(const Bools&) { return Holds<bool>(); }
auto ValueOf(const Strings&) { return Holds<std::string>(); }
auto ValueOf(const OneOf&) { return Holds<std::string>(); }
auto ValueOf(const Shapes&) { return Holds<PartialShape>(); }
auto ValueOf(const Tensors&) { return Holds<Tensor>(); }
auto ValueOf(const Functions&) { return Holds<FunctionName>(); }
auto ValueOf(const IntList&) { return Holds<std::vector<int64_t>>(); }
auto ValueOf(const FloatList&) { return Holds<std::vector<float>>(); }
auto ValueOf(const BoolList&) { return Holds<std::vector<bool>>(); }
auto ValueOf(const StringList&) { return Holds<std::vector<std::string>>(); }
auto ValueOf(const TypeList&) { return Holds<std::vector<EdgeType>>(); }
auto ValueOf(const ShapeList&) { return Holds<std::vector<PartialShape>>(); }
auto ValueOf(const TensorList&) { return Holds<std::vector<Tensor>>(); }
auto ValueOf(const FunctionList&) { return Holds<std::vector<FunctionName>>(); }

bool Allows(const DTypes& allowed, EdgeType type) {
  return !type.ref && (allowed.empty() ||
                       std::find(allowed.begin(), allowed.end(), type.dtype) != allowed.end());
}

// Returns whether a value of the right C++ type is allowed.
bool Allows(const Ints& kind, int64_t value) { return value >= kind.min; }
bool Allows(const OneOf& kind, const std::string& value) {
  return std::find(kind.allowed.begin(), kind.allowed.end(), value) != kind.allowed.end();
}
bool Allows(const IntList& kind, const std::vector<int64_t>& value) {
  return static_cast<int64_t>(value.size()) >= kind.min_length;
}
bool Allows(const TypeList& kind, const std::vector<EdgeType>& value) {
  return static_cast<int64_t>(value.size()) >= kind.min_length &&
         std::all_of(value.begin(), value.end(),
                     [&](EdgeType type) { return Allows(kind.allowed, type); });
}
template <class Kind, class T>
bool Allows(const Kind&, const T&) {
  return true;
}

std::string Describe(const DTypes& allowed) {
  return StrCat(
      "{",
      absl::StrJoin(allowed, ", ", [](std::string* out, DType type) { out->append(Name(type)); }),
      "}");
}

std::string OfLength(int64_t min) { return min > 0 ? StrCat(" of at least ", min) : ""; }

std::string Describe(const AttrDef::Kind& kind) {
  return std::visit(
      Overloaded{[](const Ints& k) {
                   return k.min == Ints{}.min ? std::string("an int") : StrCat("an int >= ", k.min);
                 },
                 [](const OneOf& k) {
                   return StrCat("one of {\"", absl::StrJoin(k.allowed, "\", \""), "\"}");
                 },
                 [](const IntList& k) { return "a list(int)" + OfLength(k.min_length); },
                 [](const TypeList& k) {
                   return StrCat("a list(type)", OfLength(k.min_length),
                                 k.allowed.empty() ? "" : " from " + Describe(k.allowed));
                 },
                 [](const auto& k) {
                   return StrCat("a ", AttrValue(typename decltype(ValueOf(k))::Value()).kind());
                 }},
      kind);
}

Status MissingAttrError(const OpDef& def, const std::string& name, const std::string& expected) {
  return InvalidArgument("attribute '", name, "' of op '", def.name, "' is missing, must be ",
                         expected);
}

Status CompleteType(const OpDef& def, const TypeAttrDef& type, Attrs* attrs) {
  const auto expected = [&type] {
    return type.allowed.empty() ? "a type" : "one of " + Describe(type.allowed);
  };
  const auto it = attrs->find(type.name);
  if (it == attrs->end() || !it->second.present()) {
    if (type.default_type == DType::kInvalid) return MissingAttrError(def, type.name, expected());
    (*attrs)[type.name] = type.default_type;
    return OkStatus();
  }
  const EdgeType* value = it->second.get<EdgeType>();
  if (value != nullptr && value->dtype != DType::kInvalid && Allows(type.allowed, *value)) {
    return OkStatus();
  }
  return InvalidArgument("attribute '", type.name, "' of op '", def.name, "' is ",
                         it->second.ToString(), ", must be ", expected());
}

Status CompleteAttr(const OpDef& def, const AttrDef& attr, Attrs* attrs) {
  const auto it = attrs->find(attr.name);
  if (it == attrs->end() || !it->second.present()) {
    if (attr.required()) return MissingAttrError(def, attr.name, Describe(attr.kind));
    (*attrs)[attr.name] = attr.default_value;
    return OkStatus();
  }
  AttrValue& value = it->second;
  const bool fits = std::visit(
      [&](const auto& kind) {
        using T = typename decltype(ValueOf(kind))::Value;
        if constexpr (requires(T list) { list.push_back(list[0]); } &&
                      !std::is_same_v<T, std::string>) {
          if (value.get<EmptyList>() != nullptr) value = T();
        }
        const T* held = value.get<T>();
        return held != nullptr && Allows(kind, *held);
      },
      attr.kind);
  if (fits) return OkStatus();
  return InvalidArgument("attribute '", attr.name, "' of op '", def.name, "' is ", value.ToString(),
                         " (", value.kind(), "), must be ", Describe(attr.kind));
}

}  // namespace

AttrDef::AttrDef(std::string name, Kind kind) : name(std::move(name)), kind(std::move(kind)) {}
AttrDef::AttrDef(std::string name, AttrValue default_value)
    : name(std::move(name)),
      kind(KindOf(this->name, default_value)),
      default_value(std::move(default_value)) {}
AttrDef::AttrDef(std::string name, Kind kind, AttrValue default_value)
    : name(std::move(name)), kind(std::move(kind)), default_value(std::move(default_value)) {}

Status CompleteAttrs(const OpDef& def, Attrs* attrs) {
  for (const TypeAttrDef& type : def.types) RETURN_IF_ERROR(CompleteType(def, type, attrs));
  for (const AttrDef& attr : def.attrs) RETURN_IF_ERROR(CompleteAttr(def, attr, attrs));
  return OkStatus();
}

}  // namespace penstock

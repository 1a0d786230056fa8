// SPDX-License-Identifier: Apache-2.0
#include "core/op/attr.h"

#include <cstring>
#include <type_traits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "core/tensor/resource_handle.h"
#include "core/tensor/variant.h"

namespace penstock {
namespace {

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;  // clang 14 does not deduce the template arguments

bool Same(const ResourceHandle& a, const ResourceHandle& b) {
  return a.device == b.device && a.container == b.container && a.name == b.name && a.type == b.type;
}

template <class T>
bool Same(const T& a, const T& b) {
  return a == b;
}

template <class T>
bool Same(const std::vector<T>& a, const std::vector<T>& b);

// Two variants are equal if they share a value, or if their type names and encodings are equal.
bool Same(const Variant& a, const Variant& b) {
  if (a.value == b.value) return true;
  if (a.value == nullptr || b.value == nullptr) return false;
  std::string metadata[2];
  std::vector<Tensor> tensors[2];
  if (!a.value->Encode(&metadata[0], &tensors[0]).ok()) return false;
  if (!b.value->Encode(&metadata[1], &tensors[1]).ok()) return false;
  return string_view(a.value->TypeName()) == b.value->TypeName() && metadata[0] == metadata[1] &&
         Same(tensors[0], tensors[1]);
}

template <class Object>
bool SameObjects(const Tensor& a, const Tensor& b) {
  const auto x = a.flat<Object>(), y = b.flat<Object>();
  for (size_t i = 0; i < x.size(); ++i) {
    if (!Same(x[i], y[i])) return false;
  }
  return true;
}

bool Same(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  if (a.dtype() == DType::kString) return a.flat<std::string>() == b.flat<std::string>();
  if (a.dtype() == DType::kResource) return SameObjects<ResourceHandle>(a, b);
  if (a.dtype() == DType::kVariant) return SameObjects<Variant>(a, b);
  return a.bytes() == 0 || memcmp(a.raw_data(), b.raw_data(), a.bytes()) == 0;
}

template <class T>
bool Same(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    const T &x = a[i], &y = b[i];
    if (!Same(x, y)) return false;
  }
  return true;
}

bool IsEmptyList(const AttrValue::Value& value) {
  return std::visit(Overloaded{[](const EmptyList&) { return true; },
                               []<class T>(const std::vector<T>& list) { return list.empty(); },
                               [](const auto&) { return false; }},
                    value);
}

std::string Print(std::monostate) { return "nothing"; }
std::string Print(int64_t v) { return StrCat(v); }
std::string Print(float v) { return StrCat(v); }
std::string Print(bool v) { return v ? "true" : "false"; }
std::string Print(const std::string& v) { return StrCat("\"", absl::CEscape(v), "\""); }
std::string Print(EdgeType v) { return Name(v); }
std::string Print(const PartialShape& v) { return v.ToString(); }
std::string Print(const Tensor& v) { return StrCat("<", v.ToString(), ">"); }
std::string Print(EmptyList) { return "[]"; }
std::string Print(const FunctionName& v) {
  if (v.attrs == nullptr || v.attrs->empty()) return v.name;
  return StrCat(v.name, "[",
                absl::StrJoin(*v.attrs, ", ",
                              [](std::string* out, const auto& attr) {
                                StrAppend(out, attr.first, "=", attr.second.ToString());
                              }),
                "]");
}
template <class T>
std::string Print(const std::vector<T>& list) {
  std::string out = "[";
  for (size_t i = 0; i < list.size(); ++i) {
    const T& element = list[i];
    StrAppend(&out, i == 0 ? "" : ", ", Print(element));
  }
  return out + "]";
}

}  // namespace

bool FunctionName::operator==(const FunctionName& other) const {
  static const Attrs& none = *new Attrs;
  return name == other.name && (attrs ? *attrs : none) == (other.attrs ? *other.attrs : none);
}

AttrValue::AttrValue(const std::vector<DType>& v) {
  std::vector<EdgeType> types;
  types.reserve(v.size());
  for (DType dtype : v) types.push_back({dtype});
  value_ = std::move(types);
}

const char* AttrValue::kind() const {
  static constexpr const char* kKinds[] = {
      "nothing",      "int",        "float",       "bool",         "string",      "type",
      "shape",        "tensor",     "func",        "list(int)",    "list(float)", "list(bool)",
      "list(string)", "list(type)", "list(shape)", "list(tensor)", "list(func)",  "empty list"};
  static_assert(std::variant_size_v<Value> == sizeof kKinds / sizeof kKinds[0]);
  return kKinds[value_.index()];
}

std::string AttrValue::ToString() const {
  return std::visit([](const auto& v) { return Print(v); }, value_);
}

bool AttrValue::operator==(const AttrValue& other) const {
  if (value_.index() != other.value_.index()) {
    const bool untyped = get<EmptyList>() != nullptr || other.get<EmptyList>() != nullptr;
    return untyped && IsEmptyList(value_) && IsEmptyList(other.value_);
  }
  return std::visit([&](const auto& v) { return Same(v, *other.get<std::decay_t<decltype(v)>>()); },
                    value_);
}

}  // namespace penstock

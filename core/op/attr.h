// SPDX-License-Identifier: Apache-2.0
//
// AttrValue and Attrs: the values of a node's attributes, as C++ types. They are parsed once from
// the AttrValue messages of the wire format.
//
// Both can be copied, compared and printed. An empty list still has the kind of its elements,
// unless it is an EmptyList.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"

namespace penstock {

class AttrValue;
// Sorted, so that two equal nodes print and hash alike.
using Attrs = std::map<std::string, AttrValue, std::less<>>;

// A function by name with its own attributes (functional ops).
struct FunctionName {
  std::string name;
  std::shared_ptr<const Attrs> attrs;
  bool operator==(const FunctionName& other) const;
};

// An empty list of unknown kind, because an empty list in the wire format has no kind. It equals,
// and converts to, an empty list of any kind.
struct EmptyList {
  bool operator==(const EmptyList&) const = default;
};

class AttrValue {
 public:
  using Value = std::variant<std::monostate, int64_t, float, bool, std::string, EdgeType,
                             PartialShape, Tensor, FunctionName, std::vector<int64_t>,
                             std::vector<float>, std::vector<bool>, std::vector<std::string>,
                             std::vector<EdgeType>, std::vector<PartialShape>, std::vector<Tensor>,
                             std::vector<FunctionName>, EmptyList>;

  AttrValue() = default;  // no value: the attribute is absent
  // These constructors are implicit, so that programs can write {"axis", 1}.
  AttrValue(int64_t v) : value_(v) {}                               // NOLINT
  AttrValue(int v) : value_(int64_t{v}) {}                          // NOLINT
  AttrValue(float v) : value_(v) {}                                 // NOLINT
  AttrValue(double v) : value_(static_cast<float>(v)) {}            // NOLINT
  AttrValue(bool v) : value_(v) {}                                  // NOLINT
  AttrValue(const char* v) : value_(std::string(v)) {}              // NOLINT
  AttrValue(std::string v) : value_(std::move(v)) {}                // NOLINT
  AttrValue(DType v) : value_(EdgeType{v}) {}                       // NOLINT
  AttrValue(EdgeType v) : value_(v) {}                              // NOLINT
  AttrValue(PartialShape v) : value_(std::move(v)) {}               // NOLINT
  AttrValue(const Shape& v) : value_(PartialShape(v)) {}            // NOLINT
  AttrValue(Tensor v) : value_(std::move(v)) {}                     // NOLINT
  AttrValue(FunctionName v) : value_(std::move(v)) {}               // NOLINT
  AttrValue(EmptyList v) : value_(v) {}                             // NOLINT
  AttrValue(std::vector<int64_t> v) : value_(std::move(v)) {}       // NOLINT
  AttrValue(std::vector<float> v) : value_(std::move(v)) {}         // NOLINT
  AttrValue(std::vector<bool> v) : value_(std::move(v)) {}          // NOLINT
  AttrValue(std::vector<std::string> v) : value_(std::move(v)) {}   // NOLINT
  AttrValue(std::vector<EdgeType> v) : value_(std::move(v)) {}      // NOLINT
  AttrValue(const std::vector<DType>& v);                           // NOLINT
  AttrValue(std::vector<PartialShape> v) : value_(std::move(v)) {}  // NOLINT
  AttrValue(std::vector<Tensor> v) : value_(std::move(v)) {}        // NOLINT
  AttrValue(std::vector<FunctionName> v) : value_(std::move(v)) {}  // NOLINT

  const Value& value() const { return value_; }
  bool present() const { return value_.index() != 0; }
  template <class T>
  const T* get() const {
    return std::get_if<T>(&value_);
  }
  // Returns the wire format's name of the kind, for errors: "int", "list(type)", ...
  const char* kind() const;
  std::string ToString() const;
  // Compares tensors by dtype, shape and bytes.
  bool operator==(const AttrValue& other) const;

 private:
  Value value_;
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "core/wire/attr_proto.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/wire/tensor_proto.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {

namespace {

using Proto = tensorflow::AttrValue;
using ListProto = tensorflow::AttrValue::ListValue;

StatusOr<FunctionName> FunctionFromProto(const tensorflow::NameAttrList& proto, int64_t bytes_max) {
  auto attrs = std::make_shared<Attrs>();
  for (const auto& [name, value] : proto.attr()) {
    StatusOr<AttrValue> attr = AttrFromProto(value, bytes_max);
    if (!attr.ok()) {
      return Annotate(attr.status(),
                      StrCat("attribute '", name, "' of function '", proto.name(), "'"));
    }
    (*attrs)[name] = *std::move(attr);
  }
  return FunctionName{.name = proto.name(), .attrs = std::move(attrs)};
}

void FunctionToProto(const FunctionName& function, tensorflow::NameAttrList* proto) {
  proto->set_name(function.name);
  if (function.attrs == nullptr) return;
  for (const auto& [name, value] : *function.attrs)
    AttrToProto(value, &(*proto->mutable_attr())[name]);
}

// Parses a list; an error names the element.
template <class T, class Field, class Parse>
StatusOr<AttrValue> ParseList(const Field& field, Parse parse) {
  std::vector<T> values;
  values.reserve(field.size());
  for (int i = 0; i < field.size(); ++i) {
    auto value = parse(field.Get(i));
    if (!value.ok()) return Annotate(value.status(), StrCat("element ", i));
    values.push_back(*std::move(value));
  }
  return AttrValue(std::move(values));
}

template <class T, class Field>
AttrValue CopyList(const Field& field) {
  return AttrValue(std::vector<T>(field.begin(), field.end()));
}

StatusOr<AttrValue> ParseTensors(const ListProto& list, int64_t bytes_left) {
  return ParseList<Tensor>(list.tensor(), [&](const tensorflow::TensorProto& proto) {
    StatusOr<Tensor> tensor = TensorFromProto(proto, bytes_left);
    if (tensor.ok()) bytes_left -= static_cast<int64_t>(tensor->bytes());
    return tensor;
  });
}

StatusOr<AttrValue> ListFromProto(const ListProto& list, int64_t bytes_max) {
  const int kinds = (list.s_size() > 0) + (list.i_size() > 0) + (list.f_size() > 0) +
                    (list.b_size() > 0) + (list.type_size() > 0) + (list.shape_size() > 0) +
                    (list.tensor_size() > 0) + (list.func_size() > 0);
  if (kinds > 1) return InvalidArgument("a list with elements of ", kinds, " kinds");
  if (list.s_size() > 0) return CopyList<std::string>(list.s());
  if (list.i_size() > 0) return CopyList<int64_t>(list.i());
  if (list.f_size() > 0) return CopyList<float>(list.f());
  if (list.b_size() > 0) return CopyList<bool>(list.b());
  if (list.type_size() > 0) return ParseList<EdgeType>(list.type(), EdgeTypeFromNumber);
  if (list.shape_size() > 0) return ParseList<PartialShape>(list.shape(), ShapeFromProto);
  if (list.tensor_size() > 0) return ParseTensors(list, bytes_max);
  if (list.func_size() > 0) {
    return ParseList<FunctionName>(list.func(), [bytes_max](const tensorflow::NameAttrList& f) {
      return FunctionFromProto(f, bytes_max);
    });
  }
  return AttrValue(EmptyList{});
}

// Writes a value of each kind into an AttrValue or into a list: one overload per kind.
class Writer {
 public:
  explicit Writer(Proto* proto) : proto_(proto) {}

  void operator()(std::monostate) const {}
  void operator()(int64_t v) const { proto_->set_i(v); }
  void operator()(float v) const { proto_->set_f(v); }
  void operator()(bool v) const { proto_->set_b(v); }
  void operator()(const std::string& v) const { proto_->set_s(v); }
  void operator()(EdgeType v) const { proto_->set_type(TypeNumber(v)); }
  void operator()(const PartialShape& v) const { ShapeToProto(v, proto_->mutable_shape()); }
  void operator()(const Tensor& v) const { CHECK_OK(TensorToProto(v, proto_->mutable_tensor())); }
  void operator()(const FunctionName& v) const { FunctionToProto(v, proto_->mutable_func()); }
  void operator()(EmptyList) const { proto_->mutable_list(); }
  template <class T>
  void operator()(const std::vector<T>& values) const {
    ListProto* list = proto_->mutable_list();
    for (const auto& v : values) Add(v, list);
  }

 private:
  static tensorflow::DataType TypeNumber(EdgeType type) {
    constexpr int kRefOffset = 100;
    return static_cast<tensorflow::DataType>(Number(type.dtype) + (type.ref ? kRefOffset : 0));
  }
  static void Add(int64_t v, ListProto* list) { list->add_i(v); }
  static void Add(float v, ListProto* list) { list->add_f(v); }
  static void Add(bool v, ListProto* list) { list->add_b(v); }
  static void Add(const std::string& v, ListProto* list) { list->add_s(v); }
  static void Add(EdgeType v, ListProto* list) { list->add_type(TypeNumber(v)); }
  static void Add(const PartialShape& v, ListProto* list) { ShapeToProto(v, list->add_shape()); }
  static void Add(const Tensor& v, ListProto* list) {
    CHECK_OK(TensorToProto(v, list->add_tensor()));
  }
  static void Add(const FunctionName& v, ListProto* list) { FunctionToProto(v, list->add_func()); }

  Proto* proto_;
};

}  // namespace

StatusOr<PartialShape> ShapeFromProto(const tensorflow::TensorShapeProto& proto) {
  if (proto.unknown_rank()) {
    if (proto.dim_size() == 0) return PartialShape();
    return InvalidArgument("a shape of unknown rank with ", proto.dim_size(), " dimensions");
  }
  Dims dims;
  for (const auto& dim : proto.dim()) dims.push_back(dim.size());
  return PartialShape::Make(dims);
}

void ShapeToProto(const PartialShape& shape, tensorflow::TensorShapeProto* proto) {
  proto->Clear();
  proto->set_unknown_rank(!shape.known_rank());
  if (!shape.known_rank()) return;
  for (const int64_t dim : shape.dims()) proto->add_dim()->set_size(dim);
}

StatusOr<AttrValue> AttrFromProto(const Proto& proto, int64_t bytes_max) {
  switch (proto.value_case()) {
    case Proto::kList:
      return ListFromProto(proto.list(), bytes_max);
    case Proto::kS:
      return AttrValue(proto.s());
    case Proto::kI:
      return AttrValue(static_cast<int64_t>(proto.i()));
    case Proto::kF:
      return AttrValue(proto.f());
    case Proto::kB:
      return AttrValue(proto.b());
    case Proto::kType:
      return EdgeTypeFromNumber(proto.type());
    case Proto::kShape:
      return ShapeFromProto(proto.shape());
    case Proto::kTensor:
      return TensorFromProto(proto.tensor(), bytes_max);
    case Proto::kFunc:
      return FunctionFromProto(proto.func(), bytes_max);
    case Proto::kPlaceholder:
      return InvalidArgument("placeholder '", proto.placeholder(),
                             "' outside of the body of a function");
    case Proto::VALUE_NOT_SET:
      break;
  }
  return InvalidArgument("no value, or one of a kind that is not known");
}

void AttrToProto(const AttrValue& attr, Proto* proto) {
  proto->Clear();
  std::visit(Writer(proto), attr.value());
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "core/wire/tensor_fields.h"

#include <complex>
#include <string>

#include "proto/tensorflow/tensor.pb.h"

namespace penstock {

namespace {

using tensorflow::TensorProto;

#define PENSTOCK_FIELD(Name, field)                                           \
  struct Name {                                                               \
    static const auto& In(const TensorProto& proto) { return proto.field(); } \
    static auto& In(TensorProto& proto) { return *proto.mutable_##field(); }  \
  };
PENSTOCK_FIELD(FloatVal, float_val)
PENSTOCK_FIELD(DoubleVal, double_val)
PENSTOCK_FIELD(IntVal, int_val)
PENSTOCK_FIELD(Int64Val, int64_val)
PENSTOCK_FIELD(Uint32Val, uint32_val)
PENSTOCK_FIELD(Uint64Val, uint64_val)
PENSTOCK_FIELD(BoolVal, bool_val)
PENSTOCK_FIELD(HalfVal, half_val)
PENSTOCK_FIELD(ScomplexVal, scomplex_val)
PENSTOCK_FIELD(DcomplexVal, dcomplex_val)
PENSTOCK_FIELD(StringVal, string_val)
#undef PENSTOCK_FIELD

// The encodings. Each has the type of the elements, their field of TensorProto, the number of
// values of the field per element, and the conversions in both directions.
template <class Element, class Field>
struct Plain : Field {
  using T = Element;
  static constexpr int kValues = 1;
  static T Get(const auto& field, int i) { return static_cast<T>(field.Get(i)); }
  static void Add(const T& x, auto& field) { field.Add(T(x)); }
};

template <class Q>
struct InInts : IntVal {
  using T = Q;
  static constexpr int kValues = 1;
  static T Get(const auto& field, int i) {
    return Q{static_cast<decltype(Q::value)>(field.Get(i))};
  }
  static void Add(T x, auto& field) { field.Add(x.value); }
};

template <class Float16>
struct InBits : HalfVal {
  using T = Float16;
  static constexpr int kValues = 1;
  static T Get(const auto& field, int i) {
    return T::FromBits(static_cast<uint16_t>(field.Get(i)));
  }
  static void Add(T x, auto& field) { field.Add(x.bits); }
};

template <class R, class Field>
struct InPairs : Field {
  using T = std::complex<R>;
  static constexpr int kValues = 2;
  static T Get(const auto& field, int i) { return {field.Get(2 * i), field.Get(2 * i + 1)}; }
  static void Add(T x, auto& field) {
    field.Add(x.real());
    field.Add(x.imag());
  }
};

// Calls f with the encoding of the type. Returns false if the type has no encoding.
template <class F>
bool WithEncoding(DType dtype, F f) {
  switch (dtype) {
    case DType::kFloat:
      return f(Plain<float, FloatVal>()), true;
    case DType::kDouble:
      return f(Plain<double, DoubleVal>()), true;
    case DType::kInt32:
      return f(Plain<int32_t, IntVal>()), true;
    case DType::kInt16:
      return f(Plain<int16_t, IntVal>()), true;
    case DType::kInt8:
      return f(Plain<int8_t, IntVal>()), true;
    case DType::kUint16:
      return f(Plain<uint16_t, IntVal>()), true;
    case DType::kUint8:
      return f(Plain<uint8_t, IntVal>()), true;
    case DType::kInt64:
      return f(Plain<int64_t, Int64Val>()), true;
    case DType::kUint32:
      return f(Plain<uint32_t, Uint32Val>()), true;
    case DType::kUint64:
      return f(Plain<uint64_t, Uint64Val>()), true;
    case DType::kBool:
      return f(Plain<bool, BoolVal>()), true;
    case DType::kString:
      return f(Plain<std::string, StringVal>()), true;
    case DType::kHalf:
      return f(InBits<half>()), true;
    case DType::kBfloat16:
      return f(InBits<bfloat16>()), true;
    case DType::kComplex64:
      return f(InPairs<float, ScomplexVal>()), true;
    case DType::kComplex128:
      return f(InPairs<double, DcomplexVal>()), true;
    case DType::kQint8:
      return f(InInts<qint8>()), true;
    case DType::kQuint8:
      return f(InInts<quint8>()), true;
    case DType::kQint16:
      return f(InInts<qint16>()), true;
    case DType::kQuint16:
      return f(InInts<quint16>()), true;
    case DType::kQint32:
      return f(InInts<qint32>()), true;
    default:
      return false;
  }
}

}  // namespace

int64_t ElementsInField(const TensorProto& proto, DType dtype) {
  int64_t elements = 0;
  WithEncoding(dtype, [&]<class E>(E) { elements = E::In(proto).size() / E::kValues; });
  return elements;
}

bool FillFromFields(const TensorProto& proto, Tensor* tensor) {
  return WithEncoding(tensor->dtype(), [&]<class E>(E) {
    const auto& field = E::In(proto);
    FillRepeatingLast<typename E::T>(field.size() / E::kValues, tensor,
                                     [&](int i) { return E::Get(field, i); });
  });
}

bool WriteField(const Tensor& tensor, TensorProto* proto) {
  return WithEncoding(tensor.dtype(), [&]<class E>(E) {
    auto& field = E::In(*proto);
    field.Reserve(static_cast<int>(tensor.num_elements() * E::kValues));
    for (const auto& x : tensor.flat<typename E::T>()) E::Add(x, field);
  });
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "core/graph/tensor_fields.h"

#include <algorithm>
#include <complex>

#include "proto/tensorflow/tensor.pb.h"

namespace penstock {

namespace {

using tensorflow::TensorProto;

template <class T, class Field, class Convert>
void Fill(const Field& values, Tensor* tensor, Convert convert) {
  FillRepeatingLast<T>(values.size(), tensor, [&](int i) { return convert(values.Get(i)); });
}

template <class T, class Field>
void Fill(const Field& values, Tensor* tensor) {
  Fill<T>(values, tensor, [](auto v) { return static_cast<T>(v); });
}

template <class Q, class Base>
void FillQuantized(const TensorProto& proto, Tensor* tensor) {
  Fill<Q>(proto.int_val(), tensor, [](int32_t v) { return Q{static_cast<Base>(v)}; });
}

template <class T>
void FillBits(const TensorProto& proto, Tensor* tensor) {
  Fill<T>(proto.half_val(), tensor,
          [](int32_t v) { return T::FromBits(static_cast<uint16_t>(v)); });
}

// The values of a field of pairs, one by one.
template <class R, class Field>
struct Pairs {
  const Field& field;
  int size() const { return field.size() / 2; }
  std::complex<R> Get(int i) const { return {field.Get(2 * i), field.Get(2 * i + 1)}; }
};
template <class R, class Field>
void FillComplex(const Field& field, Tensor* tensor) {
  Fill<std::complex<R>>(Pairs<R, Field>{field}, tensor);
}

}  // namespace

bool FillFromFields(const TensorProto& proto, Tensor* tensor) {
  switch (tensor->dtype()) {
    case DType::kFloat:
      return Fill<float>(proto.float_val(), tensor), true;
    case DType::kDouble:
      return Fill<double>(proto.double_val(), tensor), true;
    case DType::kInt32:
      return Fill<int32_t>(proto.int_val(), tensor), true;
    case DType::kInt16:
      return Fill<int16_t>(proto.int_val(), tensor), true;
    case DType::kInt8:
      return Fill<int8_t>(proto.int_val(), tensor), true;
    case DType::kUint16:
      return Fill<uint16_t>(proto.int_val(), tensor), true;
    case DType::kUint8:
      return Fill<uint8_t>(proto.int_val(), tensor), true;
    case DType::kInt64:
      return Fill<int64_t>(proto.int64_val(), tensor), true;
    case DType::kUint32:
      return Fill<uint32_t>(proto.uint32_val(), tensor), true;
    case DType::kUint64:
      return Fill<uint64_t>(proto.uint64_val(), tensor), true;
    case DType::kBool:
      return Fill<bool>(proto.bool_val(), tensor), true;
    case DType::kHalf:
      return FillBits<half>(proto, tensor), true;
    case DType::kBfloat16:
      return FillBits<bfloat16>(proto, tensor), true;
    case DType::kComplex64:
      return FillComplex<float>(proto.scomplex_val(), tensor), true;
    case DType::kComplex128:
      return FillComplex<double>(proto.dcomplex_val(), tensor), true;
    case DType::kQint8:
      return FillQuantized<qint8, int8_t>(proto, tensor), true;
    case DType::kQuint8:
      return FillQuantized<quint8, uint8_t>(proto, tensor), true;
    case DType::kQint16:
      return FillQuantized<qint16, int16_t>(proto, tensor), true;
    case DType::kQuint16:
      return FillQuantized<quint16, uint16_t>(proto, tensor), true;
    case DType::kQint32:
      return FillQuantized<qint32, int32_t>(proto, tensor), true;
    default:
      return false;
  }
}

}  // namespace penstock

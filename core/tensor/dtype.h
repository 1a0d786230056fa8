// SPDX-License-Identifier: Apache-2.0
//
// DType: the element types of tensors, with the numbers of TensorFlow's DataType; half and
// bfloat16; and the map between C++ types and DTypes. An edge that carries a reference to a
// variable, not its value, has a reference type, with the number of the value's type + 100.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/float16.h"

namespace penstock {

struct ResourceHandle;  // core/tensor/resource_handle.h
struct Variant;         // core/tensor/variant.h

enum class DType : int {
  kInvalid = 0,
  kFloat = 1,
  kDouble = 2,
  kInt32 = 3,
  kUint8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kString = 7,
  kComplex64 = 8,
  kInt64 = 9,
  kBool = 10,
  kQint8 = 11,
  kQuint8 = 12,
  kQint32 = 13,
  kBfloat16 = 14,
  kQint16 = 15,
  kQuint16 = 16,
  kUint16 = 17,
  kComplex128 = 18,
  kHalf = 19,
  kResource = 20,
  kVariant = 21,
  kUint32 = 22,
  kUint64 = 23,
};

// The type of a graph edge: a DType, and a flag for reference types, which exist only on edges.
struct EdgeType {
  DType dtype = DType::kInvalid;
  bool ref = false;

  // Returns true if the edge carries a reference or a handle to state, instead of a value.
  bool refers_to_state() const { return ref || dtype == DType::kResource; }

  bool operator==(const EdgeType&) const = default;
};

// Lists of types for the declarations of ops.
using DTypes = std::vector<DType>;
extern const DTypes kFloating;   // half, bfloat16, float, double
extern const DTypes kIntegers;   // all signed and unsigned widths
extern const DTypes kReal;       // kFloating + kIntegers
extern const DTypes kComplex;    // complex64, complex128
extern const DTypes kNumber;     // kReal + kComplex
extern const DTypes kIndex;      // int32, int64
extern const DTypes kQuantized;  // qint8, quint8, qint16, quint16, qint32
extern const DTypes kAllTypes;   // all types of tensors except variants
extern const DTypes kAnyType;    // kAllTypes and variants: for ops that do not read the elements

// Returns the bytes of one element in memory; for string, resource and variant the size of the C++
// object; 0 for kInvalid.
inline size_t SizeOf(DType dtype);
// Returns true if elements are plain bytes, which may be copied with memcpy and sent unchanged.
inline bool IsPlain(DType dtype);
bool IsFloating(DType dtype);
bool IsInteger(DType dtype);
bool IsComplex(DType dtype);

// Returns TensorFlow's spelling: "float", "int32", ...; "float_ref" for an edge with a reference
// type.
const char* Name(DType dtype);
std::string Name(EdgeType type);
// Returns the type with this name; kInvalid if there is none.
DType DTypeFromName(string_view name);
// Convert the number of a type in a message. InvalidArgument names a number that is unknown.
StatusOr<DType> DTypeFromNumber(int number);
StatusOr<EdgeType> EdgeTypeFromNumber(int number);
constexpr int Number(DType dtype) { return static_cast<int>(dtype); }
inline constexpr int kRefOffset = 100;
inline int Number(EdgeType type) { return Number(type.dtype) + (type.ref ? kRefOffset : 0); }

// Quantized integers are distinct C++ types, wrappers of plain integers, because they are distinct
// DTypes.
template <class Base, int kTag>
struct Quantized {
  Base value = 0;
  bool operator==(const Quantized&) const = default;
};
using qint8 = Quantized<int8_t, 11>;
using quint8 = Quantized<uint8_t, 12>;
using qint32 = Quantized<int32_t, 13>;
using qint16 = Quantized<int16_t, 15>;
using quint16 = Quantized<uint16_t, 16>;

template <class T>
struct DTypeOfType;  // not defined for types that tensors cannot hold
#define PENSTOCK_DTYPE(T, Enum)                 \
  template <>                                   \
  struct DTypeOfType<T> {                       \
    static constexpr DType value = DType::Enum; \
  };
PENSTOCK_DTYPE(float, kFloat)
PENSTOCK_DTYPE(double, kDouble)
PENSTOCK_DTYPE(int32_t, kInt32)
PENSTOCK_DTYPE(uint8_t, kUint8)
PENSTOCK_DTYPE(int16_t, kInt16)
PENSTOCK_DTYPE(int8_t, kInt8)
PENSTOCK_DTYPE(std::string, kString)
PENSTOCK_DTYPE(std::complex<float>, kComplex64)
PENSTOCK_DTYPE(int64_t, kInt64)
PENSTOCK_DTYPE(bool, kBool)
PENSTOCK_DTYPE(qint8, kQint8)
PENSTOCK_DTYPE(quint8, kQuint8)
PENSTOCK_DTYPE(qint32, kQint32)
PENSTOCK_DTYPE(bfloat16, kBfloat16)
PENSTOCK_DTYPE(qint16, kQint16)
PENSTOCK_DTYPE(quint16, kQuint16)
PENSTOCK_DTYPE(uint16_t, kUint16)
PENSTOCK_DTYPE(std::complex<double>, kComplex128)
PENSTOCK_DTYPE(half, kHalf)
PENSTOCK_DTYPE(ResourceHandle, kResource)
PENSTOCK_DTYPE(Variant, kVariant)
PENSTOCK_DTYPE(uint32_t, kUint32)
PENSTOCK_DTYPE(uint64_t, kUint64)
#undef PENSTOCK_DTYPE

template <class T>
inline constexpr DType kDTypeOf = DTypeOfType<T>::value;

// sizeof(ResourceHandle) and sizeof(Variant), which are only forward-declared here; their
// definitions check the value.
inline constexpr size_t kResourceHandleBytes = 168;
inline constexpr size_t kVariantBytes = 16;

// SizeOf and IsPlain are table look-ups, because every op calls them.
inline size_t SizeOf(DType dtype) {
  static constexpr uint8_t kBytes[] = {0,
                                       4,
                                       8,
                                       4,
                                       1,
                                       2,
                                       1,
                                       sizeof(std::string),
                                       8,
                                       8,
                                       1,
                                       1,
                                       1,
                                       4,
                                       2,
                                       2,
                                       2,
                                       2,
                                       16,
                                       2,
                                       kResourceHandleBytes,
                                       kVariantBytes,
                                       4,
                                       8};
  return kBytes[Number(dtype)];
}
inline bool IsPlain(DType dtype) {
  constexpr uint32_t kNotPlain = 1u << Number(DType::kInvalid) | 1u << Number(DType::kString) |
                                 1u << Number(DType::kResource) | 1u << Number(DType::kVariant);
  return (kNotPlain >> Number(dtype) & 1) == 0;
}

}  // namespace penstock

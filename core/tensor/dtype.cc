// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/dtype.h"

namespace penstock {
namespace {

struct Names {
  DType dtype;
  const char* name;
};

// Index: the type's number.
constexpr Names kNames[] = {
    {DType::kInvalid, "invalid"},
    {DType::kFloat, "float"},
    {DType::kDouble, "double"},
    {DType::kInt32, "int32"},
    {DType::kUint8, "uint8"},
    {DType::kInt16, "int16"},
    {DType::kInt8, "int8"},
    {DType::kString, "string"},
    {DType::kComplex64, "complex64"},
    {DType::kInt64, "int64"},
    {DType::kBool, "bool"},
    {DType::kQint8, "qint8"},
    {DType::kQuint8, "quint8"},
    {DType::kQint32, "qint32"},
    {DType::kBfloat16, "bfloat16"},
    {DType::kQint16, "qint16"},
    {DType::kQuint16, "quint16"},
    {DType::kUint16, "uint16"},
    {DType::kComplex128, "complex128"},
    {DType::kHalf, "half"},
    {DType::kResource, "resource"},
    {DType::kVariant, "variant"},
    {DType::kUint32, "uint32"},
    {DType::kUint64, "uint64"},
};
constexpr int kNumDTypes = sizeof kNames / sizeof kNames[0];
static_assert([] {
  for (int i = 0; i < kNumDTypes; ++i) {
    if (static_cast<int>(kNames[i].dtype) != i) return false;
  }
  return true;
}());

DTypes operator+(DTypes a, const DTypes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

const DTypes kFloating = {DType::kHalf, DType::kBfloat16, DType::kFloat, DType::kDouble};
const DTypes kIntegers = {DType::kInt8,  DType::kInt16,  DType::kInt32,  DType::kInt64,
                          DType::kUint8, DType::kUint16, DType::kUint32, DType::kUint64};
const DTypes kReal = kFloating + kIntegers;
const DTypes kComplex = {DType::kComplex64, DType::kComplex128};
const DTypes kNumber = kReal + kComplex;
const DTypes kIndex = {DType::kInt32, DType::kInt64};
const DTypes kQuantized = {DType::kQint8, DType::kQuint8, DType::kQint16, DType::kQuint16,
                           DType::kQint32};
const DTypes kAllTypes =
    kNumber + kQuantized + DTypes{DType::kBool, DType::kString, DType::kResource};
const DTypes kAnyType = kAllTypes + DTypes{DType::kVariant};

bool IsFloating(DType dtype) {
  return dtype == DType::kFloat || dtype == DType::kDouble || dtype == DType::kHalf ||
         dtype == DType::kBfloat16;
}

bool IsInteger(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kUint8:
    case DType::kUint16:
    case DType::kUint32:
    case DType::kUint64:
      return true;
    default:
      return false;
  }
}

bool IsComplex(DType dtype) { return dtype == DType::kComplex64 || dtype == DType::kComplex128; }

const char* Name(DType dtype) {
  const int number = Number(dtype);
  return number >= 0 && number < kNumDTypes ? kNames[number].name : "invalid";
}

std::string Name(EdgeType type) { return StrCat(Name(type.dtype), type.ref ? "_ref" : ""); }

DType DTypeFromName(string_view name) {
  for (const Names& entry : kNames) {
    // Compares the first letter first, which nearly always differs, because this loop runs for
    // every argument of every imported node.
    if (!name.empty() && name[0] == entry.name[0] && name == entry.name) return entry.dtype;
  }
  return DType::kInvalid;
}

StatusOr<DType> DTypeFromNumber(int number) {
  if (number <= 0 || number >= kNumDTypes) {
    return InvalidArgument("no data type has the number ", number);
  }
  return static_cast<DType>(number);
}

StatusOr<EdgeType> EdgeTypeFromNumber(int number) {
  const bool ref = number > kRefOffset;
  const StatusOr<DType> dtype = DTypeFromNumber(ref ? number - kRefOffset : number);
  if (!dtype.ok()) return InvalidArgument("no data type has the number ", number);
  return EdgeType{*dtype, ref};
}

}  // namespace penstock

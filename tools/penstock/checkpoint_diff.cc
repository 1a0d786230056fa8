// SPDX-License-Identifier: Apache-2.0
#include "tools/penstock/checkpoint_diff.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/checkpoint/bundle_reader.h"

namespace penstock {
namespace {

std::string TypeOf(const BundleEntry& entry) {
  return StrCat(Name(entry.dtype), entry.shape.ToString());
}

// Returns "3 of 100 elements differ, by 0.5 at most", or "" if all are equal. Two NaNs are equal.
template <class T>
std::string DifferenceOf(const Tensor& before, const Tensor& after) {
  int64_t count = 0;
  double largest = 0;
  for (int64_t i = 0; i < before.num_elements(); ++i) {
    const auto a = static_cast<double>(before.data<T>()[i]);
    const auto b = static_cast<double>(after.data<T>()[i]);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    ++count;
    if (std::isnan(a - b) || !(largest >= std::abs(a - b))) largest = std::abs(a - b);
  }
  if (count == 0) return "";
  return StrCat(count, " of ", before.num_elements(), " elements differ, by ", largest, " at most");
}

// Returns a text that says how the elements differ; "" if they are equal.
std::string Difference(const Tensor& before, const Tensor& after) {
  switch (before.dtype()) {
    case DType::kFloat:
      return DifferenceOf<float>(before, after);
    case DType::kDouble:
      return DifferenceOf<double>(before, after);
    case DType::kInt32:
      return DifferenceOf<int32_t>(before, after);
    case DType::kInt64:
      return DifferenceOf<int64_t>(before, after);
    case DType::kString: {
      const auto a = before.flat<std::string>(), b = after.flat<std::string>();
      return std::equal(a.begin(), a.end(), b.begin()) ? "" : "the strings differ";
    }
    default:
      break;
  }
  const bool equal = std::memcmp(before.raw_data(), after.raw_data(), before.bytes()) == 0;
  return equal ? "" : "the elements differ";
}

// The size and the checksum of the bytes of each slice of a tensor, by the slice; by "" if the
// tensor was not saved in slices.
using BytesBySlice = std::map<std::string, std::pair<int64_t, uint32_t>>;

StatusOr<BytesBySlice> ReadBytesBySlice(const BundleReader& reader, const std::string& name,
                                        const BundleEntry& entry) {
  RETURN_IF_ERROR(reader.Verify(name));
  BytesBySlice bytes;
  for (const TensorSlice& slice : entry.slices) {
    const BundleEntry& part = reader.Slice(name, slice);
    bytes[slice.ToString()] = {part.size, part.masked_crc};
  }
  if (bytes.empty()) bytes[""] = {entry.size, entry.masked_crc};
  return bytes;
}

StatusOr<std::string> Compare(const BundleReader& before, const BundleReader& after,
                              const std::string& name) {
  const auto a = before.tensors().find(name), b = after.tensors().find(name);
  if (b == after.tensors().end()) return std::string("is only in the first");
  if (a == before.tensors().end()) return std::string("is only in the second");
  if (TypeOf(a->second) != TypeOf(b->second)) {
    return StrCat("is ", TypeOf(a->second), " and ", TypeOf(b->second));
  }
  if (a->second.dtype == DType::kVariant) {
    // The values of a class cannot be compared, but their bytes can.
    ASSIGN_OR_RETURN(const BytesBySlice first, ReadBytesBySlice(before, name, a->second));
    ASSIGN_OR_RETURN(const BytesBySlice second, ReadBytesBySlice(after, name, b->second));
    return std::string(first == second ? "" : "the variants differ");
  }
  ASSIGN_OR_RETURN(const Tensor first, before.Read(name));
  ASSIGN_OR_RETURN(const Tensor second, after.Read(name));
  return Difference(first, second);
}

}  // namespace

StatusOr<bool> PrintCheckpointDiff(Env& env, const std::string& before, const std::string& after) {
  ASSIGN_OR_RETURN(const auto first, BundleReader::Open(env, before));
  ASSIGN_OR_RETURN(const auto second, BundleReader::Open(env, after));
  std::set<std::string> names;
  for (const BundleReader* reader : {first.get(), second.get()}) {
    for (const auto& [name, entry] : reader->tensors()) names.insert(name);
  }
  size_t different = 0;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(const std::string difference, Compare(*first, *second, name));
    if (difference.empty()) continue;
    ++different;
    std::printf("%-48s %s\n", name.c_str(), difference.c_str());
  }
  std::printf("%zu of %zu tensors differ\n", different, names.size());
  return different == 0;
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "kernels/sparse/cross_features.h"

#include <farmhash.h>

#include <limits>

namespace penstock {

std::string JoinFeatures(const std::vector<FeatureColumn>& columns,
                         const std::vector<int64_t>& picks, const std::string& separator) {
  std::string joined;
  for (size_t c = 0; c < columns.size(); ++c) {
    if (c > 0) joined += separator;
    const Tensor& values = columns[c].values;
    if (values.dtype() == DType::kString) {
      joined += values.data<std::string>()[picks[c]];
    } else {
      StrAppend(&joined, values.data<int64_t>()[picks[c]]);
    }
  }
  return joined;
}

uint64_t MixHashes(uint64_t a, uint64_t b) {
  constexpr uint64_t kMultiplier = 0xc6a4a7935bd1e995;
  const auto fold = [](uint64_t x) { return x ^ x >> 47; };
  uint64_t hash = a ^ kMultiplier;
  hash = (hash ^ fold(b * kMultiplier) * kMultiplier) * kMultiplier;
  return fold(fold(hash) * kMultiplier);
}

uint64_t FarmHash(const std::string& text) { return util::Fingerprint64(text.data(), text.size()); }

int64_t HashBucket(uint64_t hash, int64_t num_buckets) {
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  return static_cast<int64_t>(hash % (num_buckets > 0 ? num_buckets : kMax));
}

int64_t HashFeatures(const std::vector<FeatureColumn>& columns, const std::vector<int64_t>& picks,
                     int64_t hash_key, int64_t num_buckets) {
  auto hash = static_cast<uint64_t>(hash_key);
  for (size_t c = 0; c < columns.size(); ++c) {
    hash = MixHashes(hash, HashFeature(columns[c].values, picks[c], FarmHash));
  }
  return HashBucket(hash, num_buckets);
}

}  // namespace penstock

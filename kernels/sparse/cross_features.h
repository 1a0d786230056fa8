// SPDX-License-Identifier: Apache-2.0
//
// Makes one feature of a combination of features: a joined string or a hash. Trained models depend
// on the hashes, so the hashes must always be TensorFlow's. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/sparse/cross_columns.h"

namespace penstock {

// Returns the features picks[c] of columns c, joined by `separator`.
std::string JoinFeatures(const std::vector<FeatureColumn>& columns,
                         const std::vector<int64_t>& picks, const std::string& separator);

// Combines two hashes by the mixing of MurmurHash64A (A. Appleby, public domain).
uint64_t MixHashes(uint64_t a, uint64_t b);
// Returns the hash of a string that the ops use if no strong hash is wanted.
uint64_t FarmHash(const std::string& text);
// Returns the bucket of a hash. If there are no buckets (num_buckets is 0), returns the hash modulo
// 2^63 - 1, so that it is not negative.
int64_t HashBucket(uint64_t hash, int64_t num_buckets);

// Returns an integer feature unchanged; returns the hash of a string.
template <class HashString>
uint64_t HashFeature(const Tensor& values, int64_t i, const HashString& hash) {
  if (values.dtype() == DType::kInt64) return static_cast<uint64_t>(values.data<int64_t>()[i]);
  return hash(values.data<std::string>()[i]);
}

// Returns the bucket of the features picks[c] of columns c, hashed one after the other, beginning
// with `hash_key`.
int64_t HashFeatures(const std::vector<FeatureColumn>& columns, const std::vector<int64_t>& picks,
                     int64_t hash_key, int64_t num_buckets);

}  // namespace penstock

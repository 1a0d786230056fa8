// SPDX-License-Identifier: Apache-2.0
#include "distributed/collective/fingerprint.h"

#include "core/base/status.h"

namespace penstock::collective {
namespace {

const char* NameOf(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return "all-reduce";
    case CollectiveKind::kReduceScatter:
      return "reduce-scatter";
    case CollectiveKind::kAllGather:
      return "all-gather";
    case CollectiveKind::kBroadcast:
      return "broadcast";
  }
  return "?";
}

}  // namespace

uint64_t Mix(uint64_t hash, uint64_t value) {
  hash += 0x9e3779b97f4a7c15u + value;
  hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9u;
  hash = (hash ^ hash >> 27) * 0x94d049bb133111ebu;
  return hash ^ hash >> 31;
}

uint64_t MixText(uint64_t hash, const std::string& text) {
  for (const char c : text) hash = Mix(hash, static_cast<unsigned char>(c));
  return Mix(hash, text.size());
}

uint16_t FingerprintOf(const CollectiveCall& call) {
  uint64_t hash = Mix(static_cast<uint64_t>(call.kind), static_cast<uint64_t>(call.dtype));
  hash = Mix(hash, static_cast<uint64_t>(call.merge) * 2 + (call.divide ? 1 : 0));
  for (const int64_t dim : call.shape.dims()) hash = Mix(hash, static_cast<uint64_t>(dim));
  return static_cast<uint16_t>(Mix(hash, 0));
}

std::string Describe(const CollectiveCall& call) {
  return StrCat(NameOf(call.kind), " of ", Name(call.dtype), call.shape.ToString());
}

}  // namespace penstock::collective

// SPDX-License-Identifier: Apache-2.0
//
// SeedGenerator: the seeds for the iterators of one shuffled dataset, in TensorFlow's order. With
// equal seeds, elements come in the same order as in TensorFlow.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/op/resource.h"
#include "kernels/dataset/iterator_state.h"
#include "kernels/random/philox.h"

namespace penstock {

struct Seeds {
  int64_t seed, seed2;
  Philox Stream() const {
    return Philox::FromSeeds(static_cast<uint64_t>(seed), static_cast<uint64_t>(seed2));
  }
};

// Thread-safe. A resource, because a graph may hold a handle to it. Actions in a StateLog: "next",
// "restore".
class SeedGenerator final : public Resource {
 public:
  static constexpr char kType[] = "SeedGenerator";

  // If both seeds are zero, random ones from `env` replace them. If `reshuffles`, each iterator
  // gets seeds of its own; else all iterators get the same seeds.
  SeedGenerator(Seeds seeds, bool reshuffles, Env& env)
      : reshuffles_(reshuffles), seeds_(Chosen(seeds, env)), numbers_(seeds_.Stream()) {}

  Seeds Next(const UpdateOrigin& origin) {
    MutexLock lock(mu_);
    if (!reshuffles_) return seeds_;
    ++drawn_;
    const int64_t first = numbers_();
    const int64_t second = numbers_();
    Changed(origin, "next", [] { return std::vector<Tensor>(); });
    return {first, second};
  }
  // Writes the seeds of the generator, and how many pairs of seeds it has given to iterators.
  void Save(StateWriter* writer) const {
    MutexLock lock(mu_);
    writer->Int(seeds_.seed);
    writer->Int(seeds_.seed2);
    writer->Int(drawn_);
  }
  // Reads what Save has written. From then on gives the seeds that the saved generator would have
  // given next, also to the dataset's other iterators.
  Status Restore(StateReader* reader, const UpdateOrigin& origin) {
    Seeds seeds{};
    ASSIGN_OR_RETURN(seeds.seed, reader->AnyInt());
    ASSIGN_OR_RETURN(seeds.seed2, reader->AnyInt());
    ASSIGN_OR_RETURN(const int64_t drawn, reader->Int());
    MutexLock lock(mu_);
    seeds_ = seeds;
    drawn_ = drawn;
    numbers_ = PhiloxNumbers(seeds_.Stream(), 2 * static_cast<uint64_t>(drawn_));
    Changed(origin, "restore", [] { return std::vector<Tensor>(); });
    return OkStatus();
  }
  bool reshuffles() const { return reshuffles_; }

  const char* TypeName() const override { return kType; }
  std::string DebugString() const override { return "the seeds of a dataset"; }
  const char* OpaqueReason() const override { return "its dataset may read files and functions"; }

 private:
  static Seeds Chosen(Seeds seeds, Env& env) {
    if (seeds.seed != 0 || seeds.seed2 != 0) return seeds;
    return {static_cast<int64_t>(env.RandomU64()), static_cast<int64_t>(env.RandomU64())};
  }

  const bool reshuffles_;
  mutable Mutex mu_;
  Seeds seeds_ ABSL_GUARDED_BY(mu_);
  PhiloxNumbers numbers_ ABSL_GUARDED_BY(mu_);
  int64_t drawn_ ABSL_GUARDED_BY(mu_) = 0;  // pairs of seeds taken from numbers_
};

}  // namespace penstock

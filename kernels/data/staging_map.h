// SPDX-License-Identifier: Apache-2.0
//
// StagingMap: tuples of any tensors under integer keys, limited by their number and their memory. A
// tuple may be staged in pieces, and taken in pieces; until all its components are there it is
// incomplete, and no operation sees it.
//
// Thread-safe. Actions in a StateLog: "stage" {key, types of a tuple, indices, tensors}, "take"
// {key, indices}, "clear" {}.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "kernels/data/blocking.h"
#include "kernels/data/element_store.h"
#include "kernels/data/staging_area.h"

namespace penstock {

class StagingMap final : public Blocking {
 public:
  // `elements`: staging a whole tuple waits while there are this many complete tuples. `bytes`
  // limits the memory of complete and incomplete tuples.
  using Limits = StagingArea::Limits;
  using Types = std::vector<DType>;
  using Receive = absl::AnyInvocable<void(int64_t key, Element) &&>;
  // The numbers of some components of a tuple, strictly increasing.
  using Indices = std::vector<int64_t>;

  // The resource types of the maps of MapStage and of OrderedMapStage. Both maps behave alike.
  static constexpr char kType[] = "StagingMap", kOrderedType[] = "OrderedStagingMap";

  // `type` is kType or kOrderedType.
  StagingMap(const char* type, std::string name, Limits limits)
      : Blocking(type, std::move(name), kNumLines, Order::kAnyOrder), limits_(limits) {}

  const Limits& limits() const { return limits_; }
  std::string DebugString() const override;
  const char* OpaqueReason() const override { return nullptr; }
  std::vector<Tensor> Describe() const override;
  Status Replay(const ResourceChange& change, const UpdateOrigin& origin) override;

  struct Piece {
    int64_t key = 0;
    Types types;      // types of all components of a tuple
    Indices indices;  // places of `values` in the tuple
    Element values;
  };
  // Adds a tuple or a piece of one. Waits for memory, and with a whole tuple also for room. A tuple
  // whose key has a complete tuple already is dropped. InvalidArgument if the piece does not fit
  // its types, if the types are not those of earlier tuples, or if a component is there already;
  // ResourceExhausted if the piece alone exceeds the memory limit.
  void Stage(Piece piece, const Caller& caller, Done done);

  struct Request {
    std::optional<int64_t> key;  // absent: any key
    Indices indices;
    Types types;  // types of the components at `indices`
    bool keep = false;
  };
  // Waits for a complete tuple and returns components of it, which stay there if `keep`. Without a
  // key, takes from the tuple with the least key. The tuple is gone when all its components have
  // been taken. InvalidArgument if a component is not there, or has another type.
  void Get(Request request, Receive receive, const Caller& caller, Done done);
  void Clear(const UpdateOrigin& origin);
  int64_t size() const;
  int64_t incomplete_size() const;

 private:
  enum Lines { kStages, kTakes, kPeeks, kNumLines };
  class StageOperation;
  class GetOperation;
  // Invalid tensors stand for components that are not there.
  using Tuples = std::map<int64_t, Element>;

  Status CheckPiece(const Piece& piece) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns whether the limits allow the piece now.
  bool HasRoomFor(const Piece& piece, int64_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status CheckRequest(int64_t key, const Element& tuple, const Request& request) const;
  // These functions make every change of the state. REQUIRES: the arguments were checked.
  void Add(Piece piece, const UpdateOrigin& origin) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Join(Piece piece) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Element Take(int64_t key, const Indices& indices, const UpdateOrigin& origin)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<Tuples> TakeAll(const UpdateOrigin& origin) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status ReplayStage(const ResourceChange& change, const UpdateOrigin& origin)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status ReplayTake(const ResourceChange& change, const UpdateOrigin& origin)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Limits limits_;
  Types types_ ABSL_GUARDED_BY(mu_);  // empty: nothing has been staged yet
  Tuples complete_ ABSL_GUARDED_BY(mu_), incomplete_ ABSL_GUARDED_BY(mu_);
  int64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;  // total bytes of all tuples
};

}  // namespace penstock

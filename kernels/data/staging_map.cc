// SPDX-License-Identifier: Apache-2.0
#include "kernels/data/staging_map.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/base/mutex.h"
#include "core/op/state_replay.h"

namespace penstock {
namespace {

constexpr char kMapStageAction[] = "stage", kMapTakeAction[] = "take", kMapClearAction[] = "clear";

bool IsWhole(const StagingMap::Piece& piece) { return piece.indices.size() == piece.types.size(); }

Status OutOfBounds(int64_t index, int64_t key, size_t size) {
  return InvalidArgument("Index '", index, "' for key '", key, "' was out of bounds '", size, "'.");
}

Status CheckOrder(const StagingMap::Indices& indices) {
  if (indices.empty()) return InvalidArgument("Indices are empty");
  const bool ordered = std::ranges::adjacent_find(indices, std::greater_equal()) == indices.end();
  return ordered ? OkStatus() : InvalidArgument("Indices are not strictly ordered");
}

Tensor Numbers(const std::vector<int64_t>& numbers) {
  Tensor made(DType::kInt64, {static_cast<int64_t>(numbers.size())});
  std::ranges::copy(numbers, made.mutable_data<int64_t>());
  return made;
}

StatusOr<std::vector<int64_t>> NumbersOf(const Tensor& tensor, const ReplayValues& values) {
  if (tensor.dtype() != DType::kInt64 || tensor.rank() != 1) {
    return values.Error("a value is no vector of int64");
  }
  const int64_t* const begin = tensor.data<int64_t>();
  return std::vector<int64_t>(begin, begin + tensor.num_elements());
}

}  // namespace

class StagingMap::StageOperation final : public Operation {
 public:
  StageOperation(StagingMap& map, Piece piece, const Caller& caller, Done done)
      : Operation(caller, std::move(done)),
        map_(map),
        bytes_(StagingArea::BytesOf(piece.values)),
        piece_(std::move(piece)) {}

  StatusOr<Progress> Try() override {
    map_.mu_.AssertHeld();
    RETURN_IF_ERROR(map_.CheckPiece(piece_));
    RETURN_IF_ERROR(map_.limits_.CheckSize(bytes_));
    if (!map_.HasRoomFor(piece_, bytes_)) return Progress::kNone;
    map_.Add(std::move(piece_), origin());
    return Progress::kDone;
  }

 private:
  StagingMap& map_;
  const int64_t bytes_;
  Piece piece_;
};

class StagingMap::GetOperation final : public Operation {
 public:
  GetOperation(StagingMap& map, Request request, Receive receive, const Caller& caller, Done done)
      : Operation(caller, std::move(done)),
        map_(map),
        request_(std::move(request)),
        receive_(std::move(receive)) {}

  StatusOr<Progress> Try() override {
    map_.mu_.AssertHeld();
    const auto found = request_.key ? map_.complete_.find(*request_.key) : map_.complete_.begin();
    if (found == map_.complete_.end()) return Progress::kNone;
    key_ = found->first;
    RETURN_IF_ERROR(map_.CheckRequest(key_, found->second, request_));
    if (request_.keep) {
      for (const int64_t index : request_.indices) values_.push_back(found->second[index]);
    } else {
      values_ = map_.Take(key_, request_.indices, origin());
    }
    return Progress::kDone;
  }
  Status Deliver() override {
    std::move(receive_)(key_, std::move(values_));
    return OkStatus();
  }

 private:
  StagingMap& map_;
  const Request request_;
  Receive receive_;
  int64_t key_ = 0;
  Element values_;
};

void StagingMap::Stage(Piece piece, const Caller& caller, Done done) {
  Start(kStages,
        std::make_shared<StageOperation>(*this, std::move(piece), caller, std::move(done)));
}

void StagingMap::Get(Request request, Receive receive, const Caller& caller, Done done) {
  if (Status ordered = CheckOrder(request.indices); !ordered.ok()) {
    return std::move(done)(std::move(ordered));
  }
  const int line = request.keep ? kPeeks : kTakes;
  Start(line, std::make_shared<GetOperation>(*this, std::move(request), std::move(receive), caller,
                                             std::move(done)));
}

Status StagingMap::CheckPiece(const Piece& piece) const {
  RETURN_IF_ERROR(CheckOrder(piece.indices));
  if (piece.indices.size() != piece.values.size()) {
    return InvalidArgument("there are ", piece.indices.size(), " indices and ", piece.values.size(),
                           " values");
  }
  if (!types_.empty() && types_ != piece.types) {
    return InvalidArgument(TypeName(), " '", name(), "' holds tuples of ", types_.size(),
                           " tensors whose types are not dtypes");
  }
  const auto present = incomplete_.find(piece.key);
  for (size_t i = 0; i < piece.indices.size(); ++i) {
    const int64_t index = piece.indices[i];
    if (index < 0 || index >= static_cast<int64_t>(piece.types.size())) {
      return OutOfBounds(index, piece.key, piece.types.size());
    }
    if (piece.values[i].dtype() != piece.types[index]) {
      return InvalidArgument("value ", i, " has type ", Name(piece.values[i].dtype()),
                             ", dtypes says ", Name(piece.types[index]), " for index ", index);
    }
    if (!IsWhole(piece) && present != incomplete_.end() && present->second[index].valid()) {
      return InvalidArgument("The tensor for index '", index, "' for key '", piece.key,
                             "' was already initialized '", piece.types.size(), "'.");
    }
  }
  return OkStatus();
}

bool StagingMap::HasRoomFor(const Piece& piece, int64_t bytes) const {
  if (limits_.bytes > 0 && bytes_ + bytes > limits_.bytes) return false;
  // A piece never waits for the number of tuples, because completing a tuple takes no more memory
  // than the piece itself.
  if (limits_.elements == 0 || !IsWhole(piece)) return true;
  return static_cast<int64_t>(complete_.size()) < limits_.elements;
}

Status StagingMap::CheckRequest(int64_t key, const Element& tuple, const Request& request) const {
  for (size_t i = 0; i < request.indices.size(); ++i) {
    const int64_t index = request.indices[i];
    if (index < 0 || index >= static_cast<int64_t>(tuple.size())) {
      return OutOfBounds(index, key, tuple.size());
    }
    if (!tuple[index].valid()) {
      return InvalidArgument("Tensor at index '", index, "' for key '", key,
                             "' has already been removed.");
    }
    if (tuple[index].dtype() != request.types[i]) {
      return InvalidArgument(TypeName(), " '", name(), "': the tensor at index ", index, " of key ",
                             key, " has type ", Name(tuple[index].dtype()), ", dtypes says ",
                             Name(request.types[i]));
    }
  }
  return OkStatus();
}

void StagingMap::Add(Piece piece, const UpdateOrigin& origin) {
  Piece recorded;
  if (logged()) recorded = piece;
  Join(std::move(piece));
  Changed(origin, kMapStageAction, [&] {
    std::vector<int64_t> types;
    for (const DType type : recorded.types) types.push_back(Number(type));
    std::vector<Tensor> values = {Value(recorded.key), Numbers(types), Numbers(recorded.indices)};
    values.insert(values.end(), recorded.values.begin(), recorded.values.end());
    return values;
  });
}

void StagingMap::Join(Piece piece) {
  types_ = piece.types;
  Element whole;
  bytes_ += StagingArea::BytesOf(piece.values);
  if (IsWhole(piece)) {
    whole = std::move(piece.values);
  } else {
    Element& tuple = incomplete_[piece.key];
    tuple.resize(types_.size());
    for (size_t i = 0; i < piece.indices.size(); ++i) {
      tuple[piece.indices[i]] = std::move(piece.values[i]);
    }
    if (!std::ranges::all_of(tuple, &Tensor::valid)) return;
    whole = std::move(tuple);
    incomplete_.erase(piece.key);
  }
  const int64_t bytes = StagingArea::BytesOf(whole);
  if (!complete_.emplace(piece.key, std::move(whole)).second) bytes_ -= bytes;
}

Element StagingMap::Take(int64_t key, const Indices& indices, const UpdateOrigin& origin) {
  const auto found = complete_.find(key);
  Element& tuple = found->second;
  Element taken;
  for (const int64_t index : indices) taken.push_back(std::exchange(tuple[index], Tensor()));
  bytes_ -= StagingArea::BytesOf(taken);
  if (std::ranges::none_of(tuple, &Tensor::valid)) complete_.erase(found);
  Changed(origin, kMapTakeAction, [&] {
    return std::vector<Tensor>{Value(key), Numbers(indices)};
  });
  return taken;
}

std::vector<StagingMap::Tuples> StagingMap::TakeAll(const UpdateOrigin& origin) {
  std::vector<Tuples> all(2);
  all[0].swap(complete_);
  all[1].swap(incomplete_);
  bytes_ = 0;
  Changed(origin, kMapClearAction, [] { return std::vector<Tensor>(); });
  return all;
}

void StagingMap::Clear(const UpdateOrigin& origin) {
  std::vector<Tuples> dropped;  // freed without the lock
  Ended ended;
  {
    MutexLock lock(mu_);
    dropped = TakeAll(origin);
    Advance(&ended);
  }
  Finish(ended);
}

int64_t StagingMap::size() const {
  MutexLock lock(mu_);
  return static_cast<int64_t>(complete_.size());
}

int64_t StagingMap::incomplete_size() const {
  MutexLock lock(mu_);
  return static_cast<int64_t>(incomplete_.size());
}

std::string StagingMap::DebugString() const {
  return StrCat(TypeName(), " '", name(), "', ", size(), " tuples, ", incomplete_size(),
                " incomplete");
}

std::vector<Tensor> StagingMap::Describe() const {
  return {Value(limits_.elements), Value(limits_.bytes)};
}

Status StagingMap::Replay(const ResourceChange& change, const UpdateOrigin& origin) {
  MutexLock lock(mu_);
  if (change.action == kMapStageAction) return ReplayStage(change, origin);
  if (change.action == kMapTakeAction) return ReplayTake(change, origin);
  if (change.action != kMapClearAction) return ReplayValues(change).UnknownAction();
  TakeAll(origin);
  return OkStatus();
}

Status StagingMap::ReplayStage(const ResourceChange& change, const UpdateOrigin& origin) {
  const ReplayValues values(change);
  RETURN_IF_ERROR(values.ExpectAtLeast(3));
  Piece piece;
  ASSIGN_OR_RETURN(piece.key, values.Int(0));
  ASSIGN_OR_RETURN(const std::vector<int64_t> types, NumbersOf(values.Get(1), values));
  for (const int64_t type : types) {
    ASSIGN_OR_RETURN(piece.types.emplace_back(), DTypeFromNumber(static_cast<int>(type)));
  }
  ASSIGN_OR_RETURN(piece.indices, NumbersOf(values.Get(2), values));
  piece.values.assign(change.values.begin() + 3, change.values.end());
  RETURN_IF_ERROR(CheckPiece(piece));
  Add(std::move(piece), origin);
  return OkStatus();
}

Status StagingMap::ReplayTake(const ResourceChange& change, const UpdateOrigin& origin) {
  const ReplayValues values(change);
  RETURN_IF_ERROR(values.Expect(2));
  ASSIGN_OR_RETURN(const int64_t key, values.Int(0));
  ASSIGN_OR_RETURN(const Indices indices, NumbersOf(values.Get(1), values));
  RETURN_IF_ERROR(CheckOrder(indices));
  const auto found = complete_.find(key);
  if (found == complete_.end()) return values.Error("there is no tuple with this key");
  for (const int64_t index : indices) {
    if (index < 0 || index >= static_cast<int64_t>(found->second.size()) ||
        !found->second[index].valid()) {
      return values.Error("the tuple has no such component");
    }
  }
  Take(key, indices, origin);
  return OkStatus();
}

namespace {

template <const char* kType>
StatusOr<std::shared_ptr<Resource>> MakeStagingMap(const std::string& name,
                                                   const ReplayValues& values, Env&) {
  RETURN_IF_ERROR(values.Expect(2));
  StagingMap::Limits limits;
  ASSIGN_OR_RETURN(limits.elements, values.Int(0));
  ASSIGN_OR_RETURN(limits.bytes, values.Int(1));
  return std::make_shared<StagingMap>(kType, name, limits);
}
const ResourceMakerDeclaration map_maker(StagingMap::kType, MakeStagingMap<StagingMap::kType>);
const ResourceMakerDeclaration ordered_map_maker(StagingMap::kOrderedType,
                                                 MakeStagingMap<StagingMap::kOrderedType>);

}  // namespace

}  // namespace penstock

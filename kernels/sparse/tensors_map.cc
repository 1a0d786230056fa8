// SPDX-License-Identifier: Apache-2.0
#include "kernels/sparse/tensors_map.h"

#include <memory>
#include <set>
#include <utility>

#include "core/op/state_replay.h"

namespace penstock {
namespace {

constexpr char kAddAction[] = "add", kTakeAction[] = "take";

StatusOr<std::shared_ptr<Resource>> MakeSparseTensorsMap(const std::string& name,
                                                         const ReplayValues& values, Env&) {
  RETURN_IF_ERROR(values.Expect(0));
  return std::make_shared<SparseTensorsMap>(name);
}
const ResourceMakerDeclaration sparse_tensors_map_maker(SparseTensorsMap::kType,
                                                        MakeSparseTensorsMap);

}  // namespace

std::string SparseTensorsMap::DebugString() const {
  return StrCat(kType, " '", name_, "', ", size(), " sparse tensors");
}

int64_t SparseTensorsMap::size() const {
  MutexLock lock(mu_);
  return std::ssize(entries_);
}

int64_t SparseTensorsMap::Add(std::vector<Entry> entries, const UpdateOrigin& origin) {
  MutexLock lock(mu_);
  const int64_t first = next_;
  std::vector<Tensor> record;
  if (logged()) {
    record.push_back(Value(first));
    for (const Entry& entry : entries) {
      record.insert(record.end(), {entry.indices, entry.values, entry.shape});
    }
  }
  for (Entry& entry : entries) entries_.emplace(next_++, std::move(entry));
  Changed(origin, kAddAction, [&] { return std::move(record); });
  return first;
}

StatusOr<std::vector<SparseTensorsMap::Entry>> SparseTensorsMap::Take(
    absl::Span<const int64_t> numbers, const UpdateOrigin& origin) {
  MutexLock lock(mu_);
  std::set<int64_t> asked;
  for (const int64_t number : numbers) {
    if (!entries_.contains(number)) {
      return InvalidArgument("Unable to find SparseTensor: ", number, " in map: ", name_);
    }
    if (!asked.insert(number).second) {
      return InvalidArgument("SparseTensor ", number, " of map '", name_, "' is asked for twice");
    }
  }
  std::vector<Entry> taken;
  for (const int64_t number : numbers) {
    taken.push_back(std::move(entries_.extract(number).mapped()));
  }
  Changed(origin, kTakeAction, [&] {
    return std::vector<Tensor>{Tensor::Vector<int64_t>({numbers.begin(), numbers.end()})};
  });
  return taken;
}

Status SparseTensorsMap::Replay(const ResourceChange& change, const UpdateOrigin& origin) {
  const ReplayValues values(change);
  RETURN_IF_ERROR(values.ExpectAtLeast(1));
  if (change.action == kTakeAction) {
    RETURN_IF_ERROR(values.Expect(1));
    const Tensor& numbers = values.Get(0);
    if (numbers.dtype() != DType::kInt64 || numbers.rank() != 1) {
      return values.Error("the numbers must be a vector of int64");
    }
    return Take(numbers.flat<int64_t>(), origin).status();
  }
  if (change.action != kAddAction) return values.UnknownAction();
  ASSIGN_OR_RETURN(const int64_t first, values.Int(0));
  RETURN_IF_ERROR(values.Expect(1 + (values.size() - 1) / 3 * 3));
  std::vector<Entry> entries;
  for (size_t i = 1; i < values.size(); i += 3) {
    entries.push_back({values.Get(i), values.Get(i + 1), values.Get(i + 2)});
  }
  {
    MutexLock lock(mu_);
    if (first != next_) {
      return values.Error(StrCat("the first number is ", first, ", expected ", next_));
    }
  }
  Add(std::move(entries), origin);
  return OkStatus();
}

}  // namespace penstock

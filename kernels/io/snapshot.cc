// SPDX-License-Identifier: Apache-2.0
#include "kernels/io/snapshot.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/tensor/allocator.h"

namespace penstock {
namespace {

// The number of bytes that are copied under a variable's lock at a time. At 5 GB/s an update waits
// 0.2 ms for the lock.
constexpr int64_t kPieceBytes = 1 << 20;
// The minimum size of values that are copied. Smaller values are shared, because an update that has
// to copy 1 MiB waits only 0.2 ms.
constexpr int64_t kCopiedBytesMin = 1 << 20;

bool IsOnHost(const Tensor& value) {
  const Allocator* const allocator = value.buffer()->allocator();
  return allocator == nullptr || allocator->host_accessible();
}

void CopyBytes(const Tensor& from, Tensor& to, int64_t begin, int64_t end) {
  std::memcpy(static_cast<char*>(to.mutable_raw_data()) + begin,
              static_cast<const char*>(from.raw_data()) + begin, end - begin);
}

std::vector<Tensor> NoValues() { return {}; }

}  // namespace

// Begins to watch the variable, and allocates memory for its copy. Returns nullopt if the
// variable's value is to be shared instead of copied: it is small, of a type that cannot be copied
// as bytes, or not in host memory.
StatusOr<std::optional<Snapshot::Part>> Snapshot::Begin(std::shared_ptr<Variable> variable) {
  Shape shape;
  std::unique_ptr<ChangeWatch> watch;
  RETURN_IF_ERROR(variable->Inspect([&](const Tensor& value) {
    const auto bytes = static_cast<int64_t>(value.bytes());
    if (bytes < kCopiedBytesMin || !IsPlain(value.dtype()) || !IsOnHost(value)) return OkStatus();
    // Reads the shape under the same lock under which the watch starts, so that the watch reports a
    // later assignment of another shape as a change of all elements.
    shape = value.shape();
    watch = std::make_unique<ChangeWatch>(*variable, bytes);
    return OkStatus();
  }));
  if (watch == nullptr) return std::optional<Part>();
  ASSIGN_OR_RETURN(Tensor copy, Tensor::Make(CpuAllocator(), variable->dtype(), shape));
  return std::optional<Part>({std::move(variable), std::move(copy), std::move(watch)});
}

Status Snapshot::Copy(Part& part, Check check) {
  const auto bytes = static_cast<int64_t>(part.copy.bytes());
  for (int64_t begin = 0; begin < bytes && !part.watch->all(); begin += kPieceBytes) {
    RETURN_IF_ERROR(check());
    RETURN_IF_ERROR(part.variable->Inspect([&](const Tensor& value) {
      // If all elements have changed, stops: the variable was assigned, and may have another shape
      // now.
      if (part.watch->all()) return OkStatus();
      CopyBytes(value, part.copy, begin, std::min(bytes, begin + kPieceBytes));
      return OkStatus();
    }));
  }
  return CopyChanges(part, check);
}

// Copies again what has changed since the first copy, so that little is left to copy when the
// snapshot is cut.
Status Snapshot::CopyChanges(Part& part, Check check) {
  std::vector<std::pair<int64_t, int64_t>> changes;
  part.watch->Take([&](int64_t begin, int64_t end) { changes.emplace_back(begin, end); });
  constexpr size_t kChunks = kPieceBytes / ChangeWatch::kChunkBytes;
  for (size_t first = 0; first < changes.size(); first += kChunks) {
    RETURN_IF_ERROR(check());
    RETURN_IF_ERROR(part.variable->Inspect([&](const Tensor& value) {
      if (part.watch->all()) return OkStatus();
      for (size_t i = first; i < std::min(changes.size(), first + kChunks); ++i) {
        CopyBytes(value, part.copy, changes[i].first, changes[i].second);
      }
      return OkStatus();
    }));
  }
  return OkStatus();
}

StatusOr<std::vector<Snapshot::Part>> Snapshot::CopyWhole(const Variables& variables, Check check) {
  std::vector<Part> parts;
  for (const std::shared_ptr<Variable>& variable : variables) {
    ASSIGN_OR_RETURN(std::optional<Part> part, Begin(variable));
    if (!part) continue;
    RETURN_IF_ERROR(Copy(*part, check));
    if (!part->watch->all()) parts.push_back(*std::move(part));
  }
  return parts;
}

Status Snapshot::CopyAhead(const std::string& save, const Variables& variables, Check check,
                           const UpdateOrigin& origin) {
  std::vector<Part> parts;
  bool again = false;
  {
    MutexLock lock(mu_);
    again = save_ == save;
    parts = std::exchange(parts_, {});
    save_ = save;
    kept_.reset();
    Changed(origin, "copy", NoValues);
  }
  if (!again) {
    parts.clear();  // frees the old copies before it makes new ones, because they are large
    ASSIGN_OR_RETURN(parts, CopyWhole(variables, check));
  } else {
    for (Part& part : parts) RETURN_IF_ERROR(CopyChanges(part, check));
  }
  MutexLock lock(mu_);
  if (save_ != save) return OkStatus();
  std::swap(parts_, parts);
  Changed(origin, "copy", NoValues);
  return OkStatus();
}

// Copies the ranges that have changed since they were last copied. REQUIRES: the caller holds the
// variable's lock.
void Snapshot::BringUpToDate(Part& part, const Tensor& value) {
  part.watch->Take([&](int64_t begin, int64_t end) { CopyBytes(value, part.copy, begin, end); });
}

StatusOr<std::vector<Tensor>> Snapshot::Cut(const std::string& save, const Variables& variables,
                                            const UpdateOrigin& origin) {
  std::vector<Part> parts;
  {
    MutexLock lock(mu_);
    if (save_ == save) {
      parts = std::exchange(parts_, {});
      Changed(origin, "cut", NoValues);
    }
  }
  std::vector<Tensor> values;
  for (const std::shared_ptr<Variable>& variable : variables) {
    const auto part = std::find_if(parts.begin(), parts.end(),
                                   [&](const Part& p) { return p.variable == variable; });
    RETURN_IF_ERROR(variable->Inspect([&](const Tensor& value) {
      if (part == parts.end() || part->watch->all()) {
        values.push_back(value);
      } else {
        BringUpToDate(*part, value);
        values.push_back(std::move(part->copy));
      }
      return OkStatus();
    }));
  }
  return values;
}

void Snapshot::Keep(const std::string& save, std::vector<Tensor> values,
                    const UpdateOrigin& origin) {
  MutexLock lock(mu_);
  save_ = save;
  kept_ = std::move(values);
  Changed(origin, "keep", NoValues);
}

StatusOr<std::vector<Tensor>> Snapshot::Take(const std::string& save, const UpdateOrigin& origin) {
  MutexLock lock(mu_);
  if (save_ != save || !kept_) {
    return FailedPrecondition(
        "the snapshot of this save is gone: another save has begun, or the "
        "task was started again");
  }
  Changed(origin, "take", NoValues);
  return *std::exchange(kept_, std::nullopt);
}

}  // namespace penstock

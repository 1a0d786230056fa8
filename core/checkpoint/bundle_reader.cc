// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/bundle_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "core/base/match_files.h"
#include "core/checkpoint/part_reader.h"
#include "core/checkpoint/table.h"

namespace penstock {
namespace {

// The maximum size of an index. A real index has some hundred bytes per tensor.
constexpr int64_t kIndexBytesMax = int64_t{1} << 30;
// REQUIRES: the slice has been checked.
TensorSlice BoxOf(const TensorSlice& slice, const Shape& shape) {
  auto box = slice.Within(shape);
  CHECK_OK(box.status());
  return *std::move(box);
}

}  // namespace

StatusOr<std::unique_ptr<BundleReader>> BundleReader::Open(Env& env, std::string prefix) {
  const std::string path = IndexPath(prefix);
  if (!env.FileExists(path)) {
    RETURN_IF_ERROR(CheckPattern(env, path));
    return NotFound(
        "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for ",
        prefix, ": there is no checkpoint of that name, no file '", path, "'");
  }
  std::unique_ptr<BundleReader> reader(new BundleReader(env, std::move(prefix)));
  const Status status = reader->ReadIndex();
  if (!status.ok()) return Annotate(status, StrCat("checkpoint index '", path, "'"));
  return reader;
}

Status BundleReader::ReadIndex() {
  ASSIGN_OR_RETURN(const auto file, env_.OpenFile(IndexPath(prefix())));
  if (file->size() > kIndexBytesMax) {
    return DataLoss("its index has ", file->size(), " bytes, expected at most ", kIndexBytesMax);
  }
  std::string contents(file->size(), '\0');
  RETURN_IF_ERROR(file->Read(0, file->size(), contents.data()));
  return ParseIndex(contents);
}

Status BundleReader::CheckIndex(Env& env, string_view contents) {
  if (static_cast<int64_t>(contents.size()) > kIndexBytesMax) {
    return DataLoss("its index has ", contents.size(), " bytes, expected at most ", kIndexBytesMax);
  }
  return BundleReader(env, "").ParseIndex(contents);
}

Status BundleReader::ParseIndex(string_view contents) {
  RETURN_IF_ERROR(VisitTable(contents, [this](string_view key, string_view value) {
    return Annotate(AddEntry(key, value), StrCat("entry '", absl::CHexEscape(key), "'"));
  }));
  if (num_shards_ == 0) return DataLoss("it has no header");
  for (const auto& [name, entry] : tensors_) {
    RETURN_IF_ERROR(Annotate(CheckSlices(name, entry), StrCat("tensor '", name, "'")));
  }
  return OkStatus();
}

Status BundleReader::AddEntry(string_view key, string_view value) {
  if (key.empty()) {
    ASSIGN_OR_RETURN(num_shards_, ParseBundleHeader(value));
    return OkStatus();
  }
  if (num_shards_ == 0) return DataLoss("the first entry is not the header");
  ASSIGN_OR_RETURN(BundleEntry entry, ParseBundleEntry(value));
  if (entry.shard >= num_shards_) {
    return DataLoss("it is in shard ", entry.shard, " of ", num_shards_);
  }
  Entries& entries = key[0] == '\0' ? slices_ : tensors_;
  entries.emplace_hint(entries.end(), key, std::move(entry));
  return OkStatus();
}

Status BundleReader::CheckSlices(const std::string& name, const BundleEntry& entry) const {
  if (entry.slices.empty()) return OkStatus();
  for (const TensorSlice& slice : entry.slices) {
    const auto found = slices_.find(SliceKey(name, slice));
    if (found == slices_.end()) return DataLoss("slice '", slice.ToString(), "' is missing");
    const BundleEntry& part = found->second;
    if (part.dtype != entry.dtype || !part.slices.empty() ||
        part.shape != BoxOf(slice, entry.shape).shape()) {
      return DataLoss("slice '", slice.ToString(), "' of ", Name(entry.dtype),
                      entry.shape.ToString(), " is stored as ", Name(part.dtype),
                      part.shape.ToString());
    }
  }
  std::vector<TensorSlice> boxes;
  for (const TensorSlice& slice : entry.slices) boxes.push_back(BoxOf(slice, entry.shape));
  RETURN_IF_ERROR(CheckDisjoint(boxes));
  return CheckOwnBytes(name, entry);
}

// Checks that slices do not share bytes. If they could, a small file could claim to hold a tensor
// of any size.
Status BundleReader::CheckOwnBytes(const std::string& name, const BundleEntry& entry) const {
  std::vector<const BundleEntry*> parts;
  for (const TensorSlice& slice : entry.slices) {
    const BundleEntry& part = Slice(name, slice);
    if (part.size > 0) parts.push_back(&part);
  }
  const auto place = [](const BundleEntry* part) { return std::pair(part->shard, part->offset); };
  std::sort(parts.begin(), parts.end(),
            [&](const BundleEntry* a, const BundleEntry* b) { return place(a) < place(b); });
  for (size_t i = 1; i < parts.size(); ++i) {
    const BundleEntry &a = *parts[i - 1], &b = *parts[i];
    if (a.shard != b.shard || b.offset - a.offset >= a.size) continue;
    return DataLoss("two of its slices share byte ", b.offset, " of shard ", b.shard);
  }
  return OkStatus();
}

StatusOr<const BundleEntry*> BundleReader::Find(string_view name) const {
  const auto found = tensors_.find(std::string_view(name.data(), name.size()));
  if (found != tensors_.end()) return &found->second;
  return KeyNotFound(name);
}

std::vector<std::string> BundleReader::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : tensors_) names.push_back(name);
  return names;
}

StatusOr<SavedTensor> BundleReader::Describe(string_view name) const {
  ASSIGN_OR_RETURN(const BundleEntry* entry, Find(name));
  return SavedTensor{entry->dtype, entry->shape};
}

const BundleEntry& BundleReader::Slice(string_view name, const TensorSlice& slice) const {
  const auto found = slices_.find(SliceKey(name, slice));
  CHECK(found != slices_.end(), "slice ", slice.ToString(), " of ", name);
  return found->second;
}

Status BundleReader::CheckDataFiles() const {
  for (const Entries* entries : {&tensors_, &slices_}) {
    for (const auto& [key, entry] : *entries) {
      if (entry.slices.empty()) RETURN_IF_ERROR(DataFile(entry).status());
    }
  }
  return OkStatus();
}

StatusOr<const RandomAccessFile*> BundleReader::DataFile(const BundleEntry& entry) const {
  const std::string path = DataPath(prefix(), entry.shard, num_shards_);
  MutexLock lock(mu_);
  std::unique_ptr<RandomAccessFile>& file = files_[entry.shard];
  if (file == nullptr) {
    ASSIGN_OR_RETURN(file, env_.OpenFile(path));
  }
  if (entry.offset + entry.size > file->size()) {
    return DataLoss("'", path, "' ends at ", file->size(), ", and its bytes ", entry.offset, " to ",
                    entry.offset + entry.size, " are needed");
  }
  return file.get();
}

StatusOr<std::vector<BundleReader::Part>> BundleReader::PartsOf(string_view name,
                                                                const BundleEntry& entry,
                                                                const TensorSlice& box) const {
  std::vector<Part> parts;
  if (entry.slices.empty()) {
    ASSIGN_OR_RETURN(const RandomAccessFile* file, DataFile(entry));
    parts.push_back({&entry, BoxOf(TensorSlice::Whole(entry.shape.rank()), entry.shape), file});
    return parts;
  }
  int64_t covered = 0;
  for (const TensorSlice& slice : entry.slices) {
    TensorSlice own = BoxOf(slice, entry.shape);
    const int64_t common = CommonElements(own, box);
    if (common == 0) continue;
    covered += common;
    const BundleEntry& part = Slice(name, slice);
    ASSIGN_OR_RETURN(const RandomAccessFile* file, DataFile(part));
    parts.push_back({&part, std::move(own), file});
  }
  // Parts are disjoint, so they cover the box if their elements add up to the box's.
  if (covered == CommonElements(box, box)) return parts;
  return NotFound("the checkpoint holds only some of slice '", box.ToString(), "'");
}

StatusOr<Tensor> BundleReader::Read(string_view name, Allocator& allocator) const {
  ASSIGN_OR_RETURN(const BundleEntry* entry, Find(name));
  return ReadSlice(name, TensorSlice::Whole(entry->shape.rank()), allocator);
}

StatusOr<Tensor> BundleReader::ReadSlice(string_view name, const TensorSlice& slice,
                                         Allocator& allocator) const {
  ASSIGN_OR_RETURN(const BundleEntry* entry, Find(name));
  const auto read = [&]() -> StatusOr<Tensor> {
    ASSIGN_OR_RETURN(const TensorSlice box, slice.Within(entry->shape));
    ASSIGN_OR_RETURN(const std::vector<Part> parts, PartsOf(name, *entry, box));
    ASSIGN_OR_RETURN(Tensor tensor, Tensor::Make(allocator, entry->dtype, box.shape()));
    for (const Part& part : parts) {
      RETURN_IF_ERROR(ReadPart(*part.file, *part.entry, part.box, box, &tensor));
    }
    return tensor;
  };
  auto tensor = read();
  if (tensor.ok()) return tensor;
  return Annotate(tensor.status(), StrCat("tensor '", name, "' of checkpoint '", prefix(), "'"));
}

Status BundleReader::Verify(string_view name) const {
  ASSIGN_OR_RETURN(const BundleEntry* entry, Find(name));
  const auto verify = [&]() -> Status {
    std::vector<const BundleEntry*> entries;
    if (entry->slices.empty()) entries.push_back(entry);
    for (const TensorSlice& slice : entry->slices) {
      entries.push_back(&Slice(name, slice));
    }
    for (const BundleEntry* part : entries) {
      ASSIGN_OR_RETURN(const RandomAccessFile* file, DataFile(*part));
      RETURN_IF_ERROR(VerifyPart(*file, *part));
    }
    return OkStatus();
  };
  return Annotate(verify(), StrCat("tensor '", name, "' of checkpoint '", prefix(), "'"));
}

}  // namespace penstock

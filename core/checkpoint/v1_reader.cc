// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/v1_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/match_files.h"
#include "core/checkpoint/slice_proto.h"
#include "core/wire/tensor_fields.h"
#include "proto/tensorflow/checkpoint.pb.h"

namespace penstock {
namespace {

constexpr int kConsumerVersion = 1;
// A block decompresses to at most 22 times its size, and an element needs at least one byte of it.
constexpr int64_t kElementsPerByteMax = 22;

StatusOr<tensorflow::SavedTensorSlices> Parse(string_view bytes) {
  tensorflow::SavedTensorSlices slices;
  if (bytes.size() > INT32_MAX ||
      !slices.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return DataLoss("an entry is not a SavedTensorSlices");
  }
  return slices;
}

// Parses the values of one slice, which must be complete.
StatusOr<Tensor> ParseSlice(string_view bytes, string_view name, DType dtype, const Shape& shape,
                            Allocator& allocator) {
  ASSIGN_OR_RETURN(const tensorflow::SavedTensorSlices slices, Parse(bytes));
  if (slices.data().name() != name) {
    return DataLoss("its entry holds tensor '", slices.data().name(), "' instead");
  }
  const tensorflow::TensorProto& values = slices.data().data();
  if (ElementsInField(values, dtype) != shape.num_elements()) {
    return DataLoss("a slice of shape ", shape.ToString(), " has ", ElementsInField(values, dtype),
                    " values of type ", Name(dtype));
  }
  ASSIGN_OR_RETURN(Tensor tensor, Tensor::Make(allocator, dtype, shape));
  if (!FillFromFields(values, &tensor)) return Unimplemented("tensors of type ", Name(dtype));
  return tensor;
}

void CopyCommon(const Tensor& from, const TensorSlice& from_box, const TensorSlice& to_box,
                Tensor* to) {
  if (from.dtype() == DType::kString) {
    const std::string* in = from.data<std::string>();
    std::string* out = to->mutable_data<std::string>();
    ForEachCommonRun(from_box, to_box, [&](int64_t from_element, int64_t to_element, int64_t n) {
      std::copy(in + from_element, in + from_element + n, out + to_element);
    });
    return;
  }
  const auto width = static_cast<int64_t>(SizeOf(from.dtype()));
  const char* in = static_cast<const char*>(from.raw_data());
  char* out = static_cast<char*>(to->mutable_raw_data());
  ForEachCommonRun(from_box, to_box, [&](int64_t from_element, int64_t to_element, int64_t n) {
    std::memcpy(out + to_element * width, in + from_element * width, n * width);
  });
}

}  // namespace

StatusOr<std::unique_ptr<V1Reader>> V1Reader::Open(Env& env, const std::string& pattern, int file) {
  std::vector<std::string> paths = MatchFiles(env, pattern);
  if (paths.empty()) {
    RETURN_IF_ERROR(CheckPattern(env, pattern));
    return NotFound(
        "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for ",
        pattern, ": there is no checkpoint of that name");
  }
  if (file >= 0 && file < static_cast<int>(paths.size())) paths = {paths[file]};
  std::unique_ptr<V1Reader> reader(new V1Reader(pattern));
  for (const std::string& path : paths) {
    const Status status = reader->AddFile(env, path);
    if (!status.ok()) return Annotate(status, StrCat("V1 checkpoint '", path, "'"));
  }
  return reader;
}

Status V1Reader::AddFile(Env& env, const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<RandomAccessFile> bytes, env.OpenFile(path));
  ASSIGN_OR_RETURN(Table table, Table::Open(*bytes));
  bytes_ += bytes->size();
  files_.push_back(std::make_unique<File>(File{std::move(bytes), std::move(table)}));
  const File& file = *files_.back();
  const Status status =
      file.table.Find("", [&](string_view list) { return AddTensors(file, list); });
  if (status.code() == StatusCode::kNotFound) return DataLoss("it has no list of tensors");
  return status;
}

Status V1Reader::AddTensors(const File& file, string_view list) {
  ASSIGN_OR_RETURN(const tensorflow::SavedTensorSlices slices, Parse(list));
  const int needed = slices.meta().versions().min_consumer();
  if (needed > kConsumerVersion) {
    return Unimplemented("the data need a reader of version ", needed, "; this one is ",
                         kConsumerVersion);
  }
  for (const tensorflow::SavedSliceMeta& tensor : slices.meta().tensor()) {
    const auto add = [&]() -> Status {
      ASSIGN_OR_RETURN(const DType dtype, DTypeFromNumber(tensor.type()));
      ASSIGN_OR_RETURN(Shape shape, SavedShapeFromProto(tensor.shape()));
      const auto [at, is_new] = tensors_.try_emplace(tensor.name());
      Entry& entry = at->second;
      if (is_new) {
        entry.dtype = dtype;
        entry.shape = std::move(shape);
      } else if (entry.dtype != dtype || entry.shape != shape) {
        return DataLoss("it is ", Name(entry.dtype), entry.shape.ToString(), " in one place and ",
                        Name(dtype), shape.ToString(), " in another");
      }
      for (const auto& proto : tensor.slice()) {
        TensorSlice slice = SliceFromProto(proto);
        ASSIGN_OR_RETURN(TensorSlice box, slice.Within(entry.shape));
        entry.parts.push_back({std::move(slice), std::move(box), &file});
      }
      return OkStatus();
    };
    RETURN_IF_ERROR(Annotate(add(), StrCat("tensor '", tensor.name(), "'")));
  }
  return OkStatus();
}

std::vector<std::string> V1Reader::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : tensors_) names.push_back(name);
  return names;
}

StatusOr<const V1Reader::Entry*> V1Reader::Find(string_view name) const {
  const auto found = tensors_.find(std::string_view(name.data(), name.size()));
  if (found != tensors_.end()) return &found->second;
  return KeyNotFound(name);
}

StatusOr<SavedTensor> V1Reader::Describe(string_view name) const {
  ASSIGN_OR_RETURN(const Entry* entry, Find(name));
  return *entry;
}

StatusOr<std::vector<const V1Reader::Part*>> V1Reader::PartsOf(const Entry& entry,
                                                               const TensorSlice& box) const {
  const int64_t wanted = CommonElements(box, box);
  // Check the number of elements before memory is allocated for them.
  if (wanted / kElementsPerByteMax > bytes_) {
    return DataLoss(wanted, " elements are more than ", bytes_, " bytes can hold");
  }
  std::vector<const Part*> parts;
  std::vector<TensorSlice> boxes;
  int64_t covered = 0;
  for (const Part& part : entry.parts) {
    const int64_t common = CommonElements(part.box, box);
    if (common == 0) continue;
    parts.push_back(&part);
    boxes.push_back(part.box);
    if (__builtin_add_overflow(covered, common, &covered)) covered = INT64_MAX;
  }
  RETURN_IF_ERROR(CheckDisjoint(boxes));
  // Parts are disjoint, so they cover the box if their elements add up to the box's.
  if (covered == wanted) return parts;
  return NotFound("the checkpoint holds only some of slice '", box.ToString(), "'");
}

StatusOr<Tensor> V1Reader::ReadPart(string_view name, const Entry& entry, const Part& part,
                                    Allocator& allocator) const {
  Tensor tensor;
  const auto parse = [&](string_view bytes) -> Status {
    ASSIGN_OR_RETURN(tensor, ParseSlice(bytes, name, entry.dtype, part.box.shape(), allocator));
    return OkStatus();
  };
  const Status status = part.file->table.Find(SliceKey(name, part.slice), parse);
  if (status.code() == StatusCode::kNotFound) {
    return DataLoss("slice '", part.slice.ToString(), "' is missing");
  }
  RETURN_IF_ERROR(status);
  return tensor;
}

StatusOr<Tensor> V1Reader::Read(string_view name, const Entry& entry, const TensorSlice& slice,
                                Allocator& allocator) const {
  ASSIGN_OR_RETURN(const TensorSlice box, slice.Within(entry.shape));
  ASSIGN_OR_RETURN(const std::vector<const Part*> parts, PartsOf(entry, box));
  if (parts.size() == 1 && parts[0]->box == box) return ReadPart(name, entry, *parts[0], allocator);
  ASSIGN_OR_RETURN(Tensor tensor, Tensor::Make(allocator, entry.dtype, box.shape()));
  for (const Part* part : parts) {
    ASSIGN_OR_RETURN(const Tensor stored, ReadPart(name, entry, *part, allocator));
    CopyCommon(stored, part->box, box, &tensor);
  }
  return tensor;
}

StatusOr<Tensor> V1Reader::ReadSlice(string_view name, const TensorSlice& slice,
                                     Allocator& allocator) const {
  ASSIGN_OR_RETURN(const Entry* entry, Find(name));
  StatusOr<Tensor> tensor = Read(name, *entry, slice, allocator);
  if (tensor.ok()) return tensor;
  return Annotate(tensor.status(), StrCat("tensor '", name, "' of V1 checkpoint '", prefix(), "'"));
}

}  // namespace penstock

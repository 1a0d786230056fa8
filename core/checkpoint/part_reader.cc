// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/part_reader.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/base/crc32c.h"
#include "core/checkpoint/tensor_bytes.h"
#include "core/checkpoint/variant_bytes.h"

namespace penstock {
namespace {

// Reads the bytes of an entry from first to last, in pieces.
class PieceReader {
 public:
  PieceReader(const RandomAccessFile& file, const BundleEntry& entry)
      : file_(file), entry_(entry) {}

  int64_t position() const { return position_; }
  int64_t left() const { return entry_.size - position_; }

  // Reads the next `count` bytes. REQUIRES: count <= left().
  Status Next(int64_t count, char* to) {
    RETURN_IF_ERROR(file_.Read(entry_.offset + position_, count, to));
    crc_ = ExtendCrc32c(crc_, {to, static_cast<size_t>(count)});
    position_ += count;
    return OkStatus();
  }

  Status Finish() const {
    if (MaskCrc(crc_) == entry_.masked_crc) return OkStatus();
    return DataLoss("the checksum is wrong: the data are damaged");
  }

 private:
  const RandomAccessFile& file_;
  const BundleEntry& entry_;
  int64_t position_ = 0;
  uint32_t crc_ = 0;
};

// Reads the complete entry directly to its destination.
Status ReadWhole(const RandomAccessFile& file, const BundleEntry& entry, char* to) {
  PieceReader reader(file, entry);
  while (reader.left() > 0) {
    RETURN_IF_ERROR(reader.Next(std::min(reader.left(), kPieceBytes), to + reader.position()));
  }
  return reader.Finish();
}

// Reads the complete entry through one buffer and copies runs of bytes from it. The runs must be
// requested in ascending order.
class RunCopier {
 public:
  RunCopier(const RandomAccessFile& file, const BundleEntry& entry)
      : reader_(file, entry), piece_(std::min(entry.size, kPieceBytes)) {}

  void Copy(int64_t from, int64_t count, char* to) {
    while (count > 0 && status_.ok()) {
      if (from >= reader_.position()) {
        Advance();
        continue;
      }
      const int64_t copied = std::min(count, reader_.position() - from);
      std::memcpy(to, piece_.data() + (from - piece_begin_), copied);
      from += copied;
      to += copied;
      count -= copied;
    }
  }

  Status Finish() {
    while (status_.ok() && reader_.left() > 0) Advance();
    RETURN_IF_ERROR(status_);
    return reader_.Finish();
  }

 private:
  void Advance() {
    piece_begin_ = reader_.position();
    status_ = reader_.Next(std::min(reader_.left(), kPieceBytes), piece_.data());
  }

  PieceReader reader_;
  std::vector<char> piece_;
  int64_t piece_begin_ = 0;
  Status status_;
};

Status ReadPlain(const RandomAccessFile& file, const BundleEntry& entry, const TensorSlice& from,
                 const TensorSlice& to, Tensor* tensor) {
  const int64_t width = SizeOf(entry.dtype);
  char* const out = static_cast<char*>(tensor->mutable_raw_data());
  int64_t first_run = 0, first_run_to = 0;
  ForEachCommonRun(from, to, [&](int64_t, int64_t to_element, int64_t count) {
    if (first_run == 0) {
      first_run = count;
      first_run_to = to_element;
    }
  });
  if (first_run == entry.shape.num_elements()) {
    return ReadWhole(file, entry, out + first_run_to * width);
  }
  RunCopier copier(file, entry);
  ForEachCommonRun(from, to, [&](int64_t from_element, int64_t to_element, int64_t count) {
    copier.Copy(from_element * width, count * width, out + to_element * width);
  });
  return copier.Finish();
}

StatusOr<std::string> ReadBytes(const RandomAccessFile& file, const BundleEntry& entry) {
  std::string bytes(entry.size, '\0');
  RETURN_IF_ERROR(file.Read(entry.offset, entry.size, bytes.data()));
  return bytes;
}

// Reads elements that are not plain bytes, with ReadStrings or ReadVariants.
template <class T, class Read>
Status ReadObjects(const RandomAccessFile& file, const BundleEntry& entry, const TensorSlice& from,
                   const TensorSlice& to, Tensor* tensor, Read read) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadBytes(file, entry));
  std::vector<T> objects(entry.shape.num_elements());
  RETURN_IF_ERROR(
      read(bytes, static_cast<int64_t>(objects.size()), entry.masked_crc, objects.data()));
  T* const out = tensor->mutable_data<T>();
  ForEachCommonRun(from, to, [&](int64_t from_element, int64_t to_element, int64_t count) {
    std::move(objects.begin() + from_element, objects.begin() + from_element + count,
              out + to_element);
  });
  return OkStatus();
}

}  // namespace

Status ReadPart(const RandomAccessFile& file, const BundleEntry& entry, const TensorSlice& from,
                const TensorSlice& to, Tensor* tensor) {
  if (entry.dtype == DType::kString) {
    return ReadObjects<std::string>(file, entry, from, to, tensor, ReadStrings);
  }
  if (entry.dtype == DType::kVariant) {
    return ReadObjects<Variant>(file, entry, from, to, tensor, ReadVariants);
  }
  RETURN_IF_ERROR(ReadPlain(file, entry, from, to, tensor));
  if (entry.dtype == DType::kBool) {
    // A bool must not contain a byte that is neither 0 nor 1.
    auto* const bytes = static_cast<uint8_t*>(tensor->mutable_raw_data());
    for (int64_t i = 0; i < tensor->num_elements(); ++i) bytes[i] = bytes[i] != 0;
  }
  return OkStatus();
}

Status VerifyPart(const RandomAccessFile& file, const BundleEntry& entry) {
  if (!IsPlain(entry.dtype)) {
    ASSIGN_OR_RETURN(const std::string bytes, ReadBytes(file, entry));
    const int64_t count = entry.shape.num_elements();
    return entry.dtype == DType::kString ? ReadStrings(bytes, count, entry.masked_crc, nullptr)
                                         : ReadVariants(bytes, count, entry.masked_crc, nullptr);
  }
  return RunCopier(file, entry).Finish();
}

}  // namespace penstock

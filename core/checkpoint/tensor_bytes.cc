// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/tensor_bytes.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "core/base/crc32c.h"
#include "core/checkpoint/varint.h"

namespace penstock {
namespace {

static_assert(std::endian::native == std::endian::little);  // the data files are little-endian

template <class T>
string_view BytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// In the checksum a length counts as four bytes if it fits, else as eight.
uint32_t ExtendWithLength(uint32_t crc, uint64_t length) {
  if (length <= std::numeric_limits<uint32_t>::max()) {
    return ExtendCrc32c(crc, BytesOf(static_cast<uint32_t>(length)));
  }
  return ExtendCrc32c(crc, BytesOf(length));
}

// Appends bytes and computes their checksum.
class Stream {
 public:
  explicit Stream(absl::FunctionRef<Status(string_view)> append) : append_(append) {}

  Status Append(string_view bytes) {
    written_.size += bytes.size();
    while (!bytes.empty()) {
      const string_view piece = bytes.substr(0, kPieceBytes);
      crc_ = ExtendCrc32c(crc_, piece);
      RETURN_IF_ERROR(append_(piece));
      bytes.remove_prefix(piece.size());
    }
    return OkStatus();
  }
  // Appends the encoded lengths. Their checksum, `crc_of_lengths`, is not that of these bytes, but
  // that of lengths of fixed size (ExtendWithLength).
  Status AppendLengths(string_view bytes, uint32_t crc_of_lengths) {
    RETURN_IF_ERROR(Append(bytes));
    crc_ = crc_of_lengths;
    return OkStatus();
  }

  WrittenBytes written() const { return {written_.size, MaskCrc(crc_)}; }

 private:
  absl::FunctionRef<Status(string_view)> append_;
  WrittenBytes written_;
  uint32_t crc_ = 0;
};

Status WriteStrings(absl::Span<const std::string> strings, Stream& stream) {
  std::string lengths;
  uint32_t crc = 0;
  for (const std::string& text : strings) {
    AppendVarint(text.size(), &lengths);
    crc = ExtendWithLength(crc, text.size());
  }
  RETURN_IF_ERROR(stream.AppendLengths(lengths, crc));
  RETURN_IF_ERROR(stream.Append(BytesOf(MaskCrc(crc))));
  std::string piece;  // collects many short strings into one write
  for (const std::string& text : strings) {
    piece += text;
    if (static_cast<int64_t>(piece.size()) < kPieceBytes) continue;
    RETURN_IF_ERROR(stream.Append(piece));
    piece.clear();
  }
  return stream.Append(piece);
}

}  // namespace

StatusOr<WrittenBytes> WriteTensorBytes(const Tensor& tensor,
                                        absl::FunctionRef<Status(string_view)> append) {
  Stream stream(append);
  if (tensor.dtype() == DType::kString) {
    RETURN_IF_ERROR(WriteStrings(tensor.flat<std::string>(), stream));
  } else if (IsPlain(tensor.dtype())) {
    RETURN_IF_ERROR(stream.Append({static_cast<const char*>(tensor.raw_data()), tensor.bytes()}));
  } else {
    return Unimplemented("tensors of type ", Name(tensor.dtype()), " cannot be saved");
  }
  return stream.written();
}

Status ReadStrings(string_view bytes, int64_t count, uint32_t masked_crc, std::string* strings) {
  string_view rest = bytes;
  uint32_t crc = 0;
  uint64_t total = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t length = 0;
    if (!TakeVarint(&rest, &length) || length > bytes.size() || (total += length) > bytes.size()) {
      return DataLoss("malformed lengths of strings");
    }
    crc = ExtendWithLength(crc, length);
  }
  string_view lengths = bytes.substr(0, bytes.size() - rest.size());
  uint32_t stored = 0;
  if (rest.size() != sizeof stored + total) return DataLoss("malformed lengths of strings");
  std::memcpy(&stored, rest.data(), sizeof stored);
  if (stored != MaskCrc(crc)) return DataLoss("the checksum of the strings' lengths is wrong");
  if (MaskCrc(ExtendCrc32c(crc, rest)) != masked_crc) return DataLoss("the checksum is wrong");
  if (strings == nullptr) return OkStatus();
  rest.remove_prefix(sizeof stored);
  for (int64_t i = 0; i < count; ++i) {
    uint64_t length = 0;
    TakeVarint(&lengths, &length);
    strings[i].assign(rest.data(), length);
    rest.remove_prefix(length);
  }
  return OkStatus();
}

}  // namespace penstock

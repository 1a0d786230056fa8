// SPDX-License-Identifier: Apache-2.0
#include "client/examples/idx.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/match.h"

namespace penstock::examples {
namespace {

constexpr size_t kPieceBytes = 1 << 20;
constexpr unsigned char kUint8 = 0x08;

StatusOr<std::string> Gunzip(const std::string& packed, int64_t bytes_max) {
  z_stream stream = {};
  // Adding 16 makes zlib expect gzip's header.
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) return ResourceExhausted("zlib: no memory");
  std::string unpacked;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  int result = Z_OK;
  while (result == Z_OK && static_cast<int64_t>(unpacked.size()) <= bytes_max) {
    const size_t before = unpacked.size();
    unpacked.resize(before + kPieceBytes);
    stream.next_out = reinterpret_cast<Bytef*>(unpacked.data() + before);
    stream.avail_out = kPieceBytes;
    result = inflate(&stream, Z_NO_FLUSH);
    unpacked.resize(before + kPieceBytes - stream.avail_out);
  }
  inflateEnd(&stream);
  if (static_cast<int64_t>(unpacked.size()) > bytes_max) {
    return InvalidArgument("unpacks to more than ", bytes_max, " bytes");
  }
  if (result != Z_STREAM_END) return InvalidArgument("not a whole gzip file");
  return unpacked;
}

// Reads a big-endian number.
uint32_t ReadU32(const std::string& bytes, size_t offset) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) {
    value = value << 8 | static_cast<unsigned char>(bytes[offset + i]);
  }
  return value;
}

StatusOr<Tensor> Parse(const std::string& bytes) {
  if (bytes.size() < 4) return InvalidArgument("too short for an IDX header");
  const uint32_t magic = ReadU32(bytes, 0);
  if (magic >> 8 != kUint8) {
    return InvalidArgument("magic number ", magic, ": expected an IDX file of unsigned bytes");
  }
  const size_t rank = magic & 0xff;
  if (bytes.size() < 4 + 4 * rank)
    return InvalidArgument("too short for its ", rank, " dimensions");
  Dims dims;
  for (size_t d = 0; d < rank; ++d) dims.push_back(ReadU32(bytes, 4 + 4 * d));
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  const size_t header = 4 + 4 * rank;
  if (static_cast<int64_t>(bytes.size() - header) != shape.num_elements()) {
    return InvalidArgument("has ", bytes.size() - header, " bytes of data, its header ",
                           shape.ToString(), " says ", shape.num_elements());
  }
  ASSIGN_OR_RETURN(Tensor tensor, Tensor::Make(CpuAllocator(), DType::kUint8, shape));
  std::memcpy(tensor.mutable_raw_data(), bytes.data() + header, bytes.size() - header);
  return tensor;
}

}  // namespace

StatusOr<Tensor> ReadIdx(Env& env, const std::string& path, int64_t bytes_max) {
  ASSIGN_OR_RETURN(std::string bytes, env.ReadFile(path));
  if (absl::StartsWith(bytes, "\x1f\x8b")) {
    StatusOr<std::string> unpacked = Gunzip(bytes, bytes_max);
    if (!unpacked.ok()) return Annotate(unpacked.status(), path);
    bytes = *std::move(unpacked);
  }
  StatusOr<Tensor> tensor = Parse(bytes);
  if (!tensor.ok()) return Annotate(tensor.status(), path);
  return tensor;
}

}  // namespace penstock::examples

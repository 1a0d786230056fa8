// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_format.h"
#include "core/checkpoint/bundle_entry.h"
#include "core/checkpoint/slice_proto.h"
#include "proto/tensorflow/checkpoint.pb.h"

namespace penstock {
namespace {

constexpr int kBundleVersion = 1;
// TensorFlow writes five digits, and no checkpoint has that many tasks.
constexpr int kShardsMax = 99999;

// Checks that a tensor of this type and shape can take `size` bytes.
Status CheckSize(const BundleEntry& entry) {
  const int64_t elements = entry.shape.num_elements();
  if (entry.dtype == DType::kString) {
    // Each string takes at least one byte for its length. The checksum of the lengths takes four
    // bytes.
    if (entry.size - 4 < elements) {
      return DataLoss("size ", entry.size, " is too small for ", elements, " strings");
    }
    return OkStatus();
  }
  if (!IsPlain(entry.dtype)) return Unimplemented("tensors of type ", Name(entry.dtype));
  const auto expected = CheckedProduct({elements, static_cast<int64_t>(SizeOf(entry.dtype))});
  if (!expected.ok() || *expected != entry.size) {
    return DataLoss("size ", entry.size, " is not that of ", Name(entry.dtype),
                    entry.shape.ToString());
  }
  return OkStatus();
}

}  // namespace

std::string SerializeBundleEntry(const BundleEntry& entry) {
  tensorflow::BundleEntryProto proto;
  proto.set_dtype(static_cast<tensorflow::DataType>(Number(entry.dtype)));
  SavedShapeToProto(entry.shape, proto.mutable_shape());  // present even for a scalar
  proto.set_shard_id(entry.shard);
  proto.set_offset(entry.offset);
  proto.set_size(entry.size);
  proto.set_crc32c(entry.masked_crc);
  for (const TensorSlice& slice : entry.slices) SliceToProto(slice, proto.add_slices());
  return proto.SerializeAsString();
}

StatusOr<BundleEntry> ParseBundleEntry(string_view bytes) {
  tensorflow::BundleEntryProto proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return DataLoss("not a BundleEntryProto");
  }
  BundleEntry entry;
  ASSIGN_OR_RETURN(entry.dtype, DTypeFromNumber(proto.dtype()));
  ASSIGN_OR_RETURN(entry.shape, SavedShapeFromProto(proto.shape()));
  entry.shard = proto.shard_id();
  entry.offset = proto.offset();
  entry.size = proto.size();
  entry.masked_crc = proto.crc32c();
  for (const auto& slice : proto.slices()) {
    entry.slices.push_back(SliceFromProto(slice));
    RETURN_IF_ERROR(entry.slices.back().Within(entry.shape).status());
  }
  if (entry.shard < 0 || entry.offset < 0 || entry.size < 0 ||
      entry.offset > std::numeric_limits<int64_t>::max() - entry.size) {
    return DataLoss("its place is out of range: shard ", entry.shard, ", offset ", entry.offset,
                    ", size ", entry.size);
  }
  if (entry.slices.empty()) RETURN_IF_ERROR(CheckSize(entry));
  return entry;
}

std::string SerializeBundleHeader(int num_shards) {
  tensorflow::BundleHeaderProto proto;
  proto.set_num_shards(num_shards);
  proto.set_endianness(tensorflow::BundleHeaderProto::LITTLE);
  proto.mutable_version()->set_producer(kBundleVersion);
  return proto.SerializeAsString();
}

StatusOr<int> ParseBundleHeader(string_view bytes) {
  tensorflow::BundleHeaderProto proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return DataLoss("the header is not a BundleHeaderProto");
  }
  if (proto.endianness() != tensorflow::BundleHeaderProto::LITTLE) {
    return Unimplemented("the data are big-endian");
  }
  if (proto.version().min_consumer() > kBundleVersion) {
    return Unimplemented("the data need a reader of version ", proto.version().min_consumer(),
                         "; this one is ", kBundleVersion);
  }
  if (proto.num_shards() < 1 || proto.num_shards() > kShardsMax) {
    return DataLoss("the header says that there are ", proto.num_shards(),
                    " shards, expected 1 to ", kShardsMax);
  }
  return proto.num_shards();
}

std::string IndexPath(string_view prefix) { return StrCat(prefix, ".index"); }

std::string DataPath(string_view prefix, int shard, int num_shards) {
  return absl::StrFormat("%s.data-%05d-of-%05d", prefix, shard, num_shards);
}

std::string DirectoryOf(string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == string_view::npos) return ".";
  return slash == 0 ? "/" : std::string(path.substr(0, slash));
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/variant_bytes.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "core/base/crc32c.h"
#include "core/checkpoint/varint.h"
#include "core/tensor/tensor.h"
#include "core/wire/tensor_proto.h"
#include "proto/tensorflow/tensor.pb.h"

namespace penstock {
namespace {

// The tensors of an entry's values may take this many times the entry's bytes, and kMemoryMin. In a
// message, a small number takes one byte and an empty string two, instead of 8 and 32 in memory.
constexpr int64_t kExpansionMax = 32;
constexpr int64_t kMemoryMin = 1 << 20;

// Extends the checksum with a length: in the checksum, lengths have eight bytes.
uint32_t ExtendWithLength64(uint32_t crc, uint64_t length) {
  return ExtendCrc32c(crc, {reinterpret_cast<const char*>(&length), sizeof length});
}

StatusOr<std::string> SerializeVariant(const Variant& variant) {
  tensorflow::TensorProto proto;
  RETURN_IF_ERROR(TensorToProto(Tensor::Scalar(variant), &proto));
  std::string bytes;
  if (!proto.variant_val(0).SerializeToString(&bytes)) {
    return InvalidArgument(variant.value->ToString(), " is too large to be saved");
  }
  return bytes;
}

// Adds the message of a variant to those of `proto`.
Status AddVariantMessage(string_view bytes, tensorflow::TensorProto* proto) {
  if (bytes.size() <= std::numeric_limits<int>::max() &&
      proto->add_variant_val()->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return OkStatus();
  }
  return DataLoss("not a VariantTensorDataProto");
}

// Takes the next variant's message from the front of `*rest`. Extends `*crc` with it.
StatusOr<string_view> TakeVariant(string_view* rest, uint32_t* crc) {
  uint64_t length = 0;
  uint32_t stored = 0;
  if (!TakeVarint(rest, &length) || length > rest->size() ||
      rest->size() - length < sizeof stored) {
    return DataLoss("malformed lengths of variants");
  }
  const string_view message = rest->substr(0, length);
  *crc = ExtendCrc32c(ExtendWithLength64(*crc, length), message);
  rest->remove_prefix(length);
  std::memcpy(&stored, rest->data(), sizeof stored);
  if (stored != MaskCrc(*crc)) return DataLoss("the checksum of a variant is wrong");
  *crc = ExtendCrc32c(*crc, rest->substr(0, sizeof stored));
  rest->remove_prefix(sizeof stored);
  return message;
}

}  // namespace

StatusOr<uint32_t> WriteVariants(absl::Span<const Variant> variants,
                                 absl::FunctionRef<Status(string_view)> append) {
  uint32_t crc = 0;
  for (const Variant& variant : variants) {
    ASSIGN_OR_RETURN(const std::string message, SerializeVariant(variant));
    std::string length;
    AppendVarint(message.size(), &length);
    crc = ExtendCrc32c(ExtendWithLength64(crc, message.size()), message);
    const uint32_t masked = MaskCrc(crc);
    const string_view checksum(reinterpret_cast<const char*>(&masked), sizeof masked);
    crc = ExtendCrc32c(crc, checksum);
    for (const string_view piece : {string_view(length), string_view(message), checksum}) {
      RETURN_IF_ERROR(append(piece));
    }
  }
  return crc;
}

Status ReadVariants(string_view bytes, int64_t count, uint32_t masked_crc, Variant* variants) {
  if (count > std::numeric_limits<int>::max()) {
    return ResourceExhausted(count, " variants are too many for a tensor");
  }
  std::vector<string_view> messages;
  string_view rest = bytes;
  uint32_t crc = 0;
  for (int64_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(const string_view message, TakeVariant(&rest, &crc));
    messages.push_back(message);
  }
  if (!rest.empty()) return DataLoss("there are bytes after the last variant");
  if (MaskCrc(crc) != masked_crc) return DataLoss("the checksum is wrong");
  if (variants == nullptr) return OkStatus();
  // No message is parsed before all checksums have been verified.
  tensorflow::TensorProto proto;
  proto.set_dtype(tensorflow::DT_VARIANT);
  proto.mutable_tensor_shape()->add_dim()->set_size(count);
  for (const string_view message : messages) RETURN_IF_ERROR(AddVariantMessage(message, &proto));
  const auto memory_max = kMemoryMin + kExpansionMax * static_cast<int64_t>(bytes.size());
  ASSIGN_OR_RETURN(const Tensor tensor, TensorFromProto(proto, memory_max));
  std::copy_n(tensor.data<Variant>(), count, variants);
  return OkStatus();
}

}  // namespace penstock

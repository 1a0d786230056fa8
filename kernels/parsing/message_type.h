// SPDX-License-Identifier: Apache-2.0
//
// MessageType: some fields of a protobuf message type that is known only at run time. Reads the
// fields' values from serialized messages, and serializes messages of such values. Hides protobuf.
// Thread safety: all methods are const and thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock {

// The values of one field: `numbers`, or for strings and messages `pieces`, which are views of the
// serialized message. A number is stored in the low bytes as the bits of the field's dtype.
struct FieldValues {
  std::vector<uint64_t> numbers;
  std::vector<string_view> pieces;
  int64_t size() const { return static_cast<int64_t>(numbers.size() + pieces.size()); }
};

class MessageType {
 public:
  struct Spec {
    std::string message_type;
    std::vector<std::string> field_names;
    std::vector<DType> dtypes;  // the type of the values of each field
    bool extensions = false;    // a field name may be the full name of an extension
  };
  // Finds the message type in `descriptors`, a serialized FileDescriptorSet, or, if that is null,
  // among the messages linked into this program. InvalidArgument if a type or a field is unknown,
  // or if a field's values do not have its dtype.
  static StatusOr<std::shared_ptr<const MessageType>> Make(const std::string* descriptors,
                                                           const Spec& spec);
  virtual ~MessageType() = default;

  // Converts a message in text format to bytes, or parses bytes and serializes them again. DataLoss
  // if the message is malformed.
  virtual StatusOr<std::string> FromText(const std::string& text) const = 0;
  virtual StatusOr<std::string> Reserialized(const std::string& bytes) const = 0;

  // Returns the values of each field in the order of the names. A field that is not repeated has at
  // most one: the last. Values of another wire type are skipped. DataLoss if the message is
  // malformed.
  virtual StatusOr<std::vector<FieldValues>> Read(string_view bytes) const = 0;
  // Returns the default value of each field, in the same form; messages have the empty string.
  virtual const std::vector<FieldValues>& defaults() const = 0;

  // Serializes a message: field f has `sizes[f]` values, the elements of `*values[f]` from
  // `firsts[f]` on.
  virtual std::string Write(const std::vector<const Tensor*>& values,
                            const std::vector<int64_t>& firsts,
                            const std::vector<int64_t>& sizes) const = 0;
};

}  // namespace penstock

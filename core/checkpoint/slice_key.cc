// SPDX-License-Identifier: Apache-2.0
//
// Builds the keys of slices: an order-preserving encoding of 0, the name, the rank, and the start
// and length of every dimension. The leading 0 sorts them after the header's empty key and before
// all names.
#include "core/checkpoint/tensor_slice.h"

namespace penstock {
namespace {

// Appends one byte with the number of bytes that follow, then these bytes, the most significant
// first.
void AppendUnsigned(uint64_t value, std::string* key) {
  int bytes = 0;
  while (bytes < 8 && value >> (8 * bytes) != 0) ++bytes;
  key->push_back(static_cast<char>(bytes));
  for (int i = bytes - 1; i >= 0; --i) key->push_back(static_cast<char>(value >> (8 * i)));
}

// 00 and FF are escaped, so that 00 01 can end the string.
void AppendString(string_view text, std::string* key) {
  for (const char c : text) {
    key->push_back(c);
    if (c == '\0') key->push_back('\xff');
    if (c == '\xff') key->push_back('\0');
  }
  key->push_back('\0');
  key->push_back('\1');
}

// Appends a signed number in `bytes` bytes, with 7 * bytes bits for its value. The bits above the
// value encode the number of bytes in unary, and are inverted for negative numbers.
void AppendSigned(int64_t value, std::string* key) {
  int bytes = 1;
  while (bytes < 10 && (value < 0 ? ~value : value) >> std::min(7 * bytes - 1, 63) != 0) ++bytes;
  std::string code;
  for (int i = bytes - 1; i >= 0; --i) {
    code.push_back(static_cast<char>(value >> std::min(8 * i, 63)));
  }
  const unsigned ones = (0xffffu << (16 - bytes)) & 0xffffu;  // in the first two bytes
  code[0] = static_cast<char>(code[0] ^ (ones >> 8));
  if (bytes > 1) code[1] = static_cast<char>(code[1] ^ (ones & 0xff));
  key->append(code);
}

}  // namespace

std::string SliceKey(string_view name, const TensorSlice& slice) {
  std::string key;
  AppendUnsigned(0, &key);
  AppendString(name, &key);
  AppendUnsigned(slice.extents.size(), &key);
  for (const TensorSlice::Extent& extent : slice.extents) {
    AppendSigned(extent.start, &key);
    AppendSigned(extent.length, &key);
  }
  return key;
}

}  // namespace penstock

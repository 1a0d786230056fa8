// SPDX-License-Identifier: Apache-2.0
//
// Shared by the Unicode ops: converts strings to code points and back, and handles malformed
// strings as the attributes say. ICU decodes the strings, so the ops read every encoding that ICU
// supports.
#pragma once

#include <unicode/ucnv.h>

#include <functional>
#include <memory>
#include <string>

#include "core/op/kernel.h"

namespace penstock {

// The attributes errors, replacement_char and replace_control_characters.
struct UnicodeErrors {
  bool strict = false,
       ignore = false;  // what to do with malformed text; if neither is set, it is replaced
  bool replace_control_characters = false;
  // With `strict`: control characters that would be replaced are errors.
  bool strict_about_controls = false;
  UChar32 replacement = 0xFFFD;

  // Reads the attributes. InvalidArgument unless replacement_char is a code point.
  Status Init(const KernelInit& node);
  static bool IsCodePoint(int64_t c) {
    return c >= 0 && c <= 0x10FFFF && !(c >= 0xD800 && c <= 0xDFFF);
  }
};

// Decodes strings of one encoding. Single-threaded.
class UnicodeDecoder {
 public:
  // Makes a decoder. InvalidArgument if ICU does not support the encoding.
  static StatusOr<UnicodeDecoder> Make(const std::string& encoding, const UnicodeErrors& errors);

  // Calls `take(code point, offset in bytes)` for each code point. Malformed bytes give the
  // replacement character. A byte order mark, or a change of character set at the end of `text`,
  // gives nothing. InvalidArgument if errors are strict and `text` is malformed.
  Status Decode(const std::string& text, const std::function<void(UChar32, int64_t)>& take);

 private:
  UnicodeDecoder(UConverter* converter, const UnicodeErrors& errors)
      : converter_(converter, ucnv_close), errors_(errors) {}

  std::unique_ptr<UConverter, void (*)(UConverter*)> converter_;
  UnicodeErrors errors_;
};

enum class UnicodeEncoding { kUtf8, kUtf16Be, kUtf32Be };

// Reads the attribute output_encoding.
Status ReadOutputEncoding(const KernelInit& node, UnicodeEncoding* encoding);

// Appends `c` to `*to`. REQUIRES: UnicodeErrors::IsCodePoint(c).
void AppendCodePoint(UnicodeEncoding encoding, UChar32 c, std::string* to);

}  // namespace penstock

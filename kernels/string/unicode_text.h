// SPDX-License-Identifier: Apache-2.0
//
// Strings as code points and back, with what to do where a string is malformed: what the Unicode
// ops share. ICU decodes, so that every encoding is read that ICU knows.
#pragma once

#include <unicode/ucnv.h>

#include <functional>
#include <memory>
#include <string>

#include "core/op/kernel.h"

namespace penstock {

// Attributes errors, replacement_char and replace_control_characters.
struct UnicodeErrors {
  bool strict = false, ignore = false;  // neither: replace
  bool replace_control_characters = false;
  bool strict_about_controls = false;  // strict: a control character to be replaced is an error
  UChar32 replacement = 0xFFFD;

  // InvalidArgument unless replacement_char is a code point.
  Status Init(const KernelInit& node);
  static bool IsCodePoint(int64_t c) {
    return c >= 0 && c <= 0x10FFFF && !(c >= 0xD800 && c <= 0xDFFF);
  }
};

// Reads strings of one encoding. Single-threaded.
class UnicodeDecoder {
 public:
  // InvalidArgument where ICU does not know the encoding.
  static StatusOr<UnicodeDecoder> Make(const std::string& encoding, const UnicodeErrors& errors);

  // Calls `take(code point, offset in bytes)` for each code point, with the replacement for what is
  // malformed. A byte order mark or a change of character set at the end of `text` adds nothing.
  // InvalidArgument if errors are strict and `text` is malformed.
  Status Decode(const std::string& text, const std::function<void(UChar32, int64_t)>& take);

 private:
  UnicodeDecoder(UConverter* converter, const UnicodeErrors& errors)
      : converter_(converter, ucnv_close), errors_(errors) {}

  std::unique_ptr<UConverter, void (*)(UConverter*)> converter_;
  UnicodeErrors errors_;
};

enum class UnicodeEncoding { kUtf8, kUtf16Be, kUtf32Be };

// The attribute output_encoding.
Status ReadOutputEncoding(const KernelInit& node, UnicodeEncoding* encoding);

// REQUIRES UnicodeErrors::IsCodePoint.
void AppendCodePoint(UnicodeEncoding encoding, UChar32 c, std::string* to);

}  // namespace penstock

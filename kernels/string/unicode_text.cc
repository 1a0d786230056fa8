// SPDX-License-Identifier: Apache-2.0
#include "kernels/string/unicode_text.h"

#include <unicode/utf16.h>
#include <unicode/utf8.h>

namespace penstock {
namespace {

constexpr UChar32 kLastControl = 0x1F;

// Sets the bool `context` if bytes are malformed, and lets ICU replace them by U+FFFD.
void NoteMalformed(const void* context, UConverterToUnicodeArgs* args, const char* bytes,
                   int32_t length, UConverterCallbackReason reason, UErrorCode* error) {
  if (reason > UCNV_IRREGULAR) return;  // the converter is reset, closed or copied
  *static_cast<bool*>(const_cast<void*>(context)) = true;
  UCNV_TO_U_CALLBACK_SUBSTITUTE(nullptr, args, bytes, length, reason, error);
}

}  // namespace

Status UnicodeErrors::Init(const KernelInit& node) {
  std::string mode;
  RETURN_IF_ERROR(node.Attr("errors", &mode));
  strict = mode == "strict";
  ignore = mode == "ignore";
  if (node.attrs.contains("replace_control_characters")) {
    RETURN_IF_ERROR(node.Attr("replace_control_characters", &replace_control_characters));
  }
  int64_t c = 0;
  RETURN_IF_ERROR(node.Attr("replacement_char", &c));
  if (!IsCodePoint(c)) return InvalidArgument("replacement_char must be a code point, is ", c);
  replacement = static_cast<UChar32>(c);
  return OkStatus();
}

StatusOr<UnicodeDecoder> UnicodeDecoder::Make(const std::string& encoding,
                                              const UnicodeErrors& errors) {
  UErrorCode error = U_ZERO_ERROR;
  UConverter* const converter = ucnv_open(encoding.c_str(), &error);
  if (encoding.empty() || U_FAILURE(error)) {
    if (converter != nullptr) ucnv_close(converter);
    return InvalidArgument("Could not create converter for input encoding: '", encoding, "'");
  }
  return UnicodeDecoder(converter, errors);
}

Status UnicodeDecoder::Decode(const std::string& text,
                              const std::function<void(UChar32, int64_t)>& take) {
  UConverter* const converter = converter_.get();
  ucnv_reset(converter);
  bool malformed = false;
  UErrorCode error = U_ZERO_ERROR;
  UConverterToUCallback before = nullptr;
  const void* context_before = nullptr;
  ucnv_setToUCallBack(converter, NoteMalformed, &malformed, &before, &context_before, &error);
  const char *next = text.data(), *const end = next + text.size();
  while (next < end && U_SUCCESS(error)) {
    const int64_t offset = next - text.data();
    const UChar32 c = ucnv_getNextUChar(converter, &next, end, &error);
    if (error == U_INDEX_OUTOFBOUNDS_ERROR) break;  // no code point was left
    if (U_FAILURE(error)) malformed = true;
    const bool control = errors_.replace_control_characters && c <= kLastControl;
    if (errors_.strict && (malformed || (control && errors_.strict_about_controls))) {
      return InvalidArgument("Invalid formatting on input string: byte ", offset);
    }
    const bool replace = malformed || control;
    malformed = false;
    if (replace && errors_.ignore) continue;
    take(replace ? errors_.replacement : c, offset);
  }
  return OkStatus();
}

Status ReadOutputEncoding(const KernelInit& node, UnicodeEncoding* encoding) {
  std::string name;
  RETURN_IF_ERROR(node.Attr("output_encoding", &name));
  *encoding = name == "UTF-16-BE"   ? UnicodeEncoding::kUtf16Be
              : name == "UTF-32-BE" ? UnicodeEncoding::kUtf32Be
                                    : UnicodeEncoding::kUtf8;
  return OkStatus();
}

void AppendCodePoint(UnicodeEncoding encoding, UChar32 c, std::string* to) {
  const auto append = [to](uint32_t value, int bytes) {
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
      to->push_back(static_cast<char>(value >> shift & 0xFF));
    }
  };
  switch (encoding) {
    case UnicodeEncoding::kUtf8: {
      char bytes[U8_MAX_LENGTH];
      int length = 0;
      U8_APPEND_UNSAFE(bytes, length, c);
      to->append(bytes, length);
      return;
    }
    case UnicodeEncoding::kUtf16Be:
      if (U16_LENGTH(c) == 1) return append(c, 2);
      append(U16_LEAD(c), 2);
      return append(U16_TRAIL(c), 2);
    case UnicodeEncoding::kUtf32Be:
      return append(c, 4);
  }
}

}  // namespace penstock

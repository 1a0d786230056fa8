// SPDX-License-Identifier: Apache-2.0
#include "core/wire/message_file.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"

namespace penstock {

namespace {

bool IsText(const std::string& contents) {
  return std::none_of(contents.begin(), contents.end(),
                      [](char c) { return absl::ascii_iscntrl(c) && !absl::ascii_isspace(c); });
}

// Keeps the first error.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text_.empty()) text_ = StrCat("line ", line + 1, ", column ", column + 1, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

Status ParseMessage(const std::string& contents, UnknownFields unknown,
                    google::protobuf::Message* message) {
  const std::string& kind = message->GetDescriptor()->name();
  if (contents.size() > INT32_MAX) {
    return ResourceExhausted("has ", contents.size(), " bytes, a ", kind, " holds 2 GiB at most: ",
                             "keep large constants in variables and a checkpoint");
  }
  if (!IsText(contents)) {
    if (message->ParseFromString(contents)) return OkStatus();
    return InvalidArgument("is not a ", kind);
  }
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.AllowUnknownField(unknown == UnknownFields::kIgnored);
  if (parser.ParseFromString(contents, message)) return OkStatus();
  return InvalidArgument("is not a ", kind, " in text form: ", error.text());
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "distributed/security/tokens.h"

#include <openssl/crypto.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace penstock {

StatusOr<Tokens> Tokens::Read(const std::string& path, const std::string& setting, Env& env) {
  const auto contents = env.ReadFile(path);
  if (!contents.ok()) return InvalidArgument(setting, ": ", contents.status().message());
  Tokens tokens;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(*contents, '\n')) {
    ++number;
    const absl::string_view token = absl::StripAsciiWhitespace(line);
    if (token.empty() || token[0] == '#') continue;
    if (token.size() < kLengthMin) {
      return InvalidArgument(setting, ": line ", number, " of '", path, "' has ", token.size(),
                             " characters, expected at least ", kLengthMin,
                             "; make a token with `openssl rand -hex 32`");
    }
    // A token is sent in an HTTP/2 header, so its characters must be allowed there.
    if (!std::all_of(token.begin(), token.end(), absl::ascii_isgraph)) {
      return InvalidArgument(setting, ": line ", number, " of '", path,
                             "' has blanks or characters that are not ASCII; make a token with "
                             "`openssl rand -hex 32`");
    }
    tokens.tokens_.emplace_back(token);
  }
  if (!tokens.empty()) return tokens;
  return InvalidArgument(setting, ": there is no token in '", path,
                         "'; make one with `openssl rand -hex 32`");
}

bool Tokens::Contains(string_view token) const {
  bool found = false;
  for (const std::string& own : tokens_) {
    // The time of the comparison reveals only whether the lengths differ.
    found |=
        own.size() == token.size() && CRYPTO_memcmp(own.data(), token.data(), token.size()) == 0;
  }
  return found;
}

std::string Tokens::OfHeader(string_view authorization) {
  absl::string_view value = authorization;
  if (absl::ConsumePrefix(&value, "Bearer ")) return std::string(value);
  std::string user_and_password;
  if (!absl::ConsumePrefix(&value, "Basic ") || !absl::Base64Unescape(value, &user_and_password)) {
    return "";
  }
  const size_t colon = user_and_password.find(':');
  return colon == std::string::npos ? "" : user_and_password.substr(colon + 1);
}

}  // namespace penstock

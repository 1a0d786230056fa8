// SPDX-License-Identifier: Apache-2.0
//
// Tokens: the secrets of a token file, one per line; empty lines and lines that begin with '#'
// are ignored. With several tokens a cluster can change its token without a stop: add the new one
// below the old one everywhere, move it to the top everywhere, remove the old one.
//
// Immutable value type. No error or log line quotes a token.
#pragma once

#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/base/status.h"

namespace penstock {

class Tokens {
 public:
  static constexpr size_t kLengthMin = 16;

  Tokens() = default;  // constructs an empty set of tokens
  // Reads a token file. InvalidArgument names `setting` (see NameOfSetting), the file and the
  // line.
  static StatusOr<Tokens> Read(const std::string& path, const std::string& setting, Env& env);

  bool empty() const { return tokens_.empty(); }
  // Returns the first token. REQUIRES: !empty().
  const std::string& first() const { return tokens_.front(); }
  // Returns whether `token` is one of the tokens. The time does not depend on the first byte that
  // differs, so that callers cannot guess a token byte by byte.
  bool Contains(string_view token) const;
  // Returns the token in an HTTP header Authorization; "" if there is none. The header is "Bearer
  // TOKEN", or "Basic ..." from a browser, which asks its user for a name (ignored here) and a
  // password (the token).
  static std::string OfHeader(string_view authorization);

 private:
  std::vector<std::string> tokens_;
};

}  // namespace penstock

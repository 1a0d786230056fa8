// SPDX-License-Identifier: Apache-2.0
//
// Tokens: the secrets of a token file, one per line; empty lines and lines that begin with '#' do
// not count. Several let a cluster change its token without a stop: add the new one below the old
// one everywhere, move it to the top everywhere, remove the old one.
//
// A value that does not change. Never printed: no error quotes a token.
#pragma once

#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/base/status.h"

namespace penstock {

class Tokens {
 public:
  static constexpr size_t kLengthMin = 16;

  Tokens() = default;  // none
  // InvalidArgument names `setting` (see NameOfSetting), the file and the line.
  static StatusOr<Tokens> Read(const std::string& path, const std::string& setting, Env& env);

  bool empty() const { return tokens_.empty(); }
  // REQUIRES !empty().
  const std::string& first() const { return tokens_.front(); }
  // Takes the same time wherever the two differ.
  bool Contains(string_view token) const;

 private:
  std::vector<std::string> tokens_;
};

}  // namespace penstock

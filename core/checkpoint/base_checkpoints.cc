// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/base_checkpoints.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "core/checkpoint/bundle_reader.h"

namespace penstock {

StatusOr<std::string> BaseOf(Env& env, const std::string& prefix) {
  ASSIGN_OR_RETURN(const auto reader, BundleReader::Open(env, prefix));
  std::string base;
  for (const auto& [name, entry] : reader->tensors()) {
    if (!absl::EndsWith(name, kBaseSuffix)) continue;
    if (entry.dtype != DType::kString || entry.shape.rank() != 0) {
      return DataLoss("checkpoint ", prefix, ": tensor '", name, "' must be a string scalar");
    }
    ASSIGN_OR_RETURN(const Tensor tensor, reader->Read(name));
    const std::string own = tensor.scalar<std::string>();
    if (own.empty() || own == base) continue;
    if (absl::StrContains(own, '/') || own == "." || own == "..") {
      return DataLoss("checkpoint ", prefix, ": tensor '", name,
                      "' must name a checkpoint in the same directory, is '", own, "'");
    }
    if (!base.empty()) {
      return DataLoss("checkpoint ", prefix, " builds on both '", base, "' and '", own, "'");
    }
    base = own;
  }
  if (base.empty()) return base;
  const size_t slash = prefix.rfind('/');
  return slash == std::string::npos ? base : prefix.substr(0, slash + 1) + base;
}

StatusOr<std::vector<std::string>> ChainOf(Env& env, const std::string& prefix) {
  std::vector<std::string> chain = {prefix};
  while (true) {
    const StatusOr<std::string> base = BaseOf(env, chain.back());
    if (!base.ok() && chain.size() > 1) {
      return Annotate(base.status(),
                      StrCat("checkpoint ", prefix, " holds changes only, and builds on others"));
    }
    RETURN_IF_ERROR(base.status());
    if (base->empty()) break;
    if (std::find(chain.begin(), chain.end(), *base) != chain.end()) {
      return DataLoss("checkpoint ", prefix, " builds on ", *base, ", which builds on itself");
    }
    chain.push_back(*base);
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/transport_factory.h"

#include "absl/strings/str_join.h"
#include "core/base/check.h"

namespace penstock {

TransportFactory& TransportFactory::Global() {
  static TransportFactory& factory = *new TransportFactory;
  return factory;
}

bool TransportFactory::Add(const std::string& protocol, Maker maker) {
  CHECK(makers_.emplace(protocol, maker).second, "two transports are called ", protocol);
  return true;
}

StatusOr<std::unique_ptr<Transport>> TransportFactory::Make(const std::string& protocol,
                                                            const TransportHost& host) const {
  const auto found = makers_.find(protocol);
  if (found == makers_.end()) {
    return InvalidArgument("--protocol: '", protocol, "' is not known; write one of ",
                           absl::StrJoin(protocols(), ", "));
  }
  return found->second(host);
}

std::vector<std::string> TransportFactory::protocols() const {
  std::vector<std::string> names;
  for (const auto& [name, maker] : makers_) names.push_back(name);
  return names;
}

}  // namespace penstock

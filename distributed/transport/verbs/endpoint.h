// SPDX-License-Identifier: Apache-2.0
//
// VerbsEndpoint: describes one end of a connection to the other end. The tasks exchange their
// endpoints over gRPC before any RDMA.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>

#include "core/base/status.h"

namespace penstock {

namespace wire {
class VerbsEndpoint;
}

struct VerbsEndpoint {
  uint32_t version = 0;
  uint32_t queue_pair = 0;
  uint32_t packet_number = 0;
  ibv_gid gid = {};
  uint16_t lid = 0;
  std::string network;       // "InfiniBand", "RoCE v1" or "RoCE v2"
  uint32_t mtu = 0;          // bytes
  uint32_t mtu_setting = 0;  // 0: not set
  uint32_t service_level = 0;
  uint32_t traffic_class = 0;
  uint32_t queue_depth = 0;
  uint32_t reads_max = 0;
  uint64_t ring_address = 0;
  uint32_t ring_key = 0;
  uint32_t ring_bytes = 0;

  void ToProto(wire::VerbsEndpoint* proto) const;
  // FailedPrecondition if the version differs; DataLoss if a field is missing or out of range.
  static StatusOr<VerbsEndpoint> Parse(const wire::VerbsEndpoint& proto);
  // Returns OK if the settings of both ends agree. FailedPrecondition names the first setting in
  // which `other` differs, and both values.
  Status CheckAgreement(const VerbsEndpoint& other) const;
};

}  // namespace penstock

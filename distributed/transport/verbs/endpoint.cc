// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/verbs/endpoint.h"

#include <cstring>

#include "distributed/transport/verbs/rings.h"
#include "distributed/transport/verbs/settings.h"
#include "proto/penstock/verbs.pb.h"

namespace penstock {
namespace {

Status Differs(const char* setting, const std::string& own, const std::string& other) {
  return FailedPrecondition(VerbsFlag(setting), " (or ", VerbsVariable(setting), ") is ", own,
                            " here and ", other, " there: set it to one value in all tasks");
}

}  // namespace

void VerbsEndpoint::ToProto(wire::VerbsEndpoint* proto) const {
  proto->set_version(version);
  proto->set_queue_pair(queue_pair);
  proto->set_packet_number(packet_number);
  proto->set_gid(gid.raw, sizeof(gid.raw));
  proto->set_lid(lid);
  proto->set_network(network);
  proto->set_mtu(mtu);
  proto->set_mtu_setting(mtu_setting);
  proto->set_service_level(service_level);
  proto->set_traffic_class(traffic_class);
  proto->set_queue_depth(queue_depth);
  proto->set_reads_max(reads_max);
  proto->set_ring_address(ring_address);
  proto->set_ring_key(ring_key);
  proto->set_ring_bytes(ring_bytes);
}

StatusOr<VerbsEndpoint> VerbsEndpoint::Parse(const wire::VerbsEndpoint& proto) {
  VerbsEndpoint end;
  end.version = proto.version();
  if (end.version != kVerbsVersion) {
    return FailedPrecondition("it speaks version ", end.version,
                              " of the RDMA transport, this task ", kVerbsVersion);
  }
  if (proto.gid().size() != sizeof(end.gid.raw) || proto.lid() > 0xffff || proto.mtu() < 256 ||
      proto.mtu() > 4096 || proto.queue_pair() > 0xffffff || proto.packet_number() > 0xffffff ||
      proto.reads_max() < 1 || proto.reads_max() > 255) {
    return DataLoss("the other end's queue pair has fields out of range");
  }
  end.queue_pair = proto.queue_pair();
  end.packet_number = proto.packet_number();
  std::memcpy(end.gid.raw, proto.gid().data(), sizeof(end.gid.raw));
  end.lid = static_cast<uint16_t>(proto.lid());
  end.network = proto.network();
  end.mtu = proto.mtu();
  end.mtu_setting = proto.mtu_setting();
  end.service_level = proto.service_level();
  end.traffic_class = proto.traffic_class();
  end.queue_depth = proto.queue_depth();
  end.reads_max = proto.reads_max();
  end.ring_address = proto.ring_address();
  end.ring_key = proto.ring_key();
  end.ring_bytes = proto.ring_bytes();
  return end;
}

Status VerbsEndpoint::CheckAgreement(const VerbsEndpoint& other) const {
  if (network != other.network) {
    return FailedPrecondition("its RDMA device is on a network of ", other.network,
                              ", this one of ", network,
                              ": choose another by --verbs_device or --verbs_gid_index");
  }
  if (mtu_setting != 0 && other.mtu_setting != 0 && mtu_setting != other.mtu_setting) {
    return Differs("mtu", StrCat(mtu_setting), StrCat(other.mtu_setting));
  }
  if (service_level != other.service_level) {
    return Differs("service_level", StrCat(service_level), StrCat(other.service_level));
  }
  if (traffic_class != other.traffic_class) {
    return Differs("traffic_class", StrCat(traffic_class), StrCat(other.traffic_class));
  }
  if (queue_depth != other.queue_depth) {
    return Differs("queue_depth", StrCat(queue_depth), StrCat(other.queue_depth));
  }
  return OkStatus();
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/verbs/device.h"

#include <arpa/inet.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace penstock {
namespace {

constexpr int kReadsMax = 16;

int MtuBytes(ibv_mtu mtu) { return 128 << static_cast<int>(mtu); }

std::string AddressText(const ibv_gid& gid) {
  char text[INET6_ADDRSTRLEN] = "?";
  inet_ntop(AF_INET6, gid.raw, text, sizeof(text));
  return text;
}

bool IsIpv4(const ibv_gid& gid) {
  constexpr uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.raw, kMapped, sizeof(kMapped)) == 0;
}

// Returns the limit of locked memory, in the form of `ulimit -l`.
std::string LockLimit() {
  rlimit limit = {};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  if (limit.rlim_cur == RLIM_INFINITY) return "unlimited";
  return StrCat(limit.rlim_cur >> 10, " KiB");
}

Status CannotOpen(const std::string& name, int error) {
  if (error == EACCES || error == EPERM) {
    return FailedPrecondition(
        "this process may not open RDMA device ", name, " (", std::strerror(error),
        "): give its user access to /dev/infiniband/uverbs*, or the container --device=",
        "/dev/infiniband");
  }
  return FailedPrecondition("cannot open RDMA device ", name, " (", std::strerror(error),
                            "): check that /dev/infiniband has its files");
}

// The devices of this host. Destruction frees the list.
struct DeviceList {
  DeviceList() : devices(ibv_get_device_list(&count)) {
    if (devices == nullptr) count = 0;  // ENOSYS: the kernel has no RDMA
  }
  ~DeviceList() {
    if (devices != nullptr) ibv_free_device_list(devices);
  }
  int count = 0;
  ibv_device** devices;
};

}  // namespace

StatusOr<std::shared_ptr<VerbsDevice>> VerbsDevice::Open(const VerbsSettings& settings) {
  (void)ibv_fork_init();  // on old kernels, a fork could move registered pages to the child
  const DeviceList list;
  if (list.count == 0) {
    return FailedPrecondition("this host has no RDMA device: load its driver");
  }
  std::string names;
  Status why;
  for (int i = 0; i < list.count; ++i) {
    const std::string name = ibv_get_device_name(list.devices[i]);
    StrAppend(&names, names.empty() ? "" : ", ", name);
    if (!settings.device.empty() && settings.device != name) continue;
    errno = 0;
    ibv_context* const context = ibv_open_device(list.devices[i]);
    if (context == nullptr) {
      if (why.ok()) why = CannotOpen(name, errno);
      continue;
    }
    std::shared_ptr<VerbsDevice> device(new VerbsDevice(settings, context));
    const Status prepared = device->Prepare();
    if (prepared.ok()) return device;
    if (why.ok()) why = prepared;
  }
  if (!why.ok()) return why;
  return FailedPrecondition("--verbs_device: this host has no RDMA device '", settings.device,
                            "'; write one of ", names);
}

VerbsDevice::VerbsDevice(const VerbsSettings& settings, ibv_context* context)
    : settings_(settings), context_(context), name_(ibv_get_device_name(context->device)) {}

VerbsDevice::~VerbsDevice() {
  if (domain_ != nullptr) ibv_dealloc_pd(domain_);
  ibv_close_device(context_);
}

Status VerbsDevice::Prepare() {
  QueryDevice();
  RETURN_IF_ERROR(FindPort());
  RETURN_IF_ERROR(FindAddress());
  domain_ = ibv_alloc_pd(context_);
  if (domain_ != nullptr) return OkStatus();
  return FailedPrecondition("RDMA device ", name_, " has no protection domain left (",
                            std::strerror(errno), ")");
}

void VerbsDevice::QueryDevice() {
  ibv_device_attr_ex attributes = {};
  if (ibv_query_device_ex(context_, nullptr, &attributes) != 0) return;
  const ibv_device_attr& device = attributes.orig_attr;
  ports_ = device.phys_port_cnt;
  reads_max_ =
      std::clamp(std::min(device.max_qp_rd_atom, device.max_qp_init_rd_atom), 1, kReadsMax);
  const uint32_t needed = IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_WRITE;
  supports_page_faults_ = (attributes.odp_caps.general_caps & IBV_ODP_SUPPORT) != 0 &&
                          (attributes.odp_caps.per_transport_caps.rc_odp_caps & needed) == needed;
}

Status VerbsDevice::FindPort() {
  if (settings_.port > ports_) {
    return FailedPrecondition("--verbs_port: RDMA device ", name_, " has no port ", settings_.port,
                              "; write 1 to ", ports_, ", or 0 for the first that is active");
  }
  for (int number = 1; number <= ports_; ++number) {
    if (settings_.port != 0 && settings_.port != number) continue;
    ibv_port_attr port = {};
    if (ibv_query_port(context_, static_cast<uint8_t>(number), &port) != 0) continue;
    if (port.state != IBV_PORT_ACTIVE) continue;
    port_.number = number;
    port_.lid = port.lid;
    port_.is_ethernet = port.link_layer == IBV_LINK_LAYER_ETHERNET;
    port_.mtu = MtuBytes(port.active_mtu);
    gids_ = port.gid_tbl_len;
    if (settings_.mtu <= port_.mtu) return OkStatus();
    return FailedPrecondition("--verbs_mtu: port ", number, " of RDMA device ", name_,
                              " takes packets of up to ", port_.mtu, " bytes, not ", settings_.mtu,
                              "; write ", port_.mtu, " or less, or raise the network's MTU");
  }
  if (settings_.port == 0) {
    return FailedPrecondition("no port of RDMA device ", name_, " is active: bring its link up");
  }
  return FailedPrecondition("--verbs_port: port ", settings_.port, " of RDMA device ", name_,
                            " is not active: bring its link up, or write 0 for one that is");
}

Status VerbsDevice::FindAddress() {
  int best = -1;
  ibv_gid_entry chosen = {};
  const int first = std::max(settings_.gid_index, 0);
  const int end = settings_.gid_index >= 0 ? settings_.gid_index + 1 : gids_;
  int best_rank = -1;
  for (int index = first; index < std::min(end, gids_); ++index) {
    ibv_gid_entry entry = {};
    const auto port = static_cast<uint32_t>(port_.number);
    if (ibv_query_gid_ex(context_, port, static_cast<uint32_t>(index), &entry, 0) != 0) continue;
    const bool routable = entry.gid_type == IBV_GID_TYPE_ROCE_V2;
    const int rank = (routable ? 2 : 0) + (IsIpv4(entry.gid) ? 1 : 0);
    if (rank <= best_rank) continue;
    best_rank = rank;
    best = index;
    chosen = entry;
  }
  if (best < 0) {
    return FailedPrecondition("--verbs_gid_index: port ", port_.number, " of RDMA device ", name_,
                              " has no address at index ", settings_.gid_index,
                              "; `ibv_devinfo -v` lists them, -1 chooses one");
  }
  port_.gid_index = best;
  port_.gid = chosen.gid;
  port_.is_routable = chosen.gid_type != IBV_GID_TYPE_ROCE_V1;
  return OkStatus();
}

std::string VerbsDevice::Describe() const {
  return StrCat("device=", name_, " port=", port_.number, " gid_index=", port_.gid_index, " (",
                AddressText(port_.gid), ", ",
                !port_.is_ethernet  ? "InfiniBand"
                : port_.is_routable ? "RoCE v2"
                                    : "RoCE v1",
                ") mtu=", settings_.mtu != 0 ? settings_.mtu : port_.mtu,
                " queue_depth=", settings_.queue_depth, " timeout=", settings_.timeout,
                " retry_count=", settings_.retry_count, " service_level=", settings_.service_level,
                " traffic_class=", settings_.traffic_class,
                supports_page_faults_ ? " (memory is not pinned: ODP)" : "");
}

StatusOr<std::unique_ptr<MemoryRegion>> VerbsDevice::Register(void* memory, size_t bytes,
                                                              int access) {
  const int faults = supports_page_faults_ ? IBV_ACCESS_ON_DEMAND : 0;
  ibv_mr* const region = ibv_reg_mr(domain_, memory, bytes, access | faults);
  if (region != nullptr) return std::make_unique<MemoryRegion>(region, shared_from_this());
  const int error = errno;
  if (error == ENOMEM || error == EAGAIN || error == EPERM) {
    return ResourceExhausted("cannot register ", bytes, " bytes of memory with RDMA device ", name_,
                             " (", std::strerror(error), "): the limit of locked memory is ",
                             LockLimit(), "; raise it by `ulimit -l unlimited`, LimitMEMLOCK=",
                             "infinity of a systemd unit or --ulimit memlock=-1 of a container");
  }
  return ResourceExhausted("cannot register ", bytes, " bytes of memory with RDMA device ", name_,
                           ": ", std::strerror(error));
}

}  // namespace penstock

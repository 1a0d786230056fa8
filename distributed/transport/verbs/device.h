// SPDX-License-Identifier: Apache-2.0
//
// VerbsDevice: an open RDMA device, with the port that this task uses. MemoryRegion: memory that
// has been registered with it, which pins the memory unless the device takes page faults (ODP).
//
// Thread-safe. Regions and queue pairs keep the device alive.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/base/status.h"
#include "distributed/transport/verbs/settings.h"

namespace penstock {

class VerbsDevice;

class MemoryRegion {
 public:
  MemoryRegion(ibv_mr* region, std::shared_ptr<VerbsDevice> device)
      : region_(region), device_(std::move(device)) {}
  MemoryRegion(const MemoryRegion&) = delete;
  ~MemoryRegion() { ibv_dereg_mr(region_); }

  uint32_t local_key() const { return region_->lkey; }
  uint32_t remote_key() const { return region_->rkey; }

 private:
  ibv_mr* const region_;
  const std::shared_ptr<VerbsDevice> device_;
};

class VerbsDevice : public std::enable_shared_from_this<VerbsDevice> {
 public:
  // The port and its address. The other end gets gid, lid, mtu and the kind of the network.
  struct Port {
    int number = 0;
    int gid_index = 0;
    ibv_gid gid = {};
    uint16_t lid = 0;
    int mtu = 0;              // bytes
    bool is_ethernet = true;  // true: RoCE; false: InfiniBand
    bool is_routable = true;  // true: RoCE v2; false: RoCE v1
  };

  // Opens the device. FailedPrecondition if no device, port or address matches `settings`,
  // or if this process may not use it: one line names the setting and what to do.
  static StatusOr<std::shared_ptr<VerbsDevice>> Open(const VerbsSettings& settings);
  VerbsDevice(const VerbsDevice&) = delete;
  ~VerbsDevice();

  const std::string& name() const { return name_; }
  const Port& port() const { return port_; }
  ibv_context* context() const { return context_; }
  ibv_pd* domain() const { return domain_; }
  // Returns how many RDMA reads of one queue pair the device runs at the same time.
  int reads_max() const { return reads_max_; }
  // Returns one line: the settings in effect.
  std::string Describe() const;

  // Registers memory. `access`: flags of ibv_reg_mr. ResourceExhausted if that fails; the error
  // names the limit of locked memory if that may be the reason.
  StatusOr<std::unique_ptr<MemoryRegion>> Register(void* memory, size_t bytes, int access);

 private:
  VerbsDevice(const VerbsSettings& settings, ibv_context* context);
  Status Prepare();
  Status FindPort();
  Status FindAddress();
  void QueryDevice();

  const VerbsSettings settings_;
  ibv_context* const context_;
  const std::string name_;
  ibv_pd* domain_ = nullptr;
  Port port_;
  int ports_ = 0;
  int gids_ = 0;
  int reads_max_ = 1;
  bool supports_page_faults_ = false;
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "client/device_setter.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "core/op/device_name.h"
#include "core/op/private_attrs.h"
#include "core/op/registry.h"

namespace penstock::client {
namespace {

// Returns whether the node holds state that belongs on parameter servers.
bool HoldsParameters(const Graph::NodeSpec& spec) {
  const OpDef* const op = Registry::Global().FindOp(spec.op);
  return op != nullptr && op->holds_parameters && !spec.attrs.contains(kLocalAttr);
}

// If the new node works on a variable or table, returns the node that makes it; else null.
const Node* StateOf(const Graph::NodeSpec& spec) {
  for (const Endpoint& input : spec.inputs) {
    if (input.node == nullptr) continue;
    const EdgeType type = input.node->output_type(input.index);
    if (type.refers_to_state()) return input.node;
  }
  return nullptr;
}

// Returns the estimated bytes of the node's state; 1 if its type or shape is not given.
int64_t BytesOf(const Graph::NodeSpec& spec) {
  const OpDef* const op = Registry::Global().FindOp(spec.op);
  if (op != nullptr && op->state_bytes != nullptr) {
    return static_cast<int64_t>(std::clamp(op->state_bytes(spec.attrs), 1.0, 1e18));
  }
  const auto dtype = spec.attrs.find("dtype");
  const auto shape = spec.attrs.find("shape");
  if (dtype == spec.attrs.end() || shape == spec.attrs.end()) return 1;
  const auto* const type = dtype->second.get<EdgeType>();
  const auto* const dims = shape->second.get<PartialShape>();
  if (type == nullptr || dims == nullptr) return 1;
  // A double, so that the product of arbitrary dimensions does not overflow.
  double bytes = static_cast<double>(SizeOf(type->dtype));
  for (int d = 0; d < dims->rank(); ++d)
    bytes *= static_cast<double>(std::max<int64_t>(1, dims->dim(d)));
  return static_cast<int64_t>(std::min(bytes, 1e18));
}

// Returns the device `wanted`, with the missing parts taken from `otherwise`. Returns `wanted`
// itself if it names another job than `otherwise`, or is not a device's name.
std::string WithDefaults(const std::string& wanted, const DeviceName& otherwise) {
  StatusOr<DeviceName> parsed = DeviceName::Parse(wanted);
  if (!parsed.ok()) return wanted;  // the builder reports it
  const bool other_job = parsed->job && otherwise.job && parsed->job != otherwise.job;
  if (other_job) return wanted;
  if (!parsed->job) parsed->job = otherwise.job;
  if (!parsed->replica) parsed->replica = otherwise.replica;
  if (!parsed->task) parsed->task = otherwise.task;
  if (!parsed->type) parsed->type = otherwise.type;
  if (!parsed->index) parsed->index = otherwise.index;
  return parsed->ToString();
}

class ReplicaSetter {
 public:
  ReplicaSetter(const ReplicaDevices& devices, DeviceName ps, DeviceName worker)
      : balance_(devices.balance),
        bytes_(devices.ps_tasks),
        ps_(std::move(ps)),
        worker_(std::move(worker)) {}

  std::string operator()(const Graph::NodeSpec& spec) {
    if (const Node* state = StateOf(spec)) {
      const StatusOr<DeviceName> home = DeviceName::Parse(state->requested_device());
      return home.ok() ? WithDefaults(spec.device, *home) : state->requested_device();
    }
    if (bytes_.empty() || !HoldsParameters(spec)) return WithDefaults(spec.device, worker_);
    return WithDefaults(spec.device, NextPs(spec));
  }

 private:
  DeviceName NextPs(const Graph::NodeSpec& spec) {
    DeviceName ps = ps_;
    const StatusOr<DeviceName> wanted = DeviceName::Parse(spec.device);
    const bool elsewhere = wanted.ok() && wanted->job && wanted->job != ps_.job;
    const bool fixed = wanted.ok() && wanted->task;
    if (elsewhere || fixed) return ps;  // a local variable is not placed on a parameter server
    const auto least = std::min_element(bytes_.begin(), bytes_.end());
    const int task = balance_ == Balance::kBytes ? static_cast<int>(least - bytes_.begin())
                                                 : next_++ % static_cast<int>(bytes_.size());
    bytes_[task] += BytesOf(spec);
    ps.task = task;
    return ps;
  }

  const Balance balance_;
  std::vector<int64_t> bytes_;  // bytes placed so far, by ps task
  int next_ = 0;
  const DeviceName ps_, worker_;
};

}  // namespace

GraphBuilder::DeviceFunction ReplicaDeviceSetter(const ReplicaDevices& devices) {
  StatusOr<DeviceName> ps = DeviceName::Parse(devices.ps_device);
  StatusOr<DeviceName> worker = DeviceName::Parse(devices.worker_device);
  // If a device's name is invalid, returns it unchanged; the builder reports the error.
  if (!ps.ok()) return [name = devices.ps_device](const Graph::NodeSpec&) { return name; };
  if (!worker.ok()) return [name = devices.worker_device](const Graph::NodeSpec&) { return name; };
  const auto setter = std::make_shared<ReplicaSetter>(devices, *std::move(ps), *std::move(worker));
  return [setter](const Graph::NodeSpec& spec) { return (*setter)(spec); };
}

std::string HostOf(const std::string& device) {
  StatusOr<DeviceName> name = DeviceName::Parse(device);
  if (!name.ok() || !name->type) return device;
  name->type = "CPU";
  name->index = 0;
  return name->ToString();
}

GraphBuilder::DeviceFunction OnDevice(const std::string& device) {
  return ReplicaDeviceSetter({.ps_tasks = 0, .worker_device = device});
}

}  // namespace penstock::client

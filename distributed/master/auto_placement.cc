// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/auto_placement.h"

#include <utility>

#include "core/compiler/placement/placer.h"

namespace penstock {
namespace {

constexpr uint32_t kFirst = 4, kSecond = 16, kEvery = 1024;

}  // namespace

Status CheckPlacement(const std::string& placement) {
  if (placement == kPlacementAuto || placement == kPlacementClient) return OkStatus();
  return InvalidArgument("placement: expected '", kPlacementClient, "' or '", kPlacementAuto,
                         "', got '", placement, "'");
}

StatusOr<std::shared_ptr<const DeviceByNode>> AutoPlacement::StateDevices(
    const Graph& graph, int64_t version, const std::vector<DeviceInfo>& devices,
    const CompileOptions& options) {
  MutexLock lock(mu_);
  if (version_ == version) return state_;
  CompileOptions known = options;
  known.state_devices = state_.get();
  StatusOr<DeviceByNode> state = PlaceState(graph, devices, known);
  RETURN_IF_ERROR(Annotate(state.status(), "placement of the whole graph"));
  state_ = std::make_shared<const DeviceByNode>(*std::move(state));
  version_ = version;
  return state_;
}

StepSampling::Sample StepSampling::Begin() {
  const uint32_t begun = begun_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (begun == kFirst || begun == kSecond || begun % kEvery == 0) return Sample::kMeasureAndPlace;
  return begun >= 2 && begun < kFirst ? Sample::kMeasure : Sample::kNone;
}

}  // namespace penstock

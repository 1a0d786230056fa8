// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/auto_placement.h"

#include <utility>

#include "core/compiler/placement/placer.h"

namespace penstock {
namespace {

constexpr uint32_t kFirst = 4, kSecond = 16, kEvery = 1024;
constexpr double kSlower = 1.25, kQuicker = 0.8;

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

StepSampling::Sample StepSampling::Begin(const StepTimes& times) {
  const uint32_t begun = begun_.fetch_add(1, std::memory_order_relaxed) + 1;
  const uint32_t burst_end = burst_end_.load(std::memory_order_relaxed);
  if (begun == kFirst || begun == kSecond || begun % kEvery == 0 || begun == burst_end) {
    return Sample::kMeasureAndPlace;
  }
  if (begun < burst_end || (begun >= 2 && begun < kFirst)) return Sample::kMeasure;
  return HasChanged(begun, times) ? Sample::kMeasure : Sample::kNone;
}

// Returns whether a burst begins with this execution.
bool StepSampling::HasChanged(uint32_t begun, const StepTimes& times) {
  const uint32_t burst_end = burst_end_.load(std::memory_order_relaxed);
  if (begun % kCheckEvery != 0 || (burst_end > 0 && begun < burst_end + kPause)) return false;
  const int64_t recent_ns = times.MeanNanos();
  const int64_t usual_ns = reference_ns_.load(std::memory_order_relaxed);
  if (recent_ns == 0) return false;
  const double ratio = static_cast<double>(recent_ns) / static_cast<double>(usual_ns);
  if (usual_ns > 0 && ratio <= kSlower && ratio >= kQuicker) return false;
  reference_ns_.store(recent_ns, std::memory_order_relaxed);
  if (usual_ns == 0) return false;
  burst_end_.store(begun + kBurst - 1, std::memory_order_relaxed);
  return true;
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// TrainingLoop's handling of a loss that is NaN or infinite.
#include <algorithm>
#include <cmath>
#include <utility>

#include "client/non_finite.h"
#include "client/training.h"

namespace penstock::client {
namespace {

// The timeout of a step that is run again to find the origin of a NaN.
constexpr double kFindNanTimeoutSeconds = 60;

}  // namespace

Status TrainingLoop::CheckLoss(double loss, const std::vector<Tensor>& batch) {
  if (std::isfinite(loss)) return OkStatus();
  if (options_.stop_on_nan) return NonFiniteLoss(loss, batch);
  if (!std::exchange(said_non_finite_, true)) {
    Say(LogLevel::kWarning, "loss_not_finite",
        StrCat(step_.loss, " is ", loss, " after step ", global_step_,
               "; training goes on, because stop_on_nan is off"));
  }
  return OkStatus();
}

Status TrainingLoop::NonFiniteLoss(double loss, const std::vector<Tensor>& batch) {
  Output output;
  for (const auto& [name, measure] : step_.measures) {
    if (name == step_.loss) output = measure;
  }
  std::vector<Feed> feeds;
  for (size_t i = 0; i < batch.size(); ++i) feeds.push_back({step_.inputs[i], batch[i]});
  EndOrGiveUpSave();
  const double seconds = std::min(options_.step_seconds, kFindNanTimeoutSeconds);
  NonFiniteOrigin origin(program_, output, feeds, *session_, saver_ ? &*saver_ : nullptr,
                         options_.checkpoint_dir, static_cast<int64_t>(seconds * 1e3),
                         *options_.env);
  const auto devices = session_->ListDevices();
  const std::string task = devices.ok() && !devices->empty()
                               ? StrCat(" of ", devices->front().name.Task().ToString())
                               : "";
  return InvalidArgument(step_.loss, " is ", loss, " after step ", global_step_, task, ": ",
                         origin.Describe(), NotSavedSince());
}

}  // namespace penstock::client

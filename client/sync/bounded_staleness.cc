// SPDX-License-Identifier: Apache-2.0
#include "client/sync/bounded_staleness.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "client/ops/line_scope.h"
#include "client/seconds.h"
#include "core/op/gradient.h"

namespace penstock::client {
namespace {

// A step that has waited for less than this did not wait for another worker.
constexpr double kWaitSecondsMin = 1e-4;

// Returns at least 1 ms for a positive timeout, because 0 ms means no limit.
int64_t TimeoutMillis(double seconds) {
  return seconds > 0 ? std::max<int64_t>(1, Millis(seconds)) : 0;
}

BoundedStalenessOptions CheckedOptions(Program& program, const BoundedStalenessOptions& options,
                                       SourceLine line) {
  const bool good_worker =
      options.workers >= 1 && options.worker >= 0 && options.worker < options.workers;
  if (good_worker && options.bound >= 0 && options.timeout_seconds >= 0) return options;
  const CallerLine source(program, line);
  if (!good_worker) {
    program.Fail(InvalidArgument("BoundedStaleness: worker is ", options.worker, " of ",
                                 options.workers, " workers; must be in [0, workers)"));
  } else {
    program.Fail(InvalidArgument("BoundedStaleness: bound is ", options.bound,
                                 " and timeout_seconds is ", options.timeout_seconds,
                                 "; both must be at least 0"));
  }
  return {};
}

}  // namespace

BoundedStaleness::BoundedStaleness(Program& program, const Options& options, SourceLine line)
    : program_(program), options_(CheckedOptions(program, options, line)) {}

Output BoundedStaleness::Apply(Output update, SourceLine line) {
  const CallerLine source(program_, line);
  const auto names = program_.NameScope("bounded_staleness");
  if (leave_.valid()) {
    program_.Fail(FailedPrecondition("BoundedStaleness: Apply was called twice"));
    return {&program_, -1, 0};
  }
  const auto unordered = program_.ClearControlDependencies();
  const auto device_scope = program_.ColocateWith(program_.GlobalStep().handle());
  const int64_t worker = options_.worker, workers = options_.workers;
  // A training with another number of workers has clocks of its own, so that the clocks of an
  // earlier training do not matter.
  const std::string shared_name = StrCat("bounded_staleness/clocks_of_", workers);
  const Output clocks = CallIn(program_, "WorkerClocks", {},
                               {{"workers", workers}, {"shared_name", shared_name}}, "clocks");
  // This node has no inputs from the step, so it runs at the start, like the reads of variables.
  const Output begun =
      Call("WorkerClocksBegin", {clocks}, {{"worker", worker}, {"label", options_.task}});
  leave_ = Call("WorkerClocksLeave", {clocks}, {{"worker", worker}});
  clocks_ = CallN("WorkerClocksRead", {clocks});
  const auto after = program_.ControlDependencies({update, begun});
  const Outputs advanced = CallN("WorkerClocksAdvance", {clocks},
                                 {{"worker", worker},
                                  {"bound", options_.bound},
                                  {"timeout_ms", TimeoutMillis(options_.timeout_seconds)}});
  waited_ = advanced[1];
  return advanced[0];
}

Status BoundedStaleness::SessionReady(Session& session, int64_t global_step) {
  if (leave_.valid()) return OkStatus();
  return FailedPrecondition("BoundedStaleness: its Apply is not the train op");
}

void BoundedStaleness::Fetched(std::vector<Tensor> values) {
  const double waited = values[0].scalar<double>();
  ++steps_;
  if (waited < kWaitSecondsMin) return;
  ++waits_;
  waited_seconds_ += waited;
}

Status BoundedStaleness::End(Session& session, int64_t global_step) {
  return session.Execute(leave_);
}

std::string BoundedStaleness::Describe() const {
  return absl::StrFormat(
      "staleness bound %d: %d of %d steps waited for slower workers, %.1f s in total",
      options_.bound, waits_, steps_, waited_seconds_);
}

}  // namespace penstock::client

// SPDX-License-Identifier: Apache-2.0
#include "client/optimizers/schedules.h"

#include <algorithm>
#include <numbers>

#include "client/ops/line_scope.h"
#include "core/op/gradient.h"

namespace penstock::client {
namespace {

// Adds a schedule's nodes on the device of the global step. Passes the step to them as a double,
// because a float cannot represent every step above 2^24.
template <class Nodes>
Output BesideStep(Program& program, const char* name, const Nodes& nodes) {
  const auto unordered = program.ClearControlDependencies();
  const Variable step = program.GlobalStep();
  const auto scope = program.NameScope(name);
  const auto device_scope = program.ColocateWith(step.handle());
  return nodes(Cast(step, DType::kDouble));
}

bool Positive(Program& program, const char* name, double steps) {
  if (steps > 0) return true;
  program.Fail(InvalidArgument(name, ": steps=", steps, ", expected more than 0"));
  return false;
}

// Returns min(1, step / steps).
Output Progress(Output step, double steps) { return Minimum(step / steps, ConstantLike(step, 1)); }

}  // namespace

Output ExponentialDecay(Program& program, const ExponentialDecayOptions& options, SourceLine line) {
  const CallerLine source(program, line);
  constexpr char kName[] = "exponential_decay";
  if (!Positive(program, kName, options.steps)) return {&program, -1, 0};
  return BesideStep(program, kName, [&](Output step) {
    Output times = step / options.steps;
    if (options.staircase) times = Call("Floor", {times});
    return Pow(ConstantLike(step, options.rate), times) * options.initial;
  });
}

Output CosineDecay(Program& program, const CosineDecayOptions& options, SourceLine line) {
  const CallerLine source(program, line);
  constexpr char kName[] = "cosine_decay";
  if (!Positive(program, kName, options.steps)) return {&program, -1, 0};
  return BesideStep(program, kName, [&](Output step) {
    const Output wave = (Cos(Progress(step, options.steps) * std::numbers::pi) + 1) * 0.5;
    return (wave * (1 - options.final) + options.final) * options.initial;
  });
}

Output PolynomialDecay(Program& program, const PolynomialDecayOptions& options, SourceLine line) {
  const CallerLine source(program, line);
  constexpr char kName[] = "polynomial_decay";
  if (!Positive(program, kName, options.steps)) return {&program, -1, 0};
  return BesideStep(program, kName, [&](Output step) {
    const Output left = 1 - Progress(step, options.steps);
    return Pow(left, ConstantLike(step, options.power)) * (options.initial - options.end) +
           options.end;
  });
}

Output PiecewiseConstant(Program& program, const std::vector<int64_t>& boundaries,
                         const std::vector<double>& values, SourceLine line) {
  const CallerLine source(program, line);
  if (values.size() != boundaries.size() + 1 ||
      !std::is_sorted(boundaries.begin(), boundaries.end())) {
    program.Fail(InvalidArgument("piecewise_constant: ", boundaries.size(), " boundaries and ",
                                 values.size(),
                                 " values, expected ascending boundaries and a value more"));
    return {&program, -1, 0};
  }
  return BesideStep(program, "piecewise_constant", [&](Output step) {
    Output rate = ConstantLike(step, values[0]);
    for (size_t i = 0; i < boundaries.size(); ++i) {
      const Output after = Greater(step, ConstantLike(step, static_cast<double>(boundaries[i])));
      rate = Select(after, ConstantLike(step, values[i + 1]), rate);
    }
    return rate;
  });
}

Output WarmUp(Program& program, double steps, Output rate, SourceLine line) {
  const CallerLine source(program, line);
  constexpr char kName[] = "warm_up";
  if (!Positive(program, kName, steps)) return {&program, -1, 0};
  return BesideStep(program, kName, [&](Output step) {
    return Cast(rate, DType::kDouble) * Progress(step + 1, steps);
  });
}

Output WarmUp(Program& program, double steps, double rate, SourceLine line) {
  const CallerLine source(program, line);
  return WarmUp(program, steps, Constant(program, Tensor::Scalar(rate)));
}

}  // namespace penstock::client

// SPDX-License-Identifier: Apache-2.0
//
// BuildTowers: synchronous data parallelism in one graph. Each tower is a copy of the model on one
// device, which computes the loss of its part of the batch; the gradients are averaged on the
// devices of the variables and applied once per step:
//
//   const Towers towers = BuildTowers(program, optimizer, devices, [&](int i) {
//     return Loss(model(images[i]), labels[i]);
//   });
//   Output train = optimizer.ApplyGradients(program, towers.gradients, program.GlobalStep());
//
// If each tower gets an equal fraction of the batch, a step equals the step of the complete batch,
// except for rounding. One client runs the steps of all towers; the other tasks only serve. A step
// either uses the gradients of all towers or fails.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "client/optimizer.h"

namespace penstock::client {

struct Towers {
  Output loss;  // the mean of all towers' losses
  std::vector<VariableGradient> gradients;
};

// Calls loss(i) to add the nodes of tower i on devices[i]; `line` is not used for these. Make the
// variables before this call, so that the towers share them.
Towers BuildTowers(Program& program, Optimizer& optimizer, const std::vector<std::string>& devices,
                   const std::function<Output(int tower)>& loss,
                   SourceLine line = {__builtin_FILE(), __builtin_LINE()});

}  // namespace penstock::client

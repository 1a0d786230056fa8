// SPDX-License-Identifier: Apache-2.0
//
// BuildTowers: synchronous data parallelism in one graph. Each device computes the loss of its own
// part of the batch; the gradients are averaged beside the variables and applied once per step:
//
//   const Towers towers = BuildTowers(program, optimizer, devices, [&](int i) {
//     return Loss(model(images[i]), labels[i]);
//   });
//   Output train = optimizer.ApplyGradients(program, towers.gradients, program.GlobalStep());
//
// With parts of equal size a step is the step of one big batch, but for rounding. One client
// drives all towers; the tasks of the others only serve. A step is whole or an error: no worker's
// gradients are ever late or lost.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "client/optimizer.h"

namespace penstock::client {

struct Towers {
  Output loss;  // the mean of all towers'
  std::vector<VariableGradient> gradients;
};

// `loss(i)` adds tower i; variables must have been made before, so that the towers share them.
Towers BuildTowers(Program& program, Optimizer& optimizer, const std::vector<std::string>& devices,
                   const std::function<Output(int tower)>& loss);

}  // namespace penstock::client

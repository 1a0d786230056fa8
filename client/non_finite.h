// SPDX-License-Identifier: Apache-2.0
//
// Finds the node from which the NaN or the infinity of a training's loss comes. Costs nothing
// before there is one: then the step is run again, without its update, and everything that the loss
// is computed from fetched.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/program.h"
#include "client/saver.h"
#include "client/session.h"

namespace penstock::client {

// "NaN", "Inf" or "-Inf": the first such element of a tensor of floating-point numbers; "" if
// all are finite, or the tensor is of another type.
std::string NonFiniteIn(const Tensor& tensor);

class NonFiniteOrigin {
 public:
  // `feeds` are those of the step. `saver` may be null, or has checkpoints in `checkpoint_dir`. All
  // borrowed. Each step that is run ends after `timeout_ms`.
  NonFiniteOrigin(const Program& program, Output loss, const std::vector<Feed>& feeds,
                  Session& session, Saver* saver, std::string checkpoint_dir, int64_t timeout_ms,
                  Env& env);

  // Sentences for people: a fed tensor that is not finite; else the first node, in topological
  // order, with an output that is not. The step has changed the variables since: if that node is
  // a variable, names it, and looks once more with the values of the newest good checkpoint fed in
  // the variables' place. Nodes inside of loops and branches are not looked at, but what leaves
  // them is.
  std::string Describe();

 private:
  struct Found {
    Endpoint output;
    std::string what;  // "NaN"
  };
  Status FindCandidates();
  StatusOr<std::optional<Found>> RunAgain(const std::vector<Feed>& feeds);
  std::string VariableOf(const Endpoint& output) const;
  std::string DescribeVariable(const Found& found);
  std::string WithCheckpoint();

  const Program& program_;
  const Output loss_;
  const std::vector<Feed>& feeds_;
  Session& session_;
  Saver* const saver_;
  const std::string checkpoint_dir_;
  const int64_t timeout_ms_;
  Env& env_;
  std::vector<Endpoint> candidates_;  // in topological order
};

}  // namespace penstock::client

// SPDX-License-Identifier: Apache-2.0
//
// NonFiniteOrigin: finds the node that first produced the NaN or infinity in the loss of a
// training. A training whose loss is finite does not use it. If the loss is not finite, it runs the
// step again, without the update, and fetches all tensors from which the loss is computed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/program.h"
#include "client/saver.h"
#include "client/session.h"

namespace penstock::client {

// Returns "NaN", "Inf" or "-Inf" for the first element of the tensor that is not finite; "" if all
// are finite, or if the tensor is not floating point.
std::string NonFiniteIn(const Tensor& tensor);

class NonFiniteOrigin {
 public:
  // `feeds` are the feeds of the failed step. `saver` may be null; otherwise its checkpoints are in
  // `checkpoint_dir`. Borrows the arguments. Each step that this object runs has the timeout
  // `timeout_ms`.
  NonFiniteOrigin(const Program& program, Output loss, const std::vector<Feed>& feeds,
                  Session& session, Saver* saver, std::string checkpoint_dir, int64_t timeout_ms,
                  Env& env);

  // Returns a text that names a fed tensor that is not finite. If there is none, the text names the
  // first node, in topological order, with an output that is not finite. The node may be a
  // variable, because the failed step has changed the variables. In this case the text names the
  // variable, and the search is repeated with the values of the newest good checkpoint fed in place
  // of the variables. Nodes inside loops and branches are not checked, but the outputs of loops and
  // branches are. If no such node is found, the text says why.
  std::string Describe();

 private:
  struct NonFiniteOutput {
    Endpoint output;
    std::string what;  // "NaN"
  };
  Status FindCandidates();
  StatusOr<std::optional<NonFiniteOutput>> RunStepAgain(const std::vector<Feed>& feeds);
  std::string VariableOf(const Endpoint& output) const;
  std::string DescribeVariable(const NonFiniteOutput& found);
  std::string WithCheckpoint();

  const Program& program_;
  const Output loss_;
  const std::vector<Feed>& feeds_;
  Session& session_;
  Saver* const saver_;
  const std::string checkpoint_dir_;
  const int64_t timeout_ms_;
  Env& env_;
  std::vector<Endpoint> candidates_;  // the outputs to check, in topological order
};

}  // namespace penstock::client

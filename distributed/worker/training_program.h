// SPDX-License-Identifier: Apache-2.0
//
// TrainingProgram: a summary of the nodes from which a step computes its updates of variables. A
// master makes it for each step that updates variables (distributed/master/summarize_training.h
// says what is in the hashes) and sends it along with the step's partitions. The task that holds
// the variables compares the summaries of all workers (update_rules.h). A plain value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penstock {

struct TrainingProgram {
  // A node that updates a variable.
  struct Update {
    std::string node;   // its name
    uint64_t hash = 0;  // of all nodes that it depends on; equal in equal programs
    bool operator==(const Update&) const = default;
  };
  struct Node {
    uint64_t hash = 0;  // of the node and all nodes that it depends on
    std::string text;   // "'dense/Relu' (Relu)", for messages
    bool operator==(const Node&) const = default;
  };
  // The maximum size of `nodes`. The hashes of updates cover nodes beyond this limit, too.
  static constexpr size_t kNodesMax = 4096;
  static constexpr size_t kTextMax = 512;  // bytes of Node::text

  std::vector<Update> updates;
  std::vector<Node> nodes;  // each after the nodes that it depends on, in the same order everywhere
  bool empty() const { return updates.empty(); }
  bool operator==(const TrainingProgram&) const = default;
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// EdgeName: "edge_12_w:0", the name of a tensor that is sent between two devices in a step. The
// partitioner makes such a name for each edge that it cuts. Reports show only "w:0", the name that
// the author of the graph knows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/status.h"

namespace penstock {

struct EdgeName {
  static constexpr int kControl = -1;

  int64_t id = 0;    // the number of the producing node, unique in its graph
  std::string node;  // the name of the producing node
  int output = 0;    // which of the node's outputs, or kControl

  // Parses a name that ToString has made. Returns nullopt for text of any other form: graphs that
  // the partitioner did not make may have other names.
  static std::optional<EdgeName> Parse(string_view text);

  bool operator==(const EdgeName&) const = default;
  std::string ToString() const;  // "edge_12_w:0", for a control edge "edge_12_^w"
};

// Returns the tensor of an edge: "w:0" for "edge_12_w:0", and "^w" for "edge_12_^w". Returns
// `edge_name` itself if it has another form.
std::string TensorOf(string_view edge_name);

}  // namespace penstock

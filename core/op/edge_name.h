// SPDX-License-Identifier: Apache-2.0
//
// EdgeName: "edge_12_w:0", the name of a tensor that is sent between two devices in a step. The
// partitioner names each edge that it cuts; reports show the part that the author of the graph
// knows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/status.h"

namespace penstock {

struct EdgeName {
  static constexpr int kControl = -1;

  int64_t id = 0;    // the number of the producer, unique in its graph
  std::string node;  // the producer
  int output = 0;    // its output, or kControl

  // Parses a name that ToString has made. Returns nullopt for text of another form, because other
  // graphs may name their tensors otherwise.
  static std::optional<EdgeName> Parse(string_view text);

  bool operator==(const EdgeName&) const = default;
  std::string ToString() const;  // "edge_12_w:0", for a control edge "edge_12_^w"
};

// Returns the tensor of an edge: "w:0" for "edge_12_w:0", and "^w" for "edge_12_^w". Returns
// `edge_name` itself if it has another form.
std::string TensorOf(string_view edge_name);

}  // namespace penstock

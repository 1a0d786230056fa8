// SPDX-License-Identifier: Apache-2.0
//
// TensorRef: names a tensor or node to feed, fetch or run: an Output of the graph, or its name
// ("x:0" or "x").
#pragma once

#include <string>
#include <utility>

#include "core/op/output.h"

namespace penstock::client {

struct TensorRef {
  TensorRef(Output output) : name(output.name()) {}       // NOLINT: {{x, value}} and
  TensorRef(const char* name) : name(name) {}             // NOLINT: {{"x:0", value}} should
  TensorRef(std::string name) : name(std::move(name)) {}  // NOLINT: both read well
  std::string name;
};

}  // namespace penstock::client

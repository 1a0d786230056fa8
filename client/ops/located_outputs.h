// SPDX-License-Identifier: Apache-2.0
//
// LocatedOutputs: an argument of functions that add a node: a list of tensors, and the line of the
// call. LocatedOutput (core/op/output.h) is the same for one tensor.
//
//   Output AddN(const LocatedOutputs& inputs);
//   AddN({x, y});      // tensors, variables and other types that convert to an Output
//   AddN(gradients);   // an Outputs, or another range of them
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <ranges>
#include <utility>

#include "core/op/output.h"

namespace penstock {

class LocatedOutputs {
 public:
  LocatedOutputs(std::initializer_list<Output> outputs,  // NOLINT: {x, y} is a list
                 const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : outputs_(outputs), line_{file, line} {}
  LocatedOutputs(Outputs outputs, const char* file = __builtin_FILE(),  // NOLINT
                 int line = __builtin_LINE())
      : outputs_(std::move(outputs)), line_{file, line} {}
  // A span or an array, also one of variables.
  template <std::ranges::input_range Range>
  requires(std::convertible_to<std::ranges::range_reference_t<const Range>, Output> &&
           !std::convertible_to<const Range&, Outputs>)
      LocatedOutputs(const Range& outputs, const char* file = __builtin_FILE(),  // NOLINT
                     int line = __builtin_LINE())
      : line_{file, line} {
    for (const auto& output : outputs) outputs_.push_back(output);
  }

  const Outputs& outputs() const { return outputs_; }
  size_t size() const { return outputs_.size(); }
  SourceLine line() const { return line_; }
  // Returns the outputs, and gives the line to the next node that is added to their graph. For an
  // empty list the graph is not known, so the line is dropped.
  const Outputs& Noted() const {
    for (const Output& output : outputs_) {
      if (output.sink == nullptr) continue;
      output.sink->NoteSourceLine(line_);
      break;
    }
    return outputs_;
  }

 private:
  Outputs outputs_;
  SourceLine line_;
};

}  // namespace penstock

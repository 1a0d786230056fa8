// SPDX-License-Identifier: Apache-2.0
//
// Program: a client's graph under construction, and the variables in it.
//
// Not thread-safe. A Program cannot be moved, because Outputs and Variables borrow it.
#pragma once

#include <string>
#include <vector>

#include "client/variable.h"
#include "core/graph/builder.h"

namespace penstock::client {

class Program : public GraphBuilder {
 public:
  using GraphBuilder::GraphBuilder;

  // Returns all variables, in order of creation.
  const std::vector<Variable>& variables() const { return variables_; }
  std::vector<Variable> globals() const;    // variables that are shared between workers and saved
  std::vector<Variable> trainable() const;  // variables that optimizers change
  std::vector<Variable> locals() const;

  // Returns the global step: an int64 variable that optimizers raise by one per update. The first
  // call makes it.
  Variable GlobalStep(SourceLine line = {__builtin_FILE(), __builtin_LINE()});

  // Returns an op that runs after all of `ops`, with one control edge from each of their devices.
  // If `beside` is given, the op is on its device.
  Output Group(const Outputs& ops, string_view name, Output beside = {},
               SourceLine line = {__builtin_FILE(), __builtin_LINE()});
  // Returns an op that gives each of `variables` its initial value.
  Output Initialize(const std::vector<Variable>& variables, string_view name = "init",
                    SourceLine line = {__builtin_FILE(), __builtin_LINE()});
  // Returns a bool vector: whether each of `variables` has a value.
  Output AreInitialized(const std::vector<Variable>& variables,
                        SourceLine line = {__builtin_FILE(), __builtin_LINE()});

 private:
  friend class Variable;
  std::vector<Variable> variables_;
};

}  // namespace penstock::client

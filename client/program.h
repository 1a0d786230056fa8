// SPDX-License-Identifier: Apache-2.0
//
// Program: what a client writes: a graph under construction, and the variables in it.
//
// Not thread-safe. Outputs and Variables borrow it, so it stays where it is.
#pragma once

#include <string>
#include <vector>

#include "client/variable.h"
#include "core/graph/builder.h"

namespace penstock::client {

class Program : public GraphBuilder {
 public:
  using GraphBuilder::GraphBuilder;

  // In order of creation.
  const std::vector<Variable>& variables() const { return variables_; }
  std::vector<Variable> globals() const;    // shared and saved
  std::vector<Variable> trainable() const;  // what optimizers change
  std::vector<Variable> locals() const;

  // The global step: an int64 variable that optimizers raise by one per update; made on first use.
  Variable GlobalStep();

  // An op that runs after all of `ops`, across devices with one edge per device. It stands on the
  // device of `beside`, if that is given.
  Output Group(const Outputs& ops, string_view name, Output beside = {});
  // An op that gives each of `variables` its initial value.
  Output Initialize(const std::vector<Variable>& variables, string_view name = "init");
  // bool[n]: which of `variables` have a value.
  Output AreInitialized(const std::vector<Variable>& variables);

 private:
  friend class Variable;
  std::vector<Variable> variables_;
};

}  // namespace penstock::client

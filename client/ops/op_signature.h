// SPDX-License-Identifier: Apache-2.0
//
// OpSignature: what an op looks like as a C++ function. A value, made from its OpDef.
#pragma once

#include <string>
#include <vector>

#include "core/op/op_def.h"

namespace penstock::client {

struct OpSignature {
  explicit OpSignature(const OpDef& op);

  struct Argument {
    std::string type;  // of C++
    std::string name;
    std::string doc = "";
  };
  struct Option {
    std::string type;
    std::string name;
    std::string default_value;  // C++; what the op itself defaults to
  };
  struct Attribute {
    std::string name;   // of the op
    std::string value;  // C++, in terms of the arguments and options
  };
  struct Result {
    std::string name;
    bool list = false;
    std::string length = "";  // C++: how many tensors a list has
  };

  std::string function;
  std::string options_type;         // NodeOptions if the op has no options of its own
  std::vector<Argument> arguments;  // without the graph and the options
  // Those arguments that are tensors or lists of them. With operands, each is written as a
  // TypedInput (operand.h).
  std::vector<std::string> inputs;
  bool has_operands = false;    // some tensors may be given as numbers
  std::vector<Option> options;  // without the node's name
  std::vector<Attribute> attributes;
  std::vector<Result> results;
  // No input is sure to hold a tensor that knows the graph, so the caller gives it.
  bool needs_graph = false;

 private:
  void AddInputs(const OpDef& op);
  void AddTypes(const OpDef& op);
  void AddAttributes(const OpDef& op);
  void AddResults(const OpDef& op);
  bool Inferred(const std::string& attr) const;
  std::string LengthOf(const std::string& attr, bool is_count) const;

  // Attributes that the inputs say, and the list input that says the length of each list.
  struct FromInput {
    std::string attr;
    std::string length;
  };
  std::vector<FromInput> inferred_;
};

}  // namespace penstock::client

// SPDX-License-Identifier: Apache-2.0
//
// OpSignature: the parts of the C++ function for an op, as strings. A value type, made from the
// OpDef.
#pragma once

#include <string>
#include <vector>

#include "core/op/op_def.h"

namespace penstock::client {

struct OpSignature {
  explicit OpSignature(const OpDef& op);

  struct Argument {
    std::string type;  // the C++ type
    std::string name;
    std::string doc = "";
  };
  struct Option {
    std::string type;
    std::string name;
    std::string default_value;  // a C++ expression; the op's own default
  };
  struct Attribute {
    std::string name;   // the attribute's name in the op
    std::string value;  // a C++ expression of arguments and options
  };
  struct Result {
    std::string name;
    bool list = false;
    std::string length = "";  // a C++ expression for the number of tensors in a list
  };

  std::string function;
  std::string options_type;         // NodeOptions if the op has no options of its own
  std::vector<Argument> arguments;  // the arguments except the graph and the options
  // The arguments that are tensors or lists of tensors. If has_operands, each is a TypedInput
  // (operand.h).
  std::vector<std::string> inputs;
  bool has_operands = false;    // true if some tensors may be passed as numbers
  std::vector<Option> options;  // the options except the node's name
  std::vector<Attribute> attributes;
  std::vector<Result> results;
  // True if the caller must pass the graph, because possibly no input is a tensor, from which the
  // function could get the graph.
  bool needs_graph = false;

 private:
  void AddInputs(const OpDef& op);
  void AddTypes(const OpDef& op);
  void AddAttributes(const OpDef& op);
  void AddResults(const OpDef& op);
  bool IsInferred(const std::string& attr) const;
  std::string LengthOf(const std::string& attr, bool is_count) const;

  // An attribute whose value the runtime infers from an input. `length`: if the input is a list, a
  // C++ expression for its length; else "".
  struct FromInput {
    std::string attr;
    std::string length;
  };
  std::vector<FromInput> inferred_;
};

}  // namespace penstock::client

// SPDX-License-Identifier: Apache-2.0
//
// PartitionedVariable: a tensor whose rows are spread over several variables, its parts. So the
// tensor may be larger than the memory of one parameter server, and all servers share the load.
//
//   PartitionedVariable table(program, "table", {10'000'000, 64}, RandomNormal(0, 0.01),
//                             {.parts = 4});
//   Output rows = EmbeddingLookup(table, ids);
//
// The first (rows mod parts) parts have one row more than the others. The parts are the variables
// "table/part_0" and so on; the program's device function places each of them
// (client/device_setter.h). In checkpoints the parts are slices of one tensor "table", as in
// TensorFlow's checkpoints. A checkpoint of a kDiv partition can be restored to any other number of
// parts, to a plain variable, and to TensorFlow's partitioned variables, and vice versa.
//
// A value type that borrows its Program. An invalid argument sets the program's error.
#pragma once

#include <string>
#include <vector>

#include "client/program.h"

namespace penstock::client {

// Decides which part holds the row of an id. Both strategies are TensorFlow's.
enum class PartitionStrategy {
  kDiv,  // consecutive ids are in one part
  // Id i is row i / parts of part i mod parts. Spreads frequent ids that are close to each other. A
  // checkpoint has the rows in the order of the parts, so it can be restored only to the same
  // number of parts; Saver refuses others.
  kMod,
};

struct PartitionedVariableOptions {
  int parts = 1;  // 1 or more, at most one for each row
  PartitionStrategy strategy = PartitionStrategy::kDiv;
  VariableOptions variable = {};  // the options of the variable of each part
};

class PartitionedVariable {
 public:
  using Options = PartitionedVariableOptions;

  PartitionedVariable(Program& program, string_view name, const Shape& shape,
                      const Initializer& initializer, const Options& options = {},
                      SourceLine line = {__builtin_FILE(), __builtin_LINE()});
  PartitionedVariable(const Variable& whole);  // NOLINT: a variable is its only part

  // Returns the tensor's name in checkpoints.
  const std::string& name() const { return name_; }
  // Returns the shape of the complete tensor. Dimensions that are unknown in a plain variable are
  // unknown here, too.
  const PartialShape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  PartitionStrategy strategy() const { return strategy_; }
  Program& program() const { return *program_; }
  // Returns the parts; empty if an argument of the constructor was invalid.
  const std::vector<Variable>& parts() const { return parts_; }
  // Returns the first row of each part, in the order of the parts.
  const std::vector<int64_t>& starts() const { return starts_; }

  // Returns the rows of all parts, one part after the other. A step that uses the result sends the
  // complete tensor to the consumer's task. Errors of the nodes name the line that made the
  // variable.
  Output Read() const;
  operator Output() const { return Read(); }  // NOLINT: a variable stands for its value
  // Returns an op that gives every part its initial value.
  Output initializer() const;

 private:
  Program* program_;
  std::string name_;
  PartialShape shape_;
  DType dtype_;
  PartitionStrategy strategy_ = PartitionStrategy::kDiv;
  std::vector<Variable> parts_;
  std::vector<int64_t> starts_;
  SourceLine line_;
};

}  // namespace penstock::client

// SPDX-License-Identifier: Apache-2.0
//
// PartitionedVariable: a tensor whose rows are spread over several variables, its parts, so that it
// may be larger than the memory of one parameter server and is served by all of them.
//
//   PartitionedVariable table(program, "table", {10'000'000, 64}, RandomNormal(0, 0.01), {.parts =
//   4}); Output rows = EmbeddingLookup(table, ids);
//
// The first (rows mod parts) parts have a row more than the others. The parts are the variables
// "table/part_0" and so on, to each of which the program's device function gives a place
// (device_setter.h). In checkpoints they are slices of one tensor "table", as in TensorFlow's: a
// checkpoint restores to any other number of parts, to a plain variable, and to TensorFlow's
// partitioned variables, and the other way round.
//
// A value that borrows its Program. Mistakes become the program's error.
#pragma once

#include <string>
#include <vector>

#include "client/program.h"

namespace penstock::client {

// Decides which part holds the row of an id. Both strategies are TensorFlow's.
enum class PartitionStrategy {
  kDiv,  // ids that follow each other are in one part
  // Ids take turns: id i is row i / parts of part i mod parts. Spreads frequent ids that are near
  // each other; a checkpoint has the rows in the order of the parts and so restores to as many
  // parts only: Saver refuses others.
  kMod,
};

struct PartitionedVariableOptions {
  int parts = 1;  // 1 or more, at most one for each row
  PartitionStrategy strategy = PartitionStrategy::kDiv;
  VariableOptions variable = {};  // of each part
};

class PartitionedVariable {
 public:
  using Options = PartitionedVariableOptions;

  PartitionedVariable(Program& program, string_view name, const Shape& shape,
                      const Initializer& initializer, const Options& options = {});
  PartitionedVariable(const Variable& whole);  // NOLINT: a variable is its only part

  // Its name in checkpoints.
  const std::string& name() const { return name_; }
  // The shape of the whole. Dimensions that a plain variable does not know stay unknown.
  const PartialShape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  PartitionStrategy strategy() const { return strategy_; }
  Program& program() const { return *program_; }
  // Empty after a mistake.
  const std::vector<Variable>& parts() const { return parts_; }
  // The first row of each part, in the order of the parts.
  const std::vector<int64_t>& starts() const { return starts_; }

  // The rows of all parts, one part after the other; all of it travels to the reader.
  Output Read() const;
  operator Output() const { return Read(); }  // NOLINT: a variable stands for its value
  // Gives every part its initial value.
  Output initializer() const;

 private:
  Program* program_;
  std::string name_;
  PartialShape shape_;
  DType dtype_;
  PartitionStrategy strategy_ = PartitionStrategy::kDiv;
  std::vector<Variable> parts_;
  std::vector<int64_t> starts_;
};

}  // namespace penstock::client

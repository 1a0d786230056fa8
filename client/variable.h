// SPDX-License-Identifier: Apache-2.0
//
// Variable: a named tensor that outlives steps; shared by all sessions and workers that use its
// name. Converting it to an Output reads it:
//
//   Variable w(program, "w", {784, 10}, GlorotUniform());
//   Output y = ops::MatMul(x, w);
//
// A value type that borrows its Program; used by the thread that builds the program. The
// constructor adds the variable's nodes and registers it in the program's collections. Errors of
// these nodes, and of reads, name the line that called the constructor, or the line of the
// innermost SourceLineScope of the program. The variable has no value before its initializer op has
// run. Each conversion adds a new read, and two reads may see different updates: keep the Output if
// you need the same value twice.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/initializers.h"
#include "client/tensor_ref.h"
#include "core/op/output.h"

namespace penstock::client {

class Program;

// The rows that a part of a partitioned variable has in a larger tensor, under whose name
// checkpoints save all parts.
struct VariablePart {
  std::string whole_name;
  Shape whole;
  int64_t start = 0;  // the part's first row in the larger tensor
  // True if the larger tensor has its rows in the order of the parts, not of the ids. Then a
  // checkpoint can be restored only to the same number of parts.
  bool interleaved = false;
};

struct VariableOptions {
  DType dtype = DType::kFloat;  // not used if an initial value is given
  bool trainable = true;        // if true, optimizers change the variable by default
  // If true, each worker has its own variable, on its own device, and initialises it. A local
  // variable is neither saved nor trainable.
  bool local = false;
  // If true, uses a ref edge (VariableV2) instead of a resource, as TensorFlow 1 did by default.
  bool ref = false;
  std::string container = "";    // "" is the default one
  std::string shared_name = "";  // "" is the variable's name
  std::optional<VariablePart> part = std::nullopt;
};

class Variable {
 public:
  using Options = VariableOptions;

  Variable(Program& program, string_view name, const Shape& shape, const Initializer& initializer,
           const Options& options = {}, SourceLine line = {__builtin_FILE(), __builtin_LINE()});
  // Makes a variable of the type and shape of `initial_value`. The nodes that compute
  // `initial_value` stay on their own devices.
  Variable(Program& program, string_view name, Output initial_value, const Options& options = {},
           SourceLine line = {__builtin_FILE(), __builtin_LINE()});

  // Returns the name, which is unique in the program. It is also the name in checkpoints, unless
  // the variable is a part of a partitioned variable.
  const std::string& name() const { return name_; }
  DType dtype() const { return dtype_; }
  const PartialShape& shape() const { return shape_; }
  bool trainable() const { return options_.trainable && !options_.local; }
  bool local() const { return options_.local; }
  bool ref() const { return options_.ref; }
  const std::optional<VariablePart>& part() const { return options_.part; }
  // Return the name of the checkpoint's tensor that holds the variable; and the slice of that
  // tensor, as SaveV2 and RestoreV2 expect it: "8 4 0,3:0,4", or "" for the complete tensor.
  const std::string& saved_name() const { return part() ? part()->whole_name : name_; }
  std::string saved_slice() const;
  Program& program() const { return *program_; }
  // Returns the requested device; "" if none was requested.
  std::string device() const;
  // Returns the line of the program that made the variable.
  SourceLine source_line() const { return line_; }

  // Returns the resource handle or the ref. Differentiate with respect to this.
  Output handle() const { return handle_; }
  Output Read() const;
  operator Output() const { return Read(); }       // NOLINT: a variable stands for its value
  operator NodeInput() const { return Read(); }    // NOLINT
  operator TensorRef() const { return fetched_; }  // NOLINT

  // The following functions return the op that changes the variable: run it, or make it a control
  // input.
  Output Assign(const LocatedOutput& value) const;
  Output AssignAdd(const LocatedOutput& value) const;
  Output AssignSub(const LocatedOutput& value) const;
  Output initializer() const { return initializer_; }

  Output IsInitialized() const;  // bool

 private:
  void AddHandle(string_view name);
  void Register();
  // Adds a node with the line `line`, on the variable's device and in the name scope of the
  // variable.
  Output Beside(string_view op, const std::vector<NodeInput>& inputs, Attrs attrs, string_view name,
                SourceLine line) const;

  Program* program_;
  std::string name_;
  DType dtype_;
  PartialShape shape_;
  Options options_;
  SourceLine line_;
  Output handle_, initializer_, fetched_;
};

}  // namespace penstock::client

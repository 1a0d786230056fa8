// SPDX-License-Identifier: Apache-2.0
//
// Variable: a named tensor that outlives steps; shared by all sessions and workers that name it.
// Used as an Output, it reads itself:
//
//   Variable w(program, "w", {784, 10}, GlorotUniform());
//   Output y = ops::MatMul(x, w);
//
// A value that borrows its Program; making one adds its nodes and enters it into the program's
// collections. Has no value before its initializer op has run. Each conversion adds a read of its
// own, which may see another update than the next: keep the Output if one value must serve
// twice.
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

// Some rows of a larger tensor: what a part of a partitioned variable is in checkpoints.
struct VariablePart {
  std::string whole_name;
  Shape whole;
  int64_t start = 0;  // the first row, in the whole
  // The whole has its rows in the order of the parts, not of their ids: a checkpoint restores only
  // to as many parts as it was saved from.
  bool interleaved = false;
};

struct VariableOptions {
  DType dtype = DType::kFloat;  // where an initializer makes the value
  bool trainable = true;        // optimizers change it unless told otherwise
  // The worker's own, on its device: not saved, not trainable, initialised by each worker.
  bool local = false;
  // As a ref edge (VariableV2) rather than a resource: what TensorFlow 1 made by default.
  bool ref = false;
  std::string container = "";    // "" is the default one
  std::string shared_name = "";  // "" is the variable's name
  std::optional<VariablePart> part = std::nullopt;
};

class Variable {
 public:
  using Options = VariableOptions;

  Variable(Program& program, string_view name, const Shape& shape, const Initializer& initializer,
           const Options& options = {});
  // Makes a variable of the type and shape of `initial_value`. (Nodes that compute it stay on their
  // own devices.)
  Variable(Program& program, string_view name, Output initial_value, const Options& options = {});

  // Unique in its program; its name in checkpoints, unless it is a part.
  const std::string& name() const { return name_; }
  DType dtype() const { return dtype_; }
  const PartialShape& shape() const { return shape_; }
  bool trainable() const { return options_.trainable && !options_.local; }
  bool local() const { return options_.local; }
  bool ref() const { return options_.ref; }
  const std::optional<VariablePart>& part() const { return options_.part; }
  // The tensor that a checkpoint has it in, and which part of that it is, as SaveV2 and RestoreV2
  // ask for it: "8 4 0,3:-"; "" if it is the whole.
  const std::string& saved_name() const { return part() ? part()->whole_name : name_; }
  std::string saved_slice() const;
  Program& program() const { return *program_; }
  // The device that was asked for; "" if none was.
  std::string device() const;

  // The resource handle, or the reference. Differentiate with respect to this.
  Output handle() const { return handle_; }
  Output Read() const;
  operator Output() const { return Read(); }       // NOLINT: a variable stands for its value
  operator NodeInput() const { return Read(); }    // NOLINT
  operator TensorRef() const { return fetched_; }  // NOLINT

  // These return the op, to run or to depend on.
  Output Assign(Output value) const;
  Output AssignAdd(Output value) const;
  Output AssignSub(Output value) const;
  Output initializer() const { return initializer_; }

  Output IsInitialized() const;  // bool

 private:
  void AddHandle(string_view name);
  void Register();
  // Adds a node on the variable's device, under its name.
  Output Beside(string_view op, const std::vector<NodeInput>& inputs, Attrs attrs,
                string_view name) const;

  Program* program_;
  std::string name_;
  DType dtype_;
  PartialShape shape_;
  Options options_;
  Output handle_, initializer_, fetched_;
};

}  // namespace penstock::client

// SPDX-License-Identifier: Apache-2.0
//
// Recurrent networks over sequences whose lengths are known when the step runs.
//
//   const LstmCell cell(program, "lstm", /*inputs=*/128, /*units=*/256);
//   const RnnOutputs rnn = DynamicRnn(program, cell, words, {.lengths = lengths});
//   Output logits = MatMul(Flatten(rnn.outputs), w) + b;
//
// The formulas, and the names and layout of weights, are those of TensorFlow's BasicLSTMCell,
// GRUCell and BasicRNNCell, so checkpoints can be exchanged with TensorFlow.
//
// Errors of a cell's nodes name the line that made the cell; errors of other nodes that DynamicRnn
// adds name the line that called it. If std::make_shared makes a cell without a `line` argument,
// the cell's line is not known; errors of its nodes name the line that called DynamicRnn. If the
// program defines its own RnnCell, errors of its nodes name the lines that made them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/program.h"
#include "core/op/output.h"

namespace penstock::client {

// The results of one step of a network, which maps input[batch, n] and a state to output[batch, m]
// and a new state.
struct RnnStep {
  Output output;
  Outputs state;
};
using RnnFunction = std::function<RnnStep(Output input, const Outputs& state)>;

class RnnCell {
 public:
  virtual ~RnnCell() = default;
  // Adds the nodes that read the weights, in the control-flow context where Read is called. The
  // returned function may be called anywhere, also in a loop.
  virtual RnnFunction Read() const = 0;
  // Returns the size of each tensor of the state, per row.
  virtual std::vector<int64_t> state_sizes() const = 0;
  virtual int64_t output_size() const = 0;
  virtual DType dtype() const = 0;
};

struct RnnCellOptions {
  DType dtype = DType::kFloat;
  int64_t seed = 0;  // for the weights; 0: different ones in each run
  double forget_bias = 1;
};

// State: {c, h}; output: h. Variables NAME/kernel [inputs + units, 4 * units], NAME/bias.
class LstmCell final : public RnnCell {
 public:
  LstmCell(Program& program, const std::string& name, int64_t inputs, int64_t units,
           const RnnCellOptions& options = {},
           SourceLine line = {__builtin_FILE(), __builtin_LINE()});
  RnnFunction Read() const override;
  std::vector<int64_t> state_sizes() const override { return {units_, units_}; }
  int64_t output_size() const override { return units_; }
  DType dtype() const override { return kernel_.dtype(); }

 private:
  const int64_t units_;
  const double forget_bias_;
  const SourceLine line_;
  const Variable kernel_, bias_;
};

// Variables NAME/gates/kernel, NAME/gates/bias, NAME/candidate/kernel, NAME/candidate/bias.
class GruCell final : public RnnCell {
 public:
  GruCell(Program& program, const std::string& name, int64_t inputs, int64_t units,
          const RnnCellOptions& options = {},
          SourceLine line = {__builtin_FILE(), __builtin_LINE()});
  RnnFunction Read() const override;
  std::vector<int64_t> state_sizes() const override { return {units_}; }
  int64_t output_size() const override { return units_; }
  DType dtype() const override { return gates_kernel_.dtype(); }

 private:
  const int64_t units_;
  const SourceLine line_;
  const Variable gates_kernel_, gates_bias_, candidate_kernel_, candidate_bias_;
};

// tanh([x, h] w + b). Variables NAME/kernel, NAME/bias.
class BasicRnnCell final : public RnnCell {
 public:
  BasicRnnCell(Program& program, const std::string& name, int64_t inputs, int64_t units,
               const RnnCellOptions& options = {},
               SourceLine line = {__builtin_FILE(), __builtin_LINE()});
  RnnFunction Read() const override;
  std::vector<int64_t> state_sizes() const override { return {units_}; }
  int64_t output_size() const override { return units_; }
  DType dtype() const override { return kernel_.dtype(); }

 private:
  const int64_t units_;
  const SourceLine line_;
  const Variable kernel_, bias_;
};

// Cells in sequence: the output of each cell is the input of the next one. The state is the list of
// the tensors of all cells' states.
class StackedCell final : public RnnCell {
 public:
  // REQUIRES at least one cell.
  explicit StackedCell(std::vector<std::shared_ptr<const RnnCell>> cells);
  RnnFunction Read() const override;
  std::vector<int64_t> state_sizes() const override;
  int64_t output_size() const override { return cells_.back()->output_size(); }
  DType dtype() const override { return cells_.back()->dtype(); }

 private:
  const std::vector<std::shared_ptr<const RnnCell>> cells_;
};

// Returns a state of zeros for `batch` (an int32) rows.
Outputs ZeroState(Program& program, const RnnCell& cell, Output batch,
                  SourceLine line = {__builtin_FILE(), __builtin_LINE()});

struct DynamicRnnOptions {
  // The number of time steps of each row, int32[batch] or int64[batch]. At later time steps a row's
  // outputs are zeros and its state does not change. If not given, all rows have the length of the
  // input.
  Output lengths = {};
  Outputs initial_state = {};  // zeros if empty
  bool time_major =
      false;  // inputs and outputs are [time, batch, ...] instead of [batch, time, ...]
  int64_t parallel_iterations = 32;
  bool swap_memory = false;  // tensors kept for the gradient may be moved to host memory
  std::string name = "rnn";
};
struct RnnOutputs {
  Output outputs;  // [batch, time, output_size] or time-major
  Outputs state;   // each row's state after its last time step
};
// Runs `cell` for each time step of `inputs`, up to the length of the longest row. An invalid
// argument sets the program's error.
RnnOutputs DynamicRnn(Program& program, const RnnCell& cell, Output inputs,
                      const DynamicRnnOptions& options = {},
                      SourceLine line = {__builtin_FILE(), __builtin_LINE()});

}  // namespace penstock::client

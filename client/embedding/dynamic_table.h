// SPDX-License-Identifier: Apache-2.0
//
// DynamicTable: a table on parameter servers whose rows are made when their ids, any int64, are
// first trained: for ids that nobody has counted or numbered, such as hashes, users and items.
//
//   DynamicTable users(program, "users", 64, TableInitializer::Normal(0, 0.01, /*seed=*/7),
//                      TableMethod::Adagrad(0.1), {.parts = 4});
//   Output rows = EmbeddingLookup(users, ids);
//   Output train = Minimize(program, adam, loss, {users});  // adam: of the variables
//
// The ids are spread over the parts by a hash; to each part the program's device function gives a
// place (device_setter.h). A new row depends on seed and id alone, not on the order of ids or the
// number of parts. The slots of the table's method lie beside the row: a step's ids and gradients
// go to a part once, and change rows and slots there in one pass.
//
// An id without a row reads as the row that it would get (as `default_value`, if ids have to be
// admitted), and lookups make no rows: evaluation and serving leave the table as it is.
//
// Saver and TrainingLoop save and restore a program's tables by themselves, to any other number of
// parts. What was counted for admission is not saved.
//
// A value that borrows its Program. Mistakes become the program's error.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/embedding/lookup.h"
#include "client/gradients.h"
#include "client/optimizer.h"
#include "client/program.h"

namespace penstock::client {

// The values of a new row.
struct TableInitializer {
  static TableInitializer Constant(float value) { return {"constant", value}; }
  // From `low`, below `high`.
  static TableInitializer Uniform(float low, float high, int64_t seed) {
    return {"uniform", low, high, seed};
  }
  static TableInitializer Normal(float mean, float deviation, int64_t seed) {
    return {"normal", mean, deviation, seed};
  }

  std::string kind;
  float a = 0, b = 0;
  int64_t seed = 0;
};

// How a table's rows learn. The formulas are those of the optimizers of the same names.
struct TableMethod {
  static TableMethod GradientDescent(Hyperparameter learning_rate);
  static TableMethod Adagrad(Hyperparameter learning_rate, float initial_accumulator = 0.1f);
  // LazyAdam, but that t counts the updates of each row: a row that comes late begins as one that
  // came first.
  static TableMethod Adam(Hyperparameter learning_rate, double beta1 = 0.9, double beta2 = 0.999,
                          double epsilon = 1e-8);
  static TableMethod Ftrl(Hyperparameter learning_rate, double l1 = 0, double l2 = 0,
                          float initial_accumulator = 0.1f);

  std::string name;
  std::vector<float> slots;  // the initial value of each
  std::vector<Hyperparameter> hyperparameters;
};

struct DynamicTableOptions {
  int parts = 1;     // 1 to `buckets`
  int buckets = 32;  // in which a checkpoint has the rows: the largest number of parts, ever
  // An id gets a row when it is trained for the `admit_after`-th time, counted by a Bloom filter; 1
  // to 255. Until then it reads as `default_value`, and its gradients are dropped.
  int64_t admit_after = 1;
  float default_value = 0;
  int64_t filter_bytes = 1 << 20;  // of a part; 1 to 2^32
  // Beyond these limits rows are dropped, those first whose last update is longest ago. Each part
  // has an equal share. 0: no limit. At least 16 rows for each part. A step may need memory beyond
  // the limit for the rows that it adds before others are dropped; the table keeps it.
  int64_t max_rows = 0, max_bytes = 0;
  // Rows that were not updated for more steps than this are dropped, by the global step; some with
  // each update, so they may stay a while. 0: they stay.
  int64_t max_age = 0;
};

class DynamicTable {
 public:
  using Options = DynamicTableOptions;

  // `width`: floats in a row.
  DynamicTable(Program& program, string_view name, int64_t width,
               const TableInitializer& initializer, const TableMethod& method,
               const Options& options = {});

  // Its name in checkpoints.
  const std::string& name() const { return name_; }
  int64_t width() const { return width_; }
  Program& program() const { return *program_; }
  // The handles of the parts. Empty after a mistake.
  const Outputs& parts() const { return parts_; }
  const Options& options() const { return options_; }

  // int64: how many rows there are.
  Output Size() const;
  // An op that drops the rows of `ids`, an int64 vector.
  Output Erase(Output ids) const;
  // Adds the update of the rows by the table's method. `gradients`: by part, as LossGradients has
  // them. Returns the ops.
  Outputs Apply(const std::vector<Gradient>& gradients) const;

 private:
  void AddPart(int part, const TableInitializer& initializer);

  Program* program_;
  std::string name_;
  int64_t width_;
  TableMethod method_;
  Options options_;
  Outputs parts_;
};

// As those of PartitionedVariable. `ids` are int64.
Output EmbeddingLookup(const DynamicTable& table, Output ids,
                       const EmbeddingLookupOptions& options = {});
Output EmbeddingLookupSparse(const DynamicTable& table, const IdLists& lists,
                             const EmbeddingLookupSparseOptions& options = {});

// The gradients of a loss with respect to variables and tables, found in one walk back through the
// graph.
struct LossGradients {
  std::vector<VariableGradient> variables;
  std::vector<std::vector<Gradient>> tables;  // by table and part
};
// `variables`: all trainable ones, if empty. It is an error if the loss depends on none of the
// variables and tables.
LossGradients ComputeGradients(Program& program, Output loss,
                               const std::vector<DynamicTable>& tables,
                               const std::vector<Variable>& variables = {});

// An op that lowers `loss`: the variables by `optimizer`, the tables by their own methods. Raises
// the program's global step by one, after both.
Output Minimize(Program& program, Optimizer& optimizer, Output loss,
                const std::vector<DynamicTable>& tables);

}  // namespace penstock::client

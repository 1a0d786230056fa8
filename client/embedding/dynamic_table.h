// SPDX-License-Identifier: Apache-2.0
//
// DynamicTable: a table on parameter servers that gets a row for an id when a step first trains the
// id. An id may be any int64, such as a hash or the number of a user: ids need not count from 0.
//
//   DynamicTable users(program, "users", 64, TableInitializer::Normal(0, 0.01, /*seed=*/7),
//                      TableMethod::Adagrad(0.1), {.parts = 4});
//   Output rows = EmbeddingLookup(users, ids);
//   Output train = Minimize(program, adam, loss, {users});  // adam: for the variables
//
// A hash spreads the ids over the parts, and the program's device function places each part
// (client/device_setter.h). The values of a new row depend only on seed and id, not on the order of
// ids or the number of parts. Each row is stored with the slots of the table's method. So a step
// sends ids and gradients to a part once, and the part updates rows and slots in one pass.
//
// A lookup of an id without a row returns the initial row that the id would get (or
// `default_value`, if admit_after is more than 1). Lookups make no rows, so evaluation and serving
// do not change the table.
//
// Saver and TrainingLoop save and restore a program's tables, even if the number of parts changes.
// They do not save the counts of ids that have no row yet (admit_after).
//
// A value type that borrows its Program. An invalid argument sets the program's error.
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
  // Values in [low, high).
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

// The method that updates a table's rows, with the formula of the optimizer of the same name.
struct TableMethod {
  static TableMethod GradientDescent(Hyperparameter learning_rate);
  static TableMethod Adagrad(Hyperparameter learning_rate, float initial_accumulator = 0.1f);
  // Like LazyAdam, but t counts the updates of each row. So a row that is made late in the training
  // gets the same bias corrections as the first rows.
  static TableMethod Adam(Hyperparameter learning_rate, double beta1 = 0.9, double beta2 = 0.999,
                          double epsilon = 1e-8);
  static TableMethod Ftrl(Hyperparameter learning_rate, double l1 = 0, double l2 = 0,
                          float initial_accumulator = 0.1f);

  std::string name;
  std::vector<float> slots;  // initial value of each slot
  std::vector<Hyperparameter> hyperparameters;
};

struct DynamicTableOptions {
  int parts = 1;  // 1 to `buckets`
  // The number of groups of rows in a checkpoint. The checkpoint can be restored to at most this
  // many parts.
  int buckets = 32;
  // An id gets a row when it is trained for the `admit_after`-th time (1 to 255), as counted by a
  // Bloom filter. Until then lookups of the id return `default_value`, and its gradients are
  // dropped.
  int64_t admit_after = 1;
  float default_value = 0;
  int64_t filter_bytes = 1 << 20;  // size of the filter of each part; 1 to 2^32
  // If the table exceeds these limits, the rows with the oldest last update are dropped first. Each
  // part has an equal share of the limits. 0: no limit; else at least 16 rows for each part. A step
  // may need memory beyond the limit for the rows that it adds before others are dropped; the table
  // does not free this memory.
  int64_t max_rows = 0, max_bytes = 0;
  // The table drops rows whose last update is more than this number of global steps ago. Each
  // update of the table drops only some of these rows, so a row may stay a little longer. 0: no
  // maximum age.
  int64_t max_age = 0;
  // A directory on the parameter servers for rows beyond max_rows or max_bytes, one of which must
  // be set. The servers keep the rows there, in unlinked files, instead of dropping them. Lookups
  // read the rows from the files; an update of a row moves it back to memory. "": rows beyond the
  // limit are dropped.
  std::string spill_directory = {};
  // Maximum bytes of the whole table's rows on disk. Beyond it, the rows with the oldest last
  // update are dropped. The files may be twice as large as this limit. 0: no limit.
  int64_t spill_max_bytes = 0;
};

class DynamicTable {
 public:
  using Options = DynamicTableOptions;

  // `width`: the number of floats in a row.
  DynamicTable(Program& program, string_view name, int64_t width,
               const TableInitializer& initializer, const TableMethod& method,
               const Options& options = {}, SourceLine line = {__builtin_FILE(), __builtin_LINE()});

  // Returns the table's name in checkpoints.
  const std::string& name() const { return name_; }
  int64_t width() const { return width_; }
  Program& program() const { return *program_; }
  // Returns the handles of the parts; empty if an argument of the constructor was invalid.
  const Outputs& parts() const { return parts_; }
  const Options& options() const { return options_; }

  // Returns the number of rows, an int64.
  Output Size(SourceLine line = {__builtin_FILE(), __builtin_LINE()}) const;
  // Returns an op that drops the rows of `ids`, an int64 vector.
  Output Erase(const LocatedOutput& ids) const;
  // Adds ops that update the rows by the table's method, and returns them. `gradients` has one
  // gradient per part, as an element of LossGradients::tables has.
  Outputs Apply(const std::vector<Gradient>& gradients,
                SourceLine line = {__builtin_FILE(), __builtin_LINE()}) const;

 private:
  void AddPart(int part, const TableInitializer& initializer);

  Program* program_;
  std::string name_;
  int64_t width_;
  TableMethod method_;
  Options options_;
  Outputs parts_;
};

// Like the functions for a PartitionedVariable (lookup.h). `ids` are int64.
Output EmbeddingLookup(const DynamicTable& table, const LocatedOutput& ids,
                       const EmbeddingLookupOptions& options = {});
Output EmbeddingLookupSparse(const DynamicTable& table, const IdLists& lists,
                             const EmbeddingLookupSparseOptions& options = {},
                             SourceLine line = {__builtin_FILE(), __builtin_LINE()});

// The gradients of a loss with respect to variables and tables, computed in one backward pass.
struct LossGradients {
  std::vector<VariableGradient> variables;
  std::vector<std::vector<Gradient>> tables;  // by table and part
};
// Adds the nodes of the gradients. `variables`: empty means all trainable variables. It is an error
// if the loss depends on none of the variables and tables.
LossGradients ComputeGradients(Program& program, const LocatedOutput& loss,
                               const std::vector<DynamicTable>& tables,
                               const std::vector<Variable>& variables = {});

// Returns an op that lowers `loss`: it updates the variables by `optimizer` and the tables by their
// own methods, and then raises the program's global step by one.
Output Minimize(Program& program, Optimizer& optimizer, const LocatedOutput& loss,
                const std::vector<DynamicTable>& tables);

}  // namespace penstock::client

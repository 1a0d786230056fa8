// SPDX-License-Identifier: Apache-2.0
//
// A wide-and-deep model that predicts whether a user will like a film. Wide: a weight for each
// user, film and genre. Deep: a vector for each of them, the products of these vectors (as in
// DLRM), and a network over both. Each parameter server has one part of each table.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "client/embedding/dynamic_table.h"
#include "client/embedding/lookup.h"
#include "client/layers/layers.h"
#include "client/program.h"
#include "client/training.h"

namespace penstock::examples {

struct RecommenderSize {
  int64_t users = 0, films = 0, genres = 0;  // ids are less than these
  int64_t units = 16;                        // length of each vector
  int parts = 1;                             // number of parts of each table
  // Whether to use DynamicTable, which makes a row for each trained id, so that the program need
  // not know the number of ids.
  bool dynamic_tables = false;
  // Limits of each dynamic table, as in DynamicTableOptions.
  int64_t max_rows = 0;
  std::string spill_directory = {};
};

class Recommender {
 public:
  Recommender(client::Program& program, const RecommenderSize& size, double learning_rate);

  // The fed tensors, in the order of RatingBatch::tensors().
  struct Inputs {
    Output users, films, genres, genre_splits, liked;
    Outputs all() const { return {users, films, genres, genre_splits, liked}; }
  };
  static Inputs MakeInputs(client::Program& program);

  // Returns float[batch]: a value above 0 predicts that the user likes the film.
  Output Logits(const Inputs& inputs) const;

  // Returns an op that lowers `loss` and raises the global step: FTRL for the wide weights, lazy
  // Adam for the rest. `average`, if given, returns the means of the gradients over all replicas;
  // then REQUIRES that there are no dynamic tables.
  using Average = std::function<std::vector<client::VariableGradient>(
      const std::vector<client::VariableGradient>&)>;
  Output Train(Output loss, const Average& average = nullptr) const;

 private:
  using Table = std::variant<client::PartitionedVariable, client::DynamicTable>;
  // The initial values of a table, and the update method, which only a DynamicTable uses.
  struct TableRules {
    client::Initializer initializer;
    client::TableInitializer dynamic_initializer;
    client::TableMethod method;
  };
  // The tables of the vectors, or those of the weights: one each for users, films and genres.
  struct Tables {
    Table users, films, genres;
    // Returns one row for each example from each table.
    Outputs Rows(const Inputs& inputs) const;
  };
  static Tables MakeTables(client::Program& program, const std::string& name,
                           const RecommenderSize& size, int64_t units, const TableRules& rules);
  std::vector<client::DynamicTable> DynamicTables() const;

  client::Program& program_;
  const double learning_rate_;
  const Tables wide_, deep_;
  const client::layers::Dense hidden_, last_;
};

}  // namespace penstock::examples

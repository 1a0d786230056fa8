// SPDX-License-Identifier: Apache-2.0
//
// EmbeddingLookup returns the rows of a table that have the given ids. EmbeddingLookupSparse
// combines the rows of each example's list of ids into one. Both give the same results as
// TensorFlow's functions of the same names.
//
// A table may have parts on several parameter servers. Repeated ids are sent once: a step sends one
// list of ids to each part and receives one tensor of rows from it. The gradients of the parts are
// sparse, and have each row once.
//
// The nodes that split the ids and join the rows are placed like the program's other new nodes: on
// the worker. An id that is negative or too large fails the step with InvalidArgument, which names
// the part and the row.
#pragma once

#include "client/embedding/partitioned_variable.h"

namespace penstock::client {

struct EmbeddingLookupOptions {
  // Rows with a greater Euclidean norm are scaled to this norm; 0: rows are not scaled.
  double max_norm = 0;
};

// Returns a tensor of shape ids.shape + table.shape[1:]. `ids` are int32 or int64, of any shape.
Output EmbeddingLookup(const PartitionedVariable& table, const LocatedOutput& ids,
                       const EmbeddingLookupOptions& options = {});

// Lists of ids, one for each example.
struct IdLists {
  Output ids;       // vector, int32 or int64: the lists of all examples, concatenated
  Output examples;  // int64 vector, ascending: the example that each id belongs to
  Output count;     // int64 scalar: how many examples there are

  // Converts a SparseTensor: the first column of `indices` is the example.
  static IdLists FromSparse(Output indices, Output values, Output dense_shape,
                            SourceLine line = {__builtin_FILE(), __builtin_LINE()});
  // Converts a ragged tensor: example i has values[row_splits[i] : row_splits[i + 1]].
  static IdLists FromRagged(Output values, Output row_splits,
                            SourceLine line = {__builtin_FILE(), __builtin_LINE()});
};

enum class Combiner {
  kSum,    // sum(w * row)
  kMean,   // sum(w * row) / sum(w)
  kSqrtN,  // sum(w * row) / sqrt(sum(w^2))
};

struct EmbeddingLookupSparseOptions {
  Combiner combiner = Combiner::kMean;
  Output weights = {};  // vector: one w for each id, of the table's type; not given: all are 1
  double max_norm = 0;  // limits the norm of each row before rows are combined; 0: no limit
};

// Returns the combined row of each example, as a tensor of shape [count] + table.shape[1:]: zeros
// for an example that has no ids, or whose divisor is 0.
Output EmbeddingLookupSparse(const PartitionedVariable& table, const IdLists& lists,
                             const EmbeddingLookupSparseOptions& options = {},
                             SourceLine line = {__builtin_FILE(), __builtin_LINE()});

}  // namespace penstock::client

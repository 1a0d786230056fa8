// SPDX-License-Identifier: Apache-2.0
//
// EmbeddingLookup: the rows of a table that ids name; EmbeddingLookupSparse: one combination of
// rows for each example that has a list of ids. They give what TensorFlow's functions of the same
// names do.
//
// A table may have parts on several parameter servers. Each id is asked for once, however often it
// occurs: a step sends one list of ids to each part and takes one tensor of rows from it. The
// gradients of the parts are sparse, and name each row once.
//
// The nodes between ids and rows stand where the program puts new nodes: on the worker. An id that
// is negative or too large makes the step fail with InvalidArgument, which names the part and the
// row that is asked of it.
#pragma once

#include "client/embedding/partitioned_variable.h"

namespace penstock::client {

struct EmbeddingLookupOptions {
  // Rows that are longer (Euclidean) are scaled to this length; 0: they are not.
  double max_norm = 0;
};

// Returns a tensor of shape ids.shape + table.shape[1:]. `ids` are int32 or int64, of any shape.
Output EmbeddingLookup(const PartitionedVariable& table, Output ids,
                       const EmbeddingLookupOptions& options = {});

// Lists of ids, one for each example.
struct IdLists {
  Output ids;       // vector, int32 or int64: of all examples, one list after the other
  Output examples;  // int64 vector, ascending: the example that each id belongs to
  Output count;     // int64 scalar: how many examples there are

  // From a SparseTensor: the first column of `indices` is the example.
  static IdLists FromSparse(Output indices, Output values, Output dense_shape);
  // From a ragged tensor: example i has the values from row_splits[i] to row_splits[i + 1].
  static IdLists FromRagged(Output values, Output row_splits);
};

enum class Combiner {
  kSum,    // sum(w * row)
  kMean,   // sum(w * row) / sum(w)
  kSqrtN,  // sum(w * row) / sqrt(sum(w^2))
};

struct EmbeddingLookupSparseOptions {
  Combiner combiner = Combiner::kMean;
  Output weights = {};  // vector: one w for each id, of the table's type; 1 if not given
  double max_norm = 0;  // of each row, before it is combined
};

// Returns a tensor of shape [count] + table.shape[1:]: zeros for an example without ids, or whose
// divisor is 0.
Output EmbeddingLookupSparse(const PartitionedVariable& table, const IdLists& lists,
                             const EmbeddingLookupSparseOptions& options = {});

}  // namespace penstock::client

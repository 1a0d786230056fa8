// SPDX-License-Identifier: Apache-2.0
//
// Dataset: an input pipeline, as tf.data's: a sequence of elements, each a list of tensors.
//
//   const Dataset pictures = Dataset::TFRecords(program, files)
//                                .Shuffle(10000, seed)
//                                .Repeat()
//                                .Batch(128)
//                                .Map([&](const Outputs& batch) { return Parse(batch[0]); })
//                                .Prefetch();
//   Iterator iterator(pictures);
//   const Outputs batch = iterator.GetNext();  // the tensors of the next element, in each step
//
// Iterator is in dataset_iterator.h; run_iterators.h starts it in a training loop. The pipeline
// runs in the session: on a worker, records never pass through the client.
//
// The functions that Map, Filter and others take are C++ lambdas. Each is called once, while the
// program is built, with tensors that stand for the components of an element. The lambda adds
// nodes, may use tensors and variables from outside that are on the dataset's task, and returns the
// components of the result. The nodes become a function of the dataset's node
// (functions/graph_function.h): tensors made in the lambda do not exist outside of it.
//
// Types and shapes of the components are known while the program is built: types() and shapes(). An
// invalid argument, such as a batch size of 0, sets the program's error (InvalidArgument), which
// names the line of the call or of the node; later calls do nothing. An error of a step names the
// node of the function and its line, or the line of GetNext.
//
// A value type; it borrows the program. All nodes of a pipeline are on the device of its source: to
// choose it, make the source in a device scope. `line` is the line that errors name; by default the
// caller's.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "client/functions/graph_function.h"
#include "core/base/status.h"
#include "core/graph/builder.h"

namespace penstock::client {

struct FileOptions {
  std::string compression = "";  // "", "ZLIB" or "GZIP"
  int64_t buffer_size = 0;       // bytes per read; 0: the runtime chooses
};
struct FixedLengthOptions {
  int64_t header_bytes = 0, footer_bytes = 0;  // skipped in each file
  std::string compression = "";
  int64_t buffer_size = 0;
};
struct DatasetBatchOptions {
  bool drop_remainder = false;  // if false, the last batch may be smaller
};
struct PaddedBatchOptions {
  // The shapes of the padded components, one for each component; a size -1 becomes the largest of
  // the batch. Empty: the components' own shapes, whose ranks must be known.
  std::vector<PartialShape> shapes = {};
  // Scalars, one for each component. Empty: zeros, and empty strings.
  std::vector<Tensor> values = {};
  bool drop_remainder = false;
};
struct InterleaveOptions {
  int64_t cycle_length = 2;  // datasets that are read in turns
  int64_t block_length = 1;  // elements of one dataset in a turn
  // Number of datasets that are read in parallel. 0: one at a time; -1: the runtime chooses. Does
  // not change the order of the elements.
  int64_t num_parallel_calls = 0;
};

class Dataset {
 public:
  using Line = SourceLine;
  using MapFunction = std::function<Outputs(const Outputs& components)>;
  using NestFunction = std::function<Dataset(const Outputs& components)>;
  using Predicate = std::function<Output(const Outputs& components)>;  // returns a bool

  // Returns the int64 numbers start, start + step, ... up to `stop`, which is excluded.
  static Dataset Range(GraphBuilder& graph, int64_t start, int64_t stop, int64_t step = 1,
                       Line line = {__builtin_FILE(), __builtin_LINE()});
  // Returns a dataset of one element: `tensors`.
  static Dataset Tensors(GraphBuilder& graph, const Outputs& tensors,
                         Line line = {__builtin_FILE(), __builtin_LINE()});
  // Returns an element for each row of `tensors`, whose first dimensions must be equal.
  static Dataset TensorSlices(GraphBuilder& graph, const Outputs& tensors,
                              Line line = {__builtin_FILE(), __builtin_LINE()});
  // Return the records, or lines, of files, as string scalars. `files` is a string or a vector of
  // strings.
  static Dataset TFRecords(GraphBuilder& graph, Output files, const FileOptions& options = {},
                           Line line = {__builtin_FILE(), __builtin_LINE()});
  static Dataset TextLines(GraphBuilder& graph, Output files, const FileOptions& options = {},
                           Line line = {__builtin_FILE(), __builtin_LINE()});
  static Dataset FixedLengthRecords(GraphBuilder& graph, Output files, int64_t record_bytes,
                                    const FixedLengthOptions& options = {},
                                    Line line = {__builtin_FILE(), __builtin_LINE()});
  using Strings = std::vector<std::string>;
  static Dataset TFRecords(GraphBuilder& graph, const Strings& files,
                           const FileOptions& options = {},
                           Line line = {__builtin_FILE(), __builtin_LINE()});
  static Dataset TextLines(GraphBuilder& graph, const Strings& files,
                           const FileOptions& options = {},
                           Line line = {__builtin_FILE(), __builtin_LINE()});
  static Dataset FixedLengthRecords(GraphBuilder& graph, const Strings& files, int64_t record_bytes,
                                    const FixedLengthOptions& options = {},
                                    Line line = {__builtin_FILE(), __builtin_LINE()});
  // Returns elements that join the components of one element of each of `datasets`, until one of
  // these ends. All datasets must be in the same task; the new one is on the device of the first.
  static Dataset Zip(GraphBuilder& graph, const std::vector<Dataset>& datasets,
                     Line line = {__builtin_FILE(), __builtin_LINE()});
  // Returns the dataset that an op outputs, for dataset ops for which this class has no function.
  // repeatable() is OK for it.
  static Dataset FromVariant(GraphBuilder& graph, Output variant, TensorSpecs elements,
                             Line line = {__builtin_FILE(), __builtin_LINE()});

  // Returns fn(element) for each element.
  Dataset Map(const MapFunction& fn, Line line = {__builtin_FILE(), __builtin_LINE()}) const;
  // Like Map, in the same order, but makes up to `num_parallel_calls` concurrent calls of `fn` (-1:
  // the runtime chooses).
  Dataset ParallelMap(const MapFunction& fn, int64_t num_parallel_calls = -1,
                      Line line = {__builtin_FILE(), __builtin_LINE()}) const;
  // Return the elements of the datasets fn(element). FlatMap reads one dataset after the other,
  // Interleave several in turns.
  Dataset FlatMap(const NestFunction& fn, Line line = {__builtin_FILE(), __builtin_LINE()}) const;
  Dataset Interleave(const NestFunction& fn, const InterleaveOptions& options = {},
                     Line line = {__builtin_FILE(), __builtin_LINE()}) const;
  // Returns the elements for which `predicate` is true.
  Dataset Filter(const Predicate& predicate,
                 Line line = {__builtin_FILE(), __builtin_LINE()}) const;

  // Return elements that each stack `batch_size` elements, along a new first dimension. Batch needs
  // elements of equal shapes; PaddedBatch pads them at their ends.
  Dataset Batch(int64_t batch_size, const DatasetBatchOptions& options = {},
                Line line = {__builtin_FILE(), __builtin_LINE()}) const;
  Dataset PaddedBatch(int64_t batch_size, const PaddedBatchOptions& options = {},
                      Line line = {__builtin_FILE(), __builtin_LINE()}) const;
  // Draws each element at random from a buffer of `buffer_size` elements. Each round of a Repeat
  // has a different order. With `seed` 0, the order differs between sessions; with other seeds it
  // is that of tf.data's shuffle(buffer_size, seed).
  Dataset Shuffle(int64_t buffer_size, int64_t seed = 0,
                  Line line = {__builtin_FILE(), __builtin_LINE()}) const;
  // Repeats the dataset `count` times; -1: without end.
  Dataset Repeat(int64_t count = -1, Line line = {__builtin_FILE(), __builtin_LINE()}) const;
  // Take returns the first `count` elements; Skip returns the elements after them. -1 means all.
  Dataset Take(int64_t count, Line line = {__builtin_FILE(), __builtin_LINE()}) const;
  Dataset Skip(int64_t count, Line line = {__builtin_FILE(), __builtin_LINE()}) const;
  // Returns the elements at the positions index, index + shards, ...
  Dataset Shard(int64_t shards, int64_t index,
                Line line = {__builtin_FILE(), __builtin_LINE()}) const;
  // Returns the elements of this dataset, then those of `next`, which must have the same types. In
  // shapes(), dimensions that differ between the two become unknown.
  Dataset Concatenate(const Dataset& next, Line line = {__builtin_FILE(), __builtin_LINE()}) const;
  // Keeps the elements in memory when the dataset is first read to its end. Later rounds of a
  // Repeat read them from there.
  Dataset Cache(Line line = {__builtin_FILE(), __builtin_LINE()}) const;
  // Reads up to `buffer_size` elements ahead, on a thread. -1: the runtime chooses.
  Dataset Prefetch(int64_t buffer_size = -1,
                   Line line = {__builtin_FILE(), __builtin_LINE()}) const;

  const std::vector<DType>& types() const { return elements_.types; }
  const std::vector<PartialShape>& shapes() const { return elements_.shapes; }
  const TensorSpecs& elements() const { return elements_; }
  GraphBuilder& graph() const { return *graph_; }
  Output variant() const { return variant_; }

  // Returns OK if the graph shows that the dataset has the same elements in each session. Else
  // returns InvalidArgument with the cause: a shuffle without a seed, a function's random op
  // without a seed, or a random op of a function that is called in parallel. Ignores values that
  // functions read from variables, queues and tables.
  const Status& repeatable() const { return repeatable_; }

 private:
  friend class DatasetNode;
  Dataset(GraphBuilder& graph, Output variant, TensorSpecs elements)
      : graph_(&graph), variant_(variant), elements_(std::move(elements)) {}

  GraphBuilder* graph_;
  Output variant_;  // not valid if the graph has an error
  TensorSpecs elements_;
  Status repeatable_;
  std::string random_;  // the name of a random op in one of the functions; "": none
};

}  // namespace penstock::client

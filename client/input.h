// SPDX-License-Identifier: Apache-2.0
//
// Input pipelines of queues, as functions that add their nodes to a program and their threads to
// QueueRunners:
//
//   QueueRunners runners(program);
//   const Output files = StringInputProducer(runners, names, {.num_epochs = 10, .seed = 7});
//   const Output record = ReadRecord(CallIn(program, "TFRecordReaderV2", {}), files).value;
//   const Outputs batch = ShuffleBatch(runners, Parse(record), 128,
//                                      {.capacity = 2000, .min_after_dequeue = 1000});
//
// The pipeline runs in the session: on a worker, records never pass through the client. With
// num_epochs, a step that asks for a batch after the last one fails with OutOfRange. The epoch
// counters are local variables, which must be initialised. An invalid argument sets the program's
// error (Program::status). This error, and errors of the nodes, name the line of the call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/queue_runner.h"

namespace penstock::client {

struct ProducerOptions {
  int64_t num_epochs = 0;  // 0: without end
  bool shuffle = true;     // if true, in a different random order in each epoch
  int64_t seed = 0;        // 0: another order in each run
  int64_t capacity = 32;
  std::string shared_name = "";
};
// Returns a queue whose elements are the rows of `rows` (rank 1 or more; only the first dimension
// may be unknown).
Output InputProducer(QueueRunners& runners, Output rows, const ProducerOptions& options = {},
                     SourceLine line = {__builtin_FILE(), __builtin_LINE()});
// Returns a queue of strings, usually file names.
Output StringInputProducer(QueueRunners& runners, const std::vector<std::string>& strings,
                           const ProducerOptions& options = {},
                           SourceLine line = {__builtin_FILE(), __builtin_LINE()});
// Returns a queue of the int32 numbers 0, ..., limit - 1.
Output RangeInputProducer(QueueRunners& runners, int32_t limit, const ProducerOptions& options = {},
                          SourceLine line = {__builtin_FILE(), __builtin_LINE()});
// Returns slice i of each of `tensors`, with a different i in each step. The first dimensions of
// the tensors must be known and equal.
Outputs SliceInputProducer(QueueRunners& runners, const Outputs& tensors,
                           const ProducerOptions& options = {},
                           SourceLine line = {__builtin_FILE(), __builtin_LINE()});

struct RecordOutputs {
  Output key, value;
};
// Returns the next record of a reader (TFRecordReaderV2, ...), which takes file names from `queue`.
RecordOutputs ReadRecord(Output reader, Output queue,
                         SourceLine line = {__builtin_FILE(), __builtin_LINE()});

struct BatchOptions {
  int threads = 1;  // if more than one, the order of elements is random
  int64_t capacity = 32;
  // If true, `tensors` are batches, whose rows are the elements.
  bool enqueue_many = false;
  // If true, elements may differ in shape, but not in rank, and each batch is padded with zeros to
  // the largest element.
  bool dynamic_pad = false;
  // If true, the last batch may be smaller; else elements that do not fill a batch are dropped.
  bool allow_smaller_final_batch = false;
  std::string shared_name = "";
};
// Returns batches of `batch_size` elements, in order. An element consists of one value of each of
// `tensors`, whose shapes (with dynamic_pad: whose ranks) must be known.
Outputs Batch(QueueRunners& runners, const Outputs& tensors, int32_t batch_size,
              const BatchOptions& options = {},
              SourceLine line = {__builtin_FILE(), __builtin_LINE()});

struct ShuffleBatchOptions {
  int threads = 1;
  // The maximum number of queued elements; must be more than min_after_dequeue.
  int64_t capacity = 0;
  // The number of elements that a dequeue leaves in the queue; a larger number mixes better.
  int64_t min_after_dequeue = 0;
  int64_t seed = 0;  // 0: another order in each run
  bool enqueue_many = false;
  bool allow_smaller_final_batch = false;
  // If true, the same seeds give the same batches, independent of the speed of producers and
  // consumers, so that a training can be resumed (run_queue_runners.h). Each element is drawn from
  // a full queue. REQUIRES: a seed and one thread. Keeps two batches ready, because the queue is
  // refilled only after a consumer has taken an element.
  bool repeatable = false;
  std::string shared_name = "";
};
// Returns batches of `batch_size` elements, in random order.
Outputs ShuffleBatch(QueueRunners& runners, const Outputs& tensors, int32_t batch_size,
                     const ShuffleBatchOptions& options,
                     SourceLine line = {__builtin_FILE(), __builtin_LINE()});

struct BucketOptions {
  int threads = 1;
  int64_t capacity = 32;  // the capacity of each bucket
  bool allow_smaller_final_batch = false;
};
struct BucketedBatch {
  Output lengths;  // int32 or int64 [batch], the elements' lengths
  Outputs tensors;
};
// Returns batches of elements of similar `length` (a scalar), each padded to its largest element.
// Bucket i holds the elements with boundaries[i - 1] <= length < boundaries[i]; each batch comes
// from one bucket, so there is little padding.
BucketedBatch BucketBySequenceLength(QueueRunners& runners, Output length, const Outputs& tensors,
                                     int32_t batch_size, const std::vector<int64_t>& boundaries,
                                     const BucketOptions& options = {},
                                     SourceLine line = {__builtin_FILE(), __builtin_LINE()});

}  // namespace penstock::client

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
// All of it runs in the session: on a worker, records never pass through the client. With
// num_epochs, the end of the input reaches whoever takes the last batch as OutOfRange; the counters
// of epochs are local variables, which have to be initialised. Mistakes are the program's
// (Program::status).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/queue_runner.h"

namespace penstock::client {

struct ProducerOptions {
  int64_t num_epochs = 0;  // 0: for ever
  bool shuffle = true;     // anew in each epoch
  int64_t seed = 0;        // 0: another order in each run
  int64_t capacity = 32;
  std::string shared_name = "";
};
// A queue of the rows of `rows` (rank 1 or more, known but for the first dimension).
Output InputProducer(QueueRunners& runners, Output rows, const ProducerOptions& options = {});
// A queue of strings: file names, mostly.
Output StringInputProducer(QueueRunners& runners, const std::vector<std::string>& strings,
                           const ProducerOptions& options = {});
// A queue of the int32 0, ..., limit - 1.
Output RangeInputProducer(QueueRunners& runners, int32_t limit,
                          const ProducerOptions& options = {});
// One slice, the same one, of each of `tensors`, whose first dimensions are equal.
Outputs SliceInputProducer(QueueRunners& runners, const Outputs& tensors,
                           const ProducerOptions& options = {});

struct RecordOutputs {
  Output key, value;
};
// The next record of a reader (TFRecordReaderV2, ...), which takes its work from `queue`.
RecordOutputs ReadRecord(Output reader, Output queue);

struct BatchOptions {
  int threads = 1;  // with more than one the order is left to chance
  int64_t capacity = 32;
  // `tensors` are batches already: their rows are the elements.
  bool enqueue_many = false;
  // Elements differ in shape, but not in rank; each batch is padded with zeros to its largest.
  bool dynamic_pad = false;
  // The last batch may be smaller; otherwise what does not fill one is left out.
  bool allow_smaller_final_batch = false;
  std::string shared_name = "";
};
// `batch_size` elements at a time, in order. An element has one of each of `tensors`, whose shapes
// are known (or their ranks, with dynamic_pad).
Outputs Batch(QueueRunners& runners, const Outputs& tensors, int32_t batch_size,
              const BatchOptions& options = {});

struct ShuffleBatchOptions {
  int threads = 1;
  int64_t capacity = 0;           // more than min_after_dequeue
  int64_t min_after_dequeue = 0;  // the more, the better they are mixed
  int64_t seed = 0;               // 0: another order in each run
  bool enqueue_many = false;
  bool allow_smaller_final_batch = false;
  // The same seeds give the same batches, however fast anybody is, for a training that is resumed
  // (run_queue_runners.h): each element is drawn from a full queue. REQUIRES a seed, one thread.
  // Two batches are kept ready, since the queue itself is not filled ahead of who takes from it.
  bool repeatable = false;
  std::string shared_name = "";
};
// `batch_size` elements at a time, in random order.
Outputs ShuffleBatch(QueueRunners& runners, const Outputs& tensors, int32_t batch_size,
                     const ShuffleBatchOptions& options);

struct BucketOptions {
  int threads = 1;
  int64_t capacity = 32;  // of each bucket
  bool allow_smaller_final_batch = false;
};
struct BucketedBatch {
  Output lengths;  // int32 or int64 [batch], as they came
  Outputs tensors;
};
// Batches of elements of similar `length` (a scalar), each padded to its largest: bucket i has
// those with boundaries[i - 1] <= length < boundaries[i], so that little is padding.
BucketedBatch BucketBySequenceLength(QueueRunners& runners, Output length, const Outputs& tensors,
                                     int32_t batch_size, const std::vector<int64_t>& boundaries,
                                     const BucketOptions& options = {});

}  // namespace penstock::client

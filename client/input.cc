// SPDX-License-Identifier: Apache-2.0
#include "client/input.h"

#include <algorithm>
#include <utility>

#include "client/ops/line_scope.h"
#include "core/op/gradient.h"
#include "core/op/private_attrs.h"

namespace penstock::client {
namespace {

using Shapes = std::vector<PartialShape>;

std::vector<DType> TypesOf(const Outputs& tensors) {
  std::vector<DType> types;
  for (const Output& t : tensors) types.push_back(t.dtype());
  return types;
}

// Returns `shape` with the dimension `size` in front.
PartialShape Prepend(int64_t size, const PartialShape& shape) {
  PartialShape batch({size});
  for (const int64_t d : shape.dims()) batch.AddDim(d);
  return batch;
}
// Returns `shape` without its first dimension.
PartialShape RowShape(const PartialShape& shape) { return PartialShape(shape.dims().subspan(1)); }

// Sets `*shapes` to the shapes of the elements of each tensor: the shape of a row if `rows`, else
// the tensor's shape. If a shape is not fully known (with `pad`: if its rank is not known), sets
// the program's error and returns false.
bool InferElementShapes(Program& program, const Outputs& tensors, bool rows, bool pad,
                        Shapes* shapes) {
  if (tensors.empty()) program.Fail(InvalidArgument("an input pipeline of no tensors"));
  for (const Output& t : tensors) {
    PartialShape shape = t.shape();
    const bool ranked = shape.known_rank() && (!rows || shape.rank() > 0);
    if (ranked && rows) shape = RowShape(shape);
    if (!ranked || (!pad && !shape.fully_known())) {
      program.Fail(InvalidArgument("input pipeline: '", t.name(), "' has shape ",
                                   t.shape().ToString(), "; ", pad ? "the rank" : "the shape",
                                   " of an element must be known"));
      return false;
    }
    shapes->push_back(std::move(shape));
  }
  return program.status().ok();
}

struct QueueOptions {
  const char* op = "FIFOQueueV2";
  int64_t capacity = 32;
  std::string shared_name = "";
  Attrs more = {};
};
Output NewQueue(Program& program, const Outputs& components, const Shapes& shapes,
                const QueueOptions& options) {
  Attrs attrs = options.more;
  attrs["component_types"] = TypesOf(components);
  attrs["shapes"] = shapes;
  attrs["capacity"] = options.capacity;
  attrs["shared_name"] = options.shared_name;
  return CallIn(program, options.op, {}, std::move(attrs));
}

Output Enqueue(Output queue, const Outputs& components, bool many) {
  return Call(many ? "QueueEnqueueManyV2" : "QueueEnqueueV2", {queue, components});
}

Attrs DequeueAttrs(const Outputs& components, const Shapes& shapes) {
  return {{"component_types", TypesOf(components)}, {kOutputShapesAttr, shapes}};
}

// Dequeues a batch of elements of `shapes`; returns one tensor per component. If `up_to`, the last
// batch may be smaller than `batch_size`.
Outputs DequeueBatch(Output queue, const Outputs& components, const Shapes& shapes,
                     int32_t batch_size, bool up_to) {
  Shapes batch;
  for (const PartialShape& shape : shapes) {
    batch.push_back(Prepend(up_to ? PartialShape::kUnknown : batch_size, shape));
  }
  const Output n = Constant(*queue.sink, Tensor::Scalar<int32_t>(batch_size));
  return CallN(up_to ? "QueueDequeueUpToV2" : "QueueDequeueManyV2", {queue, n},
               DequeueAttrs(components, batch));
}

Outputs Dequeue(Output queue, const Outputs& components, const Shapes& shapes) {
  return CallN("QueueDequeueV2", {queue}, DequeueAttrs(components, shapes));
}

}  // namespace

Output InputProducer(QueueRunners& runners, Output rows, const ProducerOptions& options,
                     SourceLine line) {
  const CallerLine source(runners.program(), line);
  Program& program = runners.program();
  const auto scope = program.NameScope("input_producer");
  Shapes shapes;
  if (!InferElementShapes(program, {rows}, /*rows=*/true, /*pad=*/false, &shapes))
    return {&program};
  if (rows.shape().dim(0) == 0) {
    program.Fail(InvalidArgument("an input producer of no rows: '", rows.name(), "'"));
    return {&program};
  }
  const Output queue = NewQueue(program, {rows}, shapes,
                                {.capacity = options.capacity, .shared_name = options.shared_name});
  Outputs before;
  if (options.num_epochs > 0) {
    const Variable epochs(program, "epochs", {}, Zeros(), {.dtype = DType::kInt64, .local = true});
    before.push_back(Call("ResourceCountUpTo", {epochs.handle()},
                          {{"limit", options.num_epochs}, {"T", DType::kInt64}}));
  }
  const auto after = program.ControlDependencies(before);
  if (options.shuffle) rows = Call("RandomShuffle", {rows}, {{"seed", options.seed}});
  runners.Add({Enqueue(queue, {rows}, /*many=*/true)}, {queue});
  return queue;
}

Output StringInputProducer(QueueRunners& runners, const std::vector<std::string>& strings,
                           const ProducerOptions& options, SourceLine line) {
  const CallerLine source(runners.program(), line);
  const Output all = Constant(runners.program(), Tensor::Vector<std::string>(strings));
  return InputProducer(runners, all, options);
}

Output RangeInputProducer(QueueRunners& runners, int32_t limit, const ProducerOptions& options,
                          SourceLine line) {
  const CallerLine source(runners.program(), line);
  std::vector<int32_t> range;
  for (int32_t i = 0; i < limit; ++i) range.push_back(i);
  return InputProducer(runners, Constant(runners.program(), Tensor::Vector<int32_t>(range)),
                       options);
}

Outputs SliceInputProducer(QueueRunners& runners, const Outputs& tensors,
                           const ProducerOptions& options, SourceLine line) {
  const CallerLine source(runners.program(), line);
  Program& program = runners.program();
  Shapes shapes;
  if (!InferElementShapes(program, tensors, /*rows=*/true, /*pad=*/false, &shapes)) return tensors;
  const int64_t count = tensors[0].shape().dim(0);
  for (const Output& t : tensors) {
    if (count >= 0 && count <= INT32_MAX && t.shape().dim(0) == count) continue;
    program.Fail(InvalidArgument("slices are taken from '", tensors[0].name(), "' of shape ",
                                 tensors[0].shape().ToString(), " and '", t.name(), "' of shape ",
                                 t.shape().ToString(),
                                 "; the first dimensions must be known and equal"));
    return tensors;
  }
  const Output queue = RangeInputProducer(runners, static_cast<int32_t>(count), options);
  const Output index =
      Call("QueueDequeueV2", {queue}, {{"component_types", std::vector<DType>{DType::kInt32}}});
  Outputs slices;
  const Output axis = Constant(program, Tensor::Scalar<int32_t>(0));
  for (const Output& t : tensors) slices.push_back(Gather(t, index, axis));
  return slices;
}

RecordOutputs ReadRecord(Output reader, Output queue, SourceLine line) {
  const CallerLine source(reader, line);
  const Outputs record = CallN("ReaderReadV2", {reader, queue});
  return {record[0], record[1]};
}

Outputs Batch(QueueRunners& runners, const Outputs& tensors, int32_t batch_size,
              const BatchOptions& options, SourceLine line) {
  const CallerLine source(runners.program(), line);
  Program& program = runners.program();
  const auto scope = program.NameScope("batch");
  Shapes shapes;
  if (!InferElementShapes(program, tensors, options.enqueue_many, options.dynamic_pad, &shapes)) {
    return tensors;
  }
  const Output queue = NewQueue(program, tensors, shapes,
                                {.op = options.dynamic_pad ? "PaddingFIFOQueueV2" : "FIFOQueueV2",
                                 .capacity = options.capacity,
                                 .shared_name = options.shared_name});
  runners.Add({Enqueue(queue, tensors, options.enqueue_many)}, {queue}, options.threads);
  return DequeueBatch(queue, tensors, shapes, batch_size, options.allow_smaller_final_batch);
}

namespace {

constexpr int64_t kReadyBatches = 2;

// Returns the batches of `batch` from a queue that is filled ahead of the consumer.
Outputs KeepReady(QueueRunners& runners, const Outputs& batch) {
  Shapes shapes;
  for (const Output& t : batch) shapes.push_back(t.shape());
  // The queue gets shapes only if all batches have the same shapes.
  const bool same = std::all_of(shapes.begin(), shapes.end(),
                                [](const PartialShape& s) { return s.fully_known(); });
  const Output queue =
      NewQueue(runners.program(), batch, same ? shapes : Shapes(), {.capacity = kReadyBatches});
  runners.Add({Enqueue(queue, batch, /*many=*/false)}, {queue});
  return Dequeue(queue, batch, shapes);
}

}  // namespace

Outputs ShuffleBatch(QueueRunners& runners, const Outputs& tensors, int32_t batch_size,
                     const ShuffleBatchOptions& options, SourceLine line) {
  const CallerLine source(runners.program(), line);
  Program& program = runners.program();
  const auto scope = program.NameScope("shuffle_batch");
  Shapes shapes;
  if (!InferElementShapes(program, tensors, options.enqueue_many, /*pad=*/false, &shapes)) {
    return tensors;
  }
  Attrs attrs = {{"min_after_dequeue", options.min_after_dequeue}, {"seed", options.seed}};
  if (options.repeatable) attrs[kRepeatableAttr] = true;
  const Output queue = NewQueue(program, tensors, shapes,
                                {.op = "RandomShuffleQueueV2",
                                 .capacity = options.capacity,
                                 .shared_name = options.shared_name,
                                 .more = std::move(attrs)});
  runners.Add({Enqueue(queue, tensors, options.enqueue_many)}, {queue}, options.threads);
  const Outputs batch =
      DequeueBatch(queue, tensors, shapes, batch_size, options.allow_smaller_final_batch);
  return options.repeatable ? KeepReady(runners, batch) : batch;
}

namespace {

constexpr int64_t kBucketedBatches = 8;  // the maximum number of batches kept ready

// Returns the tensors as a batch of one element if `count` is 1, as an empty batch if it is 0.
Outputs OneOrNone(Program& program, const Outputs& tensors, Output count) {
  const Output zero = Constant(program, Tensor::Scalar<int32_t>(0));
  const Output rest = Constant(program, Tensor::Scalar<int32_t>(-1));
  Outputs rows;
  for (const Output& t : tensors) {
    const int rank = t.shape().rank();
    Outputs size(rank + 1, rest);
    size[0] = count;
    const Output begin =
        Constant(program, Tensor::Vector<int32_t>(std::vector<int32_t>(rank + 1, 0)));
    rows.push_back(Call("Slice", {ExpandDims(t, zero), begin, Pack(size)}));
  }
  return rows;
}

}  // namespace

BucketedBatch BucketBySequenceLength(QueueRunners& runners, Output length, const Outputs& tensors,
                                     int32_t batch_size, const std::vector<int64_t>& boundaries,
                                     const BucketOptions& options, SourceLine line) {
  const CallerLine source(runners.program(), line);
  Program& program = runners.program();
  const auto scope = program.NameScope("bucket");
  Outputs components = {length};
  components.insert(components.end(), tensors.begin(), tensors.end());
  Shapes shapes;
  if (!InferElementShapes(program, components, /*rows=*/false, /*pad=*/true, &shapes)) {
    return {length, tensors};
  }
  const Output reached =
      Cast(GreaterEqual(Cast(length, DType::kInt64), Constant(program, Tensor::Vector(boundaries))),
           DType::kInt32);
  const Output bucket = Sum(reached, Constant(program, Tensor::Scalar<int32_t>(0)));

  // Enqueues every element to all buckets: to its own bucket as a batch of one, to the others as an
  // empty batch.
  Outputs queues, puts, batches_ready;
  for (size_t i = 0; i <= boundaries.size(); ++i) {
    queues.push_back(NewQueue(program, components, shapes,
                              {.op = "PaddingFIFOQueueV2", .capacity = options.capacity}));
    const Output here = Constant(program, Tensor::Scalar(static_cast<int32_t>(i)));
    const Output count = Cast(Equal(bucket, here), DType::kInt32);
    puts.push_back(Enqueue(queues[i], OneOrNone(program, components, count), /*many=*/true));
  }
  runners.Add({program.Group(puts, "put")}, queues, options.threads);

  Shapes batch_shapes;
  for (const PartialShape& shape : shapes) {
    batch_shapes.push_back(Prepend(PartialShape::kUnknown, shape));
  }
  const Output ready = NewQueue(program, components, batch_shapes,
                                {.op = "PaddingFIFOQueueV2", .capacity = kBucketedBatches});
  for (const Output& queue : queues) {
    const Outputs batch =
        DequeueBatch(queue, components, shapes, batch_size, options.allow_smaller_final_batch);
    batches_ready.push_back(Enqueue(ready, batch, /*many=*/false));
  }
  runners.Add(batches_ready, {ready});
  Outputs batch = Dequeue(ready, components, batch_shapes);
  return {batch[0], Outputs(batch.begin() + 1, batch.end())};
}

}  // namespace penstock::client

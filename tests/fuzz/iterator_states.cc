// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the states of iterators, which checkpoints and clients provide. The input selects one of
// the pipelines below, how many elements are read before the state is saved, and how the saved
// tensors are changed. A new iterator must refuse the changed state, or continue: each element must
// take a bounded number of elements of the source, although the source never ends.
//
// Byte 0: the pipeline; byte 1: the elements read before; then 4 bytes per change (struct Change).
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/functions/embedded_functions.h"
#include "google/protobuf/text_format.h"
#include "kernels/dataset/dataset.h"
#include "kernels/dataset/testing/iterate.h"
#include "proto/tensorflow/graph.pb.h"
#include "tests/fuzz/fuzz_target.h"

namespace penstock {
namespace {

// The source fails a CHECK if one call of GetNext takes more elements than this.
constexpr int64_t kTakenMax = 10'000;
constexpr int kElementsRead = 24;
std::atomic<int64_t> taken{0};  // elements of sources taken since the last call of GetNext began

// The numbers from 0 on, without end.
class EndlessDataset final : public Dataset {
 public:
  EndlessDataset() : Dataset({.types = {DType::kInt64}, .shapes = {PartialShape::Scalar()}}, {}) {}
  const char* Name() const override { return "Endless"; }
  int64_t Cardinality() const override { return kInfiniteCardinality; }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext&) const override {
    return std::make_unique<Iterator>();
  }

 private:
  class Iterator final : public DatasetIterator {
   public:
    Status GetNext(const IteratorContext&, Element* element, bool* end) override {
      CHECK(++taken <= kTakenMax, "one element takes more than ", kTakenMax, " of the source");
      element->assign(1, Int(next_++));
      *end = false;
      return OkStatus();
    }
    Status Save(const IteratorContext&, StateWriter* writer) override {
      writer->Int(next_);
      return OkStatus();
    }
    Status Restore(const IteratorContext&, StateReader* reader) override {
      ASSIGN_OR_RETURN(next_, reader->Int());
      return OkStatus();
    }

   private:
    int64_t next_ = 0;
  };
};

// odd(x) is x mod 2; is_odd(x) whether it is 1. small(x) is the dataset of x mod 2 numbers.
// add(s, x) is s + x, twice. three(x) is 3. pairs(key, d) batches the dataset d.
constexpr char kFunctions[] = R"(
  function { signature { name: 'odd' input_arg { name: 'x' type: DT_INT64 }
                         output_arg { name: 'y' type: DT_INT64 } }
    node_def { name: 'two' op: 'Const' attr { key: 'dtype' value { type: DT_INT64 } }
      attr { key: 'value' value { tensor { dtype: DT_INT64 tensor_shape {} int64_val: 2 } } } }
    node_def { name: 'mod' op: 'FloorMod' input: 'x' input: 'two:output:0'
      attr { key: 'T' value { type: DT_INT64 } } }
    ret { key: 'y' value: 'mod:z:0' } }
  function { signature { name: 'is_odd' input_arg { name: 'x' type: DT_INT64 }
                         output_arg { name: 'y' type: DT_BOOL } }
    node_def { name: 'odd' op: 'odd' input: 'x' }
    node_def { name: 'cast' op: 'Cast' input: 'odd:y:0'
      attr { key: 'SrcT' value { type: DT_INT64 } } attr { key: 'DstT' value { type: DT_BOOL } } }
    ret { key: 'y' value: 'cast:y:0' } }
  function { signature { name: 'small' input_arg { name: 'x' type: DT_INT64 }
                         output_arg { name: 'd' type: DT_VARIANT } }
    node_def { name: 'zero' op: 'Const' attr { key: 'dtype' value { type: DT_INT64 } }
      attr { key: 'value' value { tensor { dtype: DT_INT64 tensor_shape {} int64_val: 0 } } } }
    node_def { name: 'one' op: 'Const' attr { key: 'dtype' value { type: DT_INT64 } }
      attr { key: 'value' value { tensor { dtype: DT_INT64 tensor_shape {} int64_val: 1 } } } }
    node_def { name: 'odd' op: 'odd' input: 'x' }
    node_def { name: 'range' op: 'RangeDataset'
      input: 'zero:output:0' input: 'odd:y:0' input: 'one:output:0'
      attr { key: 'output_types' value { list { type: DT_INT64 } } }
      attr { key: 'output_shapes' value { list { shape {} } } } }
    ret { key: 'd' value: 'range:handle:0' } }
  function { signature { name: 'add' input_arg { name: 's' type: DT_INT64 }
                         input_arg { name: 'x' type: DT_INT64 }
                         output_arg { name: 'y' type: DT_INT64 }
                         output_arg { name: 'z' type: DT_INT64 } }
    node_def { name: 'sum' op: 'AddV2' input: 's' input: 'x'
      attr { key: 'T' value { type: DT_INT64 } } }
    ret { key: 'y' value: 'sum:z:0' } ret { key: 'z' value: 'sum:z:0' } }
  function { signature { name: 'first' input_arg { name: 's' type: DT_INT64 }
                         input_arg { name: 'x' type: DT_INT64 }
                         output_arg { name: 'y' type: DT_INT64 } }
    node_def { name: 'sum' op: 'AddV2' input: 's' input: 'x'
      attr { key: 'T' value { type: DT_INT64 } } }
    ret { key: 'y' value: 'sum:z:0' } }
  function { signature { name: 'same' input_arg { name: 'x' type: DT_INT64 }
                         output_arg { name: 'y' type: DT_INT64 } }
    ret { key: 'y' value: 'x' } }
  function { signature { name: 'three' input_arg { name: 'x' type: DT_INT64 }
                         output_arg { name: 'y' type: DT_INT64 } }
    node_def { name: 'three' op: 'Const' attr { key: 'dtype' value { type: DT_INT64 } }
      attr { key: 'value' value { tensor { dtype: DT_INT64 tensor_shape {} int64_val: 3 } } } }
    ret { key: 'y' value: 'three:output:0' } }
  function { signature { name: 'pairs' input_arg { name: 'key' type: DT_INT64 }
                         input_arg { name: 'd' type: DT_VARIANT }
                         output_arg { name: 'e' type: DT_VARIANT } }
    node_def { name: 'two' op: 'Const' attr { key: 'dtype' value { type: DT_INT64 } }
      attr { key: 'value' value { tensor { dtype: DT_INT64 tensor_shape {} int64_val: 2 } } } }
    node_def { name: 'batch' op: 'BatchDataset' input: 'd' input: 'two:output:0'
      attr { key: 'output_types' value { list { type: DT_INT64 } } }
      attr { key: 'output_shapes' value { list { shape { unknown_rank: true } } } } }
    ret { key: 'e' value: 'batch:handle:0' } })";

FunctionName Function(const char* name) {
  return {.name = name, .attrs = std::make_shared<Attrs>()};
}

OpRunner With(const char* op, const char* attr = nullptr, const char* function = nullptr) {
  OpRunner runner = DatasetRunner(op).Device("CPU");
  if (attr == nullptr) return runner;
  static const auto* const library = [] {
    tensorflow::FunctionDefLibrary parsed;
    CHECK(google::protobuf::TextFormat::ParseFromString(kFunctions, &parsed));
    return new std::string(parsed.SerializeAsString());
  }();
  return runner.Attr(kFunctionsAttr, *library).Attr(attr, Function(function));
}

Tensor Endless() {
  return Tensor::Scalar(
      Variant{std::make_shared<DatasetValue>(std::make_shared<EndlessDataset>(), 1)});
}
// An op with number inputs after its dataset.
Tensor Of(const char* op, const Tensor& input, const std::vector<int64_t>& numbers = {}) {
  OpRunner runner = With(op).In(input);
  for (const int64_t number : numbers) runner.In(Int(number));
  return Must(runner.Run1());
}
Tensor Window(int64_t size, int64_t shift, int64_t stride) {
  return Must(With("WindowDataset")
                  .In(Endless())
                  .In(Int(size))
                  .In(Int(shift))
                  .In(Int(stride))
                  .In(Tensor::Scalar(true))
                  .Run1());
}
Tensor Calling(const char* op, const char* attr, const char* function, const Tensor& input,
               const std::vector<int64_t>& numbers = {}) {
  OpRunner runner = With(op, attr, function).In(input).InList({});
  for (const int64_t number : numbers) runner.In(Int(number));
  return Must(runner.Run1());
}
Tensor Directed(bool stops) {
  return Must(With("DirectedInterleaveDataset")
                  .Attr("stop_on_empty_dataset", stops)
                  .In(Calling("MapDataset", "f", "odd", Endless()))
                  .InList({Of("TakeDataset", Endless(), {4}), Of("TakeDataset", Endless(), {9})})
                  .Run1());
}
Tensor Rebatch() {
  return Must(With("RebatchDatasetV2")
                  .In(Of("BatchDataset", Endless(), {3}))
                  .In(Tensor::Vector<int64_t>({2, 1, 4}))
                  .In(Tensor::Scalar(false))
                  .Run1());
}
Tensor Scan() {
  return Must(With("ScanDataset", "f", "add").In(Endless()).InList({Int(0)}).InList({}).Run1());
}
Tensor GroupByWindow() {
  return Must(With("GroupByWindowDataset", "key_func", "odd")
                  .Attr("reduce_func", Function("pairs"))
                  .Attr("window_size_func", Function("three"))
                  .In(Endless())
                  .InList({})
                  .InList({})
                  .InList({})
                  .Run1());
}
Tensor GroupByReducer() {
  return Must(With("GroupByReducerDataset", "key_func", "odd")
                  .Attr("init_func", Function("same"))
                  .Attr("reduce_func", Function("first"))
                  .Attr("finalize_func", Function("same"))
                  .In(Of("TakeDataset", Endless(), {9}))
                  .InList({})
                  .InList({})
                  .InList({})
                  .InList({})
                  .Run1());
}
Tensor Sampling() {
  return Must(
      With("SamplingDataset").In(Endless()).In(Tensor::Scalar(0.5f)).In(Int(1)).In(Int(2)).Run1());
}
Tensor SparseSlices() {
  return Must(OpRunner("SparseTensorSliceDataset")
                  .In(Tensor::Of<int64_t>(Shape({3, 2}), {0, 1, 2, 0, 2, 2}))
                  .In(Tensor::Vector<int64_t>({5, 6, 7}))
                  .In(Tensor::Vector<int64_t>({4, 3}))
                  .Run1());
}

using Pipeline = std::function<Tensor()>;
const std::vector<Pipeline>& Pipelines() {
  static const auto* const pipelines = new std::vector<Pipeline>{
      [] {
        return Of("ShuffleDataset", Endless(), {5, 1, 2});
      },
      [] {
        return Of("ShuffleAndRepeatDataset", Of("TakeDataset", Endless(), {3}), {4, 1, 2, -1});
      },
      [] { return Of("RepeatDataset", Of("TakeDataset", Endless(), {3}), {-1}); },
      [] { return Of("SkipDataset", Endless(), {4}); },
      [] {
        return Of("ShardDataset", Endless(), {3, 1});
      },
      [] { return Window(3, 2, 2); },
      [] { return Window(2, 7, 1); },
      [] { return Of("PrefetchDataset", Of("BatchDataset", Endless(), {2}), {3}); },
      [] { return Of("UnbatchDataset", Of("BatchDataset", Endless(), {3})); },
      [] { return Rebatch(); },
      [] { return Of("RebatchDataset", Of("BatchDataset", Endless(), {4}), {3}); },
      [] {
        return Calling("InterleaveDataset", "f", "small", Endless(), {3, 2});
      },
      [] { return Calling("FlatMapDataset", "f", "small", Endless()); },
      [] {
        return Calling("ParallelInterleaveDatasetV2", "f", "small", Endless(), {3, 2, 2});
      },
      [] { return Calling("ParallelMapDatasetV2", "f", "odd", Endless(), {3}); },
      [] {
        return Of("RepeatDataset",
                  Must(With("CacheDataset")
                           .In(Of("TakeDataset", Endless(), {5}))
                           .In(Tensor::Scalar<std::string>(""))
                           .Run1()),
                  {-1});
      },
      [] { return Directed(false); },
      [] { return Directed(true); },
      [] { return Must(With("ConcatenateDataset").In(Range(3)).In(Endless()).Run1()); },
      [] { return Scan(); },
      [] { return Calling("FilterDataset", "predicate", "is_odd", Endless()); },
      [] { return Calling("TakeWhileDataset", "predicate", "is_odd", Endless()); },
      [] { return Of("UniqueDataset", Endless()); },
      [] { return Sampling(); },
      [] { return GroupByWindow(); },
      [] { return GroupByReducer(); },
      [] { return SparseSlices(); },
      [] { return Of("AssertCardinalityDataset", Range(9), {9}); },
      [] { return Of("RandomDataset", Int(1), {2}); },
  };
  return *pipelines;
}

// How one tensor of the state is changed: kind, position, value, parameter.
using Change = std::array<uint8_t, 4>;

int64_t Number(uint8_t value) {
  constexpr int64_t kNumbers[] = {0,         1,         2,         3,        5,    7,
                                  8,         -1,        -2,        100,      1000, 1LL << 31,
                                  1LL << 40, 1LL << 62, INT64_MAX, INT64_MIN};
  return kNumbers[value % std::size(kNumbers)];
}

Tensor Other(uint8_t value) {
  switch (value % 6) {
    case 0:
      return Tensor::Scalar<std::string>("x");
    case 1:
      return Tensor::Scalar<float>(1);
    case 2:
      return Tensor::Vector<int64_t>({3, 1, 4});
    case 3:
      return Tensor(DType::kInt64, Shape({0}));
    case 4:
      return Tensor::Scalar(Variant());
    default:
      return Tensor::Scalar(true);
  }
}

void Apply(const Change& change, std::vector<Tensor>* state) {
  if (state->empty()) return;
  const size_t at = change[1] % state->size();
  Tensor& tensor = (*state)[at];
  switch (change[0] % 6) {
    case 0:
      tensor = Int(Number(change[2]));
      break;
    case 1:
      if (tensor.dtype() == DType::kInt64 && tensor.rank() == 0) {
        tensor = Int(static_cast<int64_t>(static_cast<uint64_t>(tensor.scalar<int64_t>()) +
                                          static_cast<uint64_t>(static_cast<int8_t>(change[2]))));
      }
      break;
    case 2:
      state->erase(state->begin() + static_cast<int64_t>(at));
      break;
    case 3:
      state->insert(state->begin() + static_cast<int64_t>(at), Tensor(tensor));
      break;
    case 4:
      std::swap(tensor, (*state)[change[2] % state->size()]);
      break;
    default:
      tensor = Other(change[2]);
  }
}

// Reads up to `count` elements, and every byte of their numbers.
void Read(Place& place, DatasetIterator& iterator, int count) {
  for (int i = 0; i < count; ++i) {
    Element element;
    bool end = false;
    taken = 0;
    const Status status = iterator.GetNext(place.Context(), &element, &end);
    if (status.ok() && end) return;
    for (const Tensor& component : element) (void)component.ToString(10);
  }
}

void Fuzz(const uint8_t* data, size_t size) {
  if (size < 2) return;
  const Tensor dataset = Pipelines()[data[0] % Pipelines().size()]();
  Place place;
  std::vector<Tensor> state;
  {
    const IteratorPtr iterator = NewIterator(place, dataset);
    Read(place, *iterator, data[1] % kElementsRead);
    taken = 0;
    state = Save(place, *iterator);
  }
  for (size_t at = 2; at + 4 <= size; at += 4) {
    Apply({data[at], data[at + 1], data[at + 2], data[at + 3]}, &state);
  }
  const IteratorPtr restored = NewIterator(place, dataset);
  StateReader reader(std::move(state));
  taken = 0;
  if (restored->Restore(place.Context(), &reader).ok() && reader.AtEnd().ok()) {
    Read(place, *restored, kElementsRead);
  }
}

}  // namespace
}  // namespace penstock

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  penstock::Fuzz(data, size);
  return 0;
}

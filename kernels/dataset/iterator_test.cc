// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/functions/embedded_functions.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "kernels/dataset/cancellable_wait.h"
#include "kernels/dataset/dataset.h"
#include "kernels/dataset/iterator_resource.h"
#include "kernels/dataset/serialized_iterator.h"
#include "kernels/dataset/testing/iterate.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Tensor Shuffle(const Tensor& input, int64_t size, int64_t seed) {
  return Must(
      DatasetRunner("ShuffleDataset").In(input).In(Int(size)).In(Int(seed)).In(Int(0)).Run1());
}
Tensor Repeat(const Tensor& input, int64_t count) {
  return Must(DatasetRunner("RepeatDataset").In(input).In(Int(count)).Run1());
}
Tensor Take(const Tensor& input, int64_t count) {
  return Must(DatasetRunner("TakeDataset").In(input).In(Int(count)).Run1());
}
// Random numbers; each iterator gets other ones.
Tensor Random(int64_t seed) {
  return Must(DatasetRunner("RandomDatasetV2")
                  .Attr("rerandomize_each_iteration", true)
                  .In(Int(seed))
                  .In(Int(0))
                  .In(Tensor::Scalar(ResourceHandle{}))
                  .Run1());
}
Tensor BatchDataset(const Tensor& input, int64_t size) {
  return Must(DatasetRunner("BatchDataset").In(input).In(Int(size)).Run1());
}
Tensor Prefetch(const Tensor& input, int64_t size) {
  return Must(DatasetRunner("PrefetchDataset").In(input).In(Int(size)).Run1());
}
Tensor Window(const Tensor& input, int64_t size, int64_t shift) {
  return Must(DatasetRunner("WindowDataset")
                  .In(input)
                  .In(Int(size))
                  .In(Int(shift))
                  .In(Int(1))
                  .In(Tensor::Scalar(false))
                  .Run1());
}

// plus(x) is x + 1. six(x) is 6 / x rounded down, and fails for 0. ranges(x) is the dataset of the
// numbers from 0 to x - 1. seeded(x) and unseeded(x) are random numbers. case(x) is plus(x), six(x)
// or plus(x) if x is 0, 1 or more. if(x) is plus(x) if x is 0, else six(x).
constexpr char kIteratorLibrary[] = R"(
  function { signature { name: 'plus' input_arg { name: 'x' type: DT_INT64 }
                         output_arg { name: 'y' type: DT_INT64 } }
    node_def { name: 'one' op: 'Const' attr { key: 'dtype' value { type: DT_INT64 } }
      attr { key: 'value' value { tensor { dtype: DT_INT64 tensor_shape {} int64_val: 1 } } } }
    node_def { name: 'sum' op: 'AddV2' input: 'x' input: 'one:output:0'
      attr { key: 'T' value { type: DT_INT64 } } }
    ret { key: 'y' value: 'sum:z:0' } }
  function { signature { name: 'six' input_arg { name: 'x' type: DT_INT64 }
                         output_arg { name: 'y' type: DT_INT64 } }
    node_def { name: 'six' op: 'Const' attr { key: 'dtype' value { type: DT_INT64 } }
      attr { key: 'value' value { tensor { dtype: DT_INT64 tensor_shape {} int64_val: 6 } } } }
    node_def { name: 'quotient' op: 'FloorDiv' input: 'six:output:0' input: 'x'
      attr { key: 'T' value { type: DT_INT64 } } }
    ret { key: 'y' value: 'quotient:z:0' } }
  function { signature { name: 'ranges' input_arg { name: 'x' type: DT_INT64 }
                         output_arg { name: 'd' type: DT_VARIANT } }
    node_def { name: 'zero' op: 'Const' attr { key: 'dtype' value { type: DT_INT64 } }
      attr { key: 'value' value { tensor { dtype: DT_INT64 tensor_shape {} int64_val: 0 } } } }
    node_def { name: 'one' op: 'Const' attr { key: 'dtype' value { type: DT_INT64 } }
      attr { key: 'value' value { tensor { dtype: DT_INT64 tensor_shape {} int64_val: 1 } } } }
    node_def { name: 'range' op: 'RangeDataset'
      input: 'zero:output:0' input: 'x' input: 'one:output:0'
      attr { key: 'output_types' value { list { type: DT_INT64 } } }
      attr { key: 'output_shapes' value { list { shape {} } } } }
    ret { key: 'd' value: 'range:handle:0' } }
  function { signature { name: 'seeded' input_arg { name: 'x' type: DT_INT64 }
                         output_arg { name: 'y' type: DT_INT64 } }
    node_def { name: 'r' op: 'random' input: 'x'
      attr { key: 'seed' value { i: 3 } } }
    ret { key: 'y' value: 'r:y:0' } }
  function { signature { name: 'unseeded' input_arg { name: 'x' type: DT_INT64 }
                         output_arg { name: 'y' type: DT_INT64 } }
    node_def { name: 'r' op: 'random' input: 'x'
      attr { key: 'seed' value { i: 0 } } }
    ret { key: 'y' value: 'r:y:0' } }
  function { signature { name: 'random' input_arg { name: 'x' type: DT_INT64 }
                         output_arg { name: 'y' type: DT_INT64 }
                         attr { name: 'seed' type: 'int' } }
    node_def { name: 'shape' op: 'Const' attr { key: 'dtype' value { type: DT_INT64 } }
      attr { key: 'value' value { tensor { dtype: DT_INT64 tensor_shape { dim { size: 0 } } } } } }
    node_def { name: 'zero' op: 'Const' attr { key: 'dtype' value { type: DT_INT64 } }
      attr { key: 'value' value { tensor { dtype: DT_INT64 tensor_shape {} int64_val: 0 } } } }
    node_def { name: 'many' op: 'Const' attr { key: 'dtype' value { type: DT_INT64 } }
      attr { key: 'value' value { tensor { dtype: DT_INT64 tensor_shape {}
                                           int64_val: 1000000000000 } } } }
    node_def { name: 'r' op: 'RandomUniformInt'
      input: 'shape:output:0' input: 'zero:output:0' input: 'many:output:0'
      attr { key: 'T' value { type: DT_INT64 } } attr { key: 'Tout' value { type: DT_INT64 } }
      attr { key: 'seed' value { placeholder: 'seed' } } }
    ret { key: 'y' value: 'r:output:0' } }
  function { signature { name: 'case' input_arg { name: 'x' type: DT_INT64 }
                         output_arg { name: 'y' type: DT_INT64 } }
    node_def { name: 'index' op: 'Cast' input: 'x'
      attr { key: 'SrcT' value { type: DT_INT64 } } attr { key: 'DstT' value { type: DT_INT32 } } }
    node_def { name: 'c' op: 'StatelessCase' input: 'index:y:0' input: 'x'
      attr { key: 'Tin' value { list { type: DT_INT64 } } }
      attr { key: 'Tout' value { list { type: DT_INT64 } } }
      attr { key: 'branches' value { list {
        func { name: 'plus' } func { name: 'six' } func { name: 'plus' } } } } }
    ret { key: 'y' value: 'c:output:0' } }
  function { signature { name: 'if' input_arg { name: 'x' type: DT_INT64 }
                         output_arg { name: 'y' type: DT_INT64 } }
    node_def { name: 'c' op: 'StatelessIf' input: 'x' input: 'x'
      attr { key: 'Tcond' value { type: DT_INT64 } }
      attr { key: 'Tin' value { list { type: DT_INT64 } } }
      attr { key: 'Tout' value { list { type: DT_INT64 } } }
      attr { key: 'then_branch' value { func { name: 'six' } } }
      attr { key: 'else_branch' value { func { name: 'plus' } } } }
    ret { key: 'y' value: 'c:output:0' } })";

std::string Library() {
  tensorflow::FunctionDefLibrary library;
  CHECK(google::protobuf::TextFormat::ParseFromString(kIteratorLibrary, &library));
  return library.SerializeAsString();
}

OpRunner WithFunction(const char* op, const char* function) {
  return DatasetRunner(op)
      .Device("CPU")
      .Attr("f", FunctionName{.name = function, .attrs = std::make_shared<Attrs>()})
      .Attr(kFunctionsAttr, Library());
}

Tensor Map(const Tensor& input, const char* function) {
  return Must(WithFunction("MapDataset", function).In(input).InList({}).Run1());
}
Tensor ParallelMap(const Tensor& input, const char* function, int64_t calls) {
  return Must(
      WithFunction("ParallelMapDatasetV2", function).In(input).InList({}).In(Int(calls)).Run1());
}
Tensor Interleave(const Tensor& input, int64_t cycle, int64_t block) {
  return Must(WithFunction("InterleaveDataset", "ranges")
                  .In(input)
                  .InList({})
                  .In(Int(cycle))
                  .In(Int(block))
                  .Run1());
}
Tensor ParallelInterleave(const Tensor& input, int64_t cycle, int64_t block) {
  return Must(WithFunction("ParallelInterleaveDatasetV2", "ranges")
                  .In(input)
                  .InList({})
                  .In(Int(cycle))
                  .In(Int(block))
                  .In(Int(2))
                  .Run1());
}

// A dataset of the numbers from 0 on. It waits forever before number `stops_at`, and returns an
// error instead of number `fails_at`.
class TestDataset final : public Dataset {
 public:
  TestDataset(int64_t stops_at, int64_t fails_at)
      : Dataset({.types = {DType::kInt64}, .shapes = {PartialShape::Scalar()}}, {}),
        stops_at_(stops_at),
        fails_at_(fails_at) {}
  const char* Name() const override { return "Test"; }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext& ctx) const override {
    return std::make_unique<Iterator>(ctx, stops_at_, fails_at_);
  }

 private:
  class Iterator final : public DatasetIterator {
   public:
    Iterator(const IteratorContext& ctx, int64_t stops_at, int64_t fails_at)
        : stops_at_(stops_at), fails_at_(fails_at), never_(*ctx.threads, "nothing") {}
    Status GetNext(const IteratorContext& ctx, Element* element, bool* end) override {
      if (next_ == stops_at_) {
        RETURN_IF_ERROR(CancellableWait(ctx, mu_, never_, [] { return false; }));
      }
      *end = next_ == 5;
      if (*end) return OkStatus();
      if (next_++ == fails_at_) return InvalidArgument("failed");
      element->assign(1, Int(next_ - 1));
      return OkStatus();
    }
    Status Save(const IteratorContext&, StateWriter*) override { return Unimplemented("no"); }
    Status Restore(const IteratorContext&, StateReader*) override { return Unimplemented("no"); }

   private:
    const int64_t stops_at_, fails_at_;
    int64_t next_ = 0;
    Mutex mu_;
    Condition never_;
  };
  const int64_t stops_at_, fails_at_;
};

Tensor Faulty(int64_t stops_at, int64_t fails_at) {
  return Tensor::Scalar(Variant{
      std::make_shared<DatasetValue>(std::make_shared<TestDataset>(stops_at, fails_at), 1)});
}

TEST(Iterator, TheEndStays) {
  Place place;
  const IteratorPtr iterator = NewIterator(place, BatchDataset(Range(3), 2));
  EXPECT_THAT(Rest(place, *iterator), ElementsAre("0 1", "2", "end"));
  EXPECT_EQ(Next(place, *iterator), "end");
}

TEST(Iterator, FunctionsMapAndNest) {
  EXPECT_THAT(All(Map(Range(3), "plus")), ElementsAre("1", "2", "3", "end"));
  EXPECT_THAT(All(ParallelMap(Range(4), "plus", 2)), ElementsAre("1", "2", "3", "4", "end"));
  // As in TensorFlow 2.15: when a dataset of the cycle ends, the dataset of the next input element
  // takes over its place in the cycle.
  EXPECT_THAT(All(Interleave(Range(4), 2, 1)), ElementsAre("0", "0", "1", "0", "1", "2", "end"));
}

TEST(Iterator, FunctionsWithBranches) {
  // The case takes branch 2 for all larger numbers, too.
  EXPECT_THAT(All(Map(Range(5), "case")), ElementsAre("1", "6", "3", "4", "5", "end"));
  EXPECT_THAT(All(Map(Range(4), "if")), ElementsAre("1", "6", "3", "2", "end"));
}

TEST(Iterator, ReadInParallelHasTheSameOrder) {
  for (const int64_t cycle : {1, 2, 3, 7}) {
    for (const int64_t block : {1, 2, 5}) {
      EXPECT_EQ(All(ParallelInterleave(Range(9), cycle, block)),
                All(Interleave(Range(9), cycle, block)))
          << cycle << " " << block;
    }
  }
}

TEST(Iterator, AnErrorCostsOneElement) {
  EXPECT_THAT(All(Prefetch(Faulty(-1, 2), 2)), ElementsAre("0", "1", "failed", "3", "4", "end"));
  for (const Tensor& dataset : {Map(Range(4), "six"), ParallelMap(Range(4), "six", 3)}) {
    const std::vector<std::string> found = All(dataset);
    ASSERT_EQ(found.size(), 5u);
    EXPECT_THAT(found[0], HasSubstr("zero"));
    EXPECT_THAT(found, ElementsAre(found[0], "6", "3", "2", "end"));
  }
}

TEST(Iterator, ACancelledStepDoesNotWait) {
  for (const Tensor& dataset : {Prefetch(Faulty(1, -1), 2), Faulty(1, -1)}) {
    Place place;
    const IteratorPtr iterator = NewIterator(place, dataset);
    EXPECT_EQ(Next(place, *iterator), "0");
    auto canceller = Scheduler::Real().StartThread(
        "cancel", [&] { place.cancellation.Cancel(Cancelled("enough")); });
    EXPECT_EQ(Next(place, *iterator), "enough");
  }
}

TEST(Iterator, EndsItsThreadsWhileTheyWait) {
  Place place;
  IteratorPtr iterator = NewIterator(place, Prefetch(Faulty(1, -1), 2));
  EXPECT_EQ(Next(place, *iterator), "0");
  iterator = nullptr;  // would hang if the thread did not end
}

TEST(Iterator, ShuffledElementsAreAllThere) {
  std::vector<std::string> found = All(Shuffle(Range(50), 7, 3));
  std::vector<std::string> sorted = All(Range(50));
  EXPECT_NE(found, sorted);
  EXPECT_THAT(found, testing::UnorderedElementsAreArray(sorted));
}

std::vector<std::function<Tensor()>> SaveableDatasets() {
  return {
      [] { return Range(9); },
      [] { return BatchDataset(Repeat(Range(5), 3), 4); },
      [] { return Shuffle(Range(20), 6, 5); },
      [] { return Repeat(Shuffle(Range(8), 3, 5), 2); },
      [] { return Repeat(Take(Random(7), 3), 4); },
      [] { return Prefetch(Map(Shuffle(Range(12), 4, 1), "plus"), 3); },
      [] { return ParallelMap(Range(15), "plus", 4); },
      [] { return Interleave(Range(7), 3, 2); },
      [] { return ParallelInterleave(Range(7), 3, 2); },
      [] { return Window(Range(9), 3, 2); },
  };
}

TEST(Iterator, GoesOnFromASavedState) {
  for (const auto& make : SaveableDatasets()) {
    for (int taken = 0; taken < 9; ++taken) {
      Place place;
      const IteratorPtr first = NewIterator(place, make());
      for (int i = 0; i < taken; ++i) Next(place, *first);
      StateReader reader(Save(place, *first));
      const IteratorPtr second = NewIterator(place, make());
      ASSERT_TRUE(second->Restore(place.Context(), &reader).ok());
      EXPECT_TRUE(reader.AtEnd().ok());
      EXPECT_EQ(Rest(place, *second), Rest(place, *first)) << taken;
    }
  }
}

TEST(Iterator, RefusesStatesThatDoNotFit) {
  Place place;
  for (const auto& make : SaveableDatasets()) {
    const IteratorPtr saved = NewIterator(place, make());
    Next(place, *saved);
    std::vector<Tensor> state = Save(place, *saved);
    // Truncates the state, and replaces each number by numbers that are out of range.
    for (size_t i = 0; i < state.size(); ++i) {
      StateReader cut({state.begin(), state.begin() + static_cast<int64_t>(i)});
      EXPECT_EQ(NewIterator(place, make())->Restore(place.Context(), &cut).code(),
                StatusCode::kInvalidArgument);
      std::vector<Tensor> changed = state;
      if (changed[i].dtype() != DType::kInt64 || changed[i].rank() != 0) continue;
      for (const int64_t number : {INT64_MIN, int64_t{-1}, int64_t{1} << 40, INT64_MAX}) {
        changed[i] = Int(number);
        StateReader reader(changed);
        const IteratorPtr iterator = NewIterator(place, make());
        if (!iterator->Restore(place.Context(), &reader).ok()) continue;
        for (int k = 0; k < 3; ++k) Next(place, *iterator);  // the iterator must not crash
      }
    }
  }
  StateReader other(Save(place, *NewIterator(place, Range(3))));
  EXPECT_THAT(
      std::string(
          NewIterator(place, Window(Range(3), 1, 1))->Restore(place.Context(), &other).message()),
      HasSubstr("saved by another pipeline"));
}

TEST(Iterator, RefusesASavedNumberOfElementsToSkipThatIsTooLarge) {
  Place place;
  const IteratorPtr saved = NewIterator(place, Window(Range(100), 2, 7));
  Next(place, *saved);
  std::vector<Tensor> state = Save(place, *saved);
  constexpr int kSkip = 2;  // after the label and whether the input has ended
  ASSERT_EQ(state[kSkip].scalar<int64_t>(), 5);
  state[kSkip] = Int(int64_t{1} << 40);
  StateReader reader(state);
  EXPECT_EQ(NewIterator(place, Window(Range(100), 2, 7))->Restore(place.Context(), &reader).code(),
            StatusCode::kInvalidArgument);
}

TEST(Iterator, RefusesASavedElementOfOtherTypes) {
  Place place;
  const auto make = [] { return Prefetch(Range(9), 1); };
  StateWriter writer;  // one result: OK, with no components
  writer.Label("Prefetch");
  writer.Int(0);
  writer.Int(1);
  writer.Error(OkStatus());
  writer.Values({});
  StateReader reader(writer.Take());
  EXPECT_THAT(std::string(NewIterator(place, make())->Restore(place.Context(), &reader).message()),
              HasSubstr("an element of another pipeline"));
}

TEST(Iterator, AFunctionMayReturnFewerTensorsThanDeclared) {
  const Tensor map = Must(
      DatasetRunner("MapDataset", {DType::kInt64, DType::kInt64}, {PartialShape(), PartialShape()})
          .Device("CPU")
          .Attr("f", FunctionName{.name = "plus", .attrs = std::make_shared<Attrs>()})
          .Attr(kFunctionsAttr, Library())
          .In(Range(3))
          .InList({})
          .Run1());
  Place place;
  EXPECT_THAT(Next(place, *NewIterator(place, Window(map, 2, 1))), HasSubstr("1 components"));
}

TEST(SerializedIterator, IsRefusedIfTensorFlowHasSavedIt) {
  const char* const theirs = SerializedIterator::kTensorFlowTypeName;
  const auto found = DecodeVariant(theirs, "the keys of its tensors", {Int(1)});
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("TensorFlow has saved"));
  // The form of older checkpoints.
  EXPECT_TRUE(DecodeVariant(theirs, "", {Int(1)}).ok());
  EXPECT_TRUE(DecodeVariant(SerializedIterator::kTypeName, "", {Int(1)}).ok());
}

TEST(SerializedIterator, ACompressedElementIsRefusedWithATextOfItsOwn) {
  const Status status = DecodeVariant("tensorflow.data.CompressedElement", "", {}).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("a compressed element"));
}

// Calls an IteratorResource and waits for each operation to end.
class SynchronousCaller {
 public:
  Status Run(const IteratorResource::Operation& operation) {
    Mutex mu;
    Condition ended(Scheduler::Real(), "the end of an operation");
    bool has_ended = false;
    Status result;
    resource.Run(place.Context(), operation, Done([&](Status status) {
                   MutexLock lock(mu);
                   result = std::move(status);
                   has_ended = true;
                   ended.NotifyAll();
                 }));
    MutexLock lock(mu);
    ended.Wait(mu, [&] { return has_ended; });
    return result;
  }
  Status SetDataset(const Tensor& dataset) {
    return Run([&](const IteratorContext& ctx, IteratorResource::Content& content) {
      return resource.SetDataset(ctx, *DatasetOf(dataset), content);
    });
  }
  std::vector<std::string> Take(int count) {
    std::vector<std::string> taken;
    for (int i = 0; i < count; ++i) {
      CHECK_OK(Run([&](const IteratorContext& ctx, IteratorResource::Content& content) {
        Element element;
        bool end = false;
        RETURN_IF_ERROR(content.iterator->GetNext(ctx, &element, &end));
        taken.push_back(end ? "end" : StrCat(element[0].scalar<int64_t>()));
        return OkStatus();
      }));
    }
    return taken;
  }

  Place place;
  IteratorResource resource{{}, Scheduler::Real()};
};

TEST(IteratorResource, GivesElementsAndTellsThatItHasNoDataset) {
  SynchronousCaller waiting;
  IteratorResource& resource = waiting.resource;
  const auto prepare = [&](const IteratorContext& ctx, IteratorResource::Content& content) {
    return resource.Prepare(ctx, content);
  };
  EXPECT_EQ(waiting.Run(prepare).code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(waiting.SetDataset(Prefetch(Range(2), 1)).ok());
  EXPECT_THAT(waiting.Take(3), ElementsAre("0", "1", "end"));
  resource.Shutdown();
  EXPECT_EQ(waiting.Run(prepare).code(), StatusCode::kCancelled);
}

std::set<std::string> Distinct(const std::vector<std::string>& values) {
  return {values.begin(), values.end()};
}

TEST(IteratorResource, SeededRandomOpsContinueInEachRoundAndRestartWithTheIterator) {
  for (const Tensor& dataset :
       {Repeat(Map(Range(3), "seeded"), 2), Prefetch(Repeat(Map(Range(3), "seeded"), 2), 2)}) {
    SynchronousCaller waiting;
    ASSERT_TRUE(waiting.SetDataset(dataset).ok());
    const std::vector<std::string> first = waiting.Take(6);
    EXPECT_EQ(Distinct(first).size(), 6u) << "the second round repeats numbers of the first";
    ASSERT_TRUE(waiting.SetDataset(dataset).ok());
    EXPECT_EQ(waiting.Take(6), first);
  }
}

TEST(IteratorResource, UnseededRandomOpsNeverRestart) {
  const Tensor dataset = Repeat(Map(Range(3), "unseeded"), 2);
  SynchronousCaller waiting;
  ASSERT_TRUE(waiting.SetDataset(dataset).ok());
  std::vector<std::string> found = waiting.Take(6);
  ASSERT_TRUE(waiting.SetDataset(dataset).ok());
  for (std::string& number : waiting.Take(6)) found.push_back(std::move(number));
  EXPECT_EQ(Distinct(found).size(), 12u);
}

}  // namespace
}  // namespace penstock

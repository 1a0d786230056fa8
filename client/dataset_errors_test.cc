// SPDX-License-Identifier: Apache-2.0
//
// Tests invalid calls of Dataset's functions, errors of steps that read datasets, and the
// cancellation of steps that wait.
#include <chrono>
#include <thread>

#include "client/dataset_iterator.h"
#include "client/program.h"
#include "client/session.h"
#include "client/testing/dataset_elements.h"
#include "core/base/cancellation.h"
#include "core/op/gradient.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct DatasetMistake {
  std::function<void(Program& p, const Dataset& numbers)> make;  // its last line is the mistake
  std::string error;
};

const std::vector<DatasetMistake>& DatasetMistakes() {
  static const auto* const kMistakes = new std::vector<DatasetMistake>{
      {[](Program& p, const Dataset&) { Dataset::Range(p, 0, 1, 0); },
       "range_1: step must not be 0"},
      {[](Program& p, const Dataset&) { Dataset::Tensors(p, {}); }, "at least one tensor"},
      {[](Program& p, const Dataset&) { Dataset::TensorSlices(p, {Int64(p, 1)}); },
       "'Const:0' is a scalar, which has no rows"},
      {[](Program& p, const Dataset&) {
         const Output two = Constant(p, Tensor::Vector<int64_t>({1, 2}));
         const Output three = Constant(p, Tensor::Vector<int64_t>({1, 2, 3}));
         Dataset::TensorSlices(p, {two, three});
       },
       "'Const_1:0' has 3 rows, 'Const:0' has 2"},
      {[](Program& p, const Dataset&) { Dataset::TFRecords(p, std::vector<std::string>()); },
       "a dataset of no files"},
      {[](Program& p, const Dataset&) { Dataset::TextLines(p, Int64(p, 1)); },
       "must be a string or a vector of strings, are int64[]"},
      {[](Program& p, const Dataset&) { Dataset::FixedLengthRecords(p, {"f"}, 0); },
       "record_bytes must be at least 1, is 0"},
      {[](Program& p, const Dataset&) { Dataset::Zip(p, {}); }, "at least one dataset"},
      {[](Program& p, const Dataset&) { Dataset::FromVariant(p, Int64(p, 1), {}); },
       "a dataset is a variant, 'Const:0' is int64"},
      {[](Program&, const Dataset& numbers) { numbers.Batch(0); },
       "batch: batch_size must be at least 1, is 0"},
      {[](Program&, const Dataset& numbers) { numbers.Batch(-2, {.drop_remainder = true}); },
       "batch: batch_size must be at least 1, is -2"},
      {[](Program&, const Dataset& numbers) { numbers.PaddedBatch(-2, {.drop_remainder = true}); },
       "padded_batch: batch_size must be at least 1, is -2"},
      {[](Program&, const Dataset& numbers) { numbers.Shuffle(0, 1); },
       "buffer_size must be at least 1, is 0"},
      {[](Program&, const Dataset& numbers) { numbers.Repeat(-2); },
       "count must be at least -1, is -2"},
      {[](Program&, const Dataset& numbers) { numbers.Shard(2, 2); },
       "index must be in [0, 2), is 2"},
      {[](Program&, const Dataset& numbers) {
         numbers.ParallelMap([](const Outputs& x) { return x; }, 0);
       },
       "num_parallel_calls must be at least 1, is 0"},
      {[](Program&, const Dataset& numbers) {
         numbers.Concatenate(
             numbers.Map([](const Outputs& x) { return Outputs{Cast(x[0], DType::kFloat)}; }));
       },
       "the types of the elements must be equal, are [int64] and [float]"},
      {[](Program&, const Dataset& numbers) {
         numbers.Filter([](const Outputs& x) { return x[0]; });
       },
       "must return a bool, returns int64[]"},
      {[](Program&, const Dataset& numbers) {
         numbers.Map([](const Outputs&) { return Outputs(); });
       },
       "function 'map/function' returns no tensor"},
      {[](Program& p, const Dataset& numbers) {
         const Output vector = Constant(p, Tensor::Vector<int64_t>({1, 2}));
         numbers.Batch(3, {.drop_remainder = true}).Map([&](const Outputs& x) {
           return Outputs{x[0] + vector};
         });
       },
       "node 'map/function/AddV2'"},
      {[](Program&, const Dataset& numbers) { numbers.PaddedBatch(2, {.shapes = {{3}}}); },
       "component 0 has the shape [], which cannot be padded to [3]"},
      {[](Program&, const Dataset& numbers) {
         numbers.PaddedBatch(2, {.values = {Tensor::Scalar(1.f)}});
       },
       "the padding value of component 0 must be a scalar int64, is float[]"},
      {[](Program& p, const Dataset& numbers) {
         numbers.Map([&](const Outputs& x) {
           const auto bare = p.BareScope();
           Int64(p, 5);
           return x;
         });
       },
       "makes 'map/function/Const' (Const), which cannot be in a function"},
      {[](Program& p, const Dataset& numbers) {
         const Output before = Int64(p, 1);
         numbers.Map([&](const Outputs& x) {
           const auto after = p.ControlDependencies({before});
           return Outputs{x[0] + 1};
         });
       },
       "function 'map/function' cannot wait for 'Const'"},
      {[](Program& p, const Dataset& numbers) {
         const Variable w(p, "w", {}, Zeros(), {.ref = true});
         numbers.Map([&](const Outputs& x) { return Outputs{w, x[0]}; });
       },
       "cannot use the reference 'w:0'"},
      {[](Program&, const Dataset& numbers) {
         Output leaked;
         numbers.Map([&](const Outputs& x) { return Outputs{leaked = x[0]}; });
         leaked + leaked;
       },
       "which does not exist here"},
      {[](Program& p, const Dataset& numbers) {
         const Iterator iterator(numbers);
         iterator.InitializerFor(numbers.Batch(2));
       },
       "cannot read those of"},
      {[](Program&, const Dataset& numbers) {
         numbers.Map([&](const Outputs& x) { return Iterator(numbers).GetNext(); });
       },
       "an iterator is made inside of a function"},
      {[](Program& p, const Dataset& numbers) {
         Dataset::FromVariant(p, Output(), numbers.elements());
       },
       "from_variant: the variant is no output"},
      {[](Program&, const Dataset& numbers) {
         Dataset leaked = numbers;
         numbers.FlatMap([&](const Outputs&) { return leaked = numbers.Take(1); });
         leaked.Batch(2);
       },
       "batch: the dataset does not exist here"},
      {[](Program&, const Dataset& numbers) {
         Dataset leaked = numbers;
         numbers.FlatMap([&](const Outputs&) { return leaked = numbers.Take(1); });
         const Iterator iterator(leaked);
       },
       "iterator: the dataset does not exist here"},
      {[](Program& p, const Dataset& numbers) {
         Program other;
         Dataset::Zip(p, {Dataset::Range(other, 0, 10), numbers});
       },
       "zip: the dataset does not exist here"},
  };
  return *kMistakes;
}

// Each invalid call sets the program's error, which names the line; later calls do not crash.
TEST(DatasetErrors, MistakesAreTheProgramsError) {
  for (const DatasetMistake& mistake : DatasetMistakes()) {
    Program p;
    const Dataset numbers = Dataset::Range(p, 0, 10);
    ASSERT_TRUE(p.status().ok()) << p.status();
    mistake.make(p, numbers);
    EXPECT_EQ(p.status().code(), StatusCode::kInvalidArgument) << mistake.error;
    EXPECT_THAT(std::string(p.status().message()),
                AllOf(HasSubstr(mistake.error), HasSubstr("(made at "),
                      HasSubstr("dataset_errors_test.cc:")));
    const Dataset later = numbers.Map([](const Outputs& x) { return Outputs{x[0] + 1}; })
                              .Batch(2)
                              .Shuffle(3)
                              .Concatenate(numbers)
                              .PaddedBatch(2);
    EXPECT_FALSE(Iterator(later).GetNext()[0].valid());
  }
}

// The program may use all components of an element before it looks at its status.
TEST(DatasetErrors, AllComponentsAfterAMistake) {
  Program p;
  const Dataset wide = Dataset::Tensors(p, Outputs(40, Int64(p, 1)));
  const Iterator before(wide);
  wide.Take(-7);
  for (const Iterator& iterator : {before, Iterator(wide)}) {
    const Outputs next = iterator.GetNext();
    ASSERT_EQ(next.size(), 40u);
    EXPECT_FALSE((next[39] + 1).valid());
  }
  EXPECT_THAT(std::string(p.status().message()), HasSubstr("count must be at least -1, is -7"));
}

TEST(DatasetErrors, AVariableInAFunction) {
  Program p;
  Dataset::Range(p, 0, 10).Map([&](const Outputs& x) {
    const Variable w(p, "w", {}, Zeros());
    return x;
  });
  EXPECT_THAT(std::string(p.status().message()),
              HasSubstr("variable 'map/function/w' is made inside of a branch or a loop, or in a "
                        "function"));
}

TEST(DatasetErrors, TheLineIsThatOfTheCall) {
  Program p;
  Dataset::Range(p, 0, 10).Batch(2).Take(-7);
  EXPECT_THAT(std::string(p.status().message()), HasSubstr(StrCat(":", __LINE__ - 1, ")")));
}

struct Reading {
  explicit Reading(const Dataset& dataset)
      : iterator(dataset), next(iterator.GetNext()), line(__LINE__) {
    session = *Session::New(dataset.graph());
    const Status started = session->Execute(iterator.initializer());
    EXPECT_TRUE(started.ok()) << started;
  }
  Status Next(const RunOptions& options = {.timeout_ms = 20'000}) {
    return session->Run({}, {next.begin(), next.end()}, {}, options).status();
  }

  Iterator iterator;
  Outputs next;
  int line;
  std::unique_ptr<Session> session;
};

// The error of a failed step names the node of the function and its line. The next step gets the
// next element.
TEST(DatasetErrors, AnElementThatFails) {
  Program p;
  const auto divide = [](const Outputs& x) {
    const Output divisor = x[0] - 1000;
    return Outputs{x[0] / divisor};
  };
  const int line = __LINE__ - 2;
  const Dataset numbers = Dataset::Range(p, 999, 1002);
  const Dataset nested =
      numbers.FlatMap([&](const Outputs& x) { return Dataset::Tensors(p, {x[0]}).Map(divide); });
  for (const Dataset& dataset : {numbers.Map(divide), nested}) {
    Reading reading(dataset);
    EXPECT_TRUE(reading.Next().ok());
    const Status failed = reading.Next();
    EXPECT_EQ(failed.code(), StatusCode::kInvalidArgument) << failed;
    EXPECT_THAT(std::string(failed.message()),
                AllOf(HasSubstr("map/function/FloorDiv"),
                      HasSubstr(StrCat("dataset_errors_test.cc:", line, ")"))));
    EXPECT_TRUE(reading.Next().ok());
    EXPECT_EQ(reading.Next().code(), StatusCode::kOutOfRange);
  }
}

TEST(DatasetErrors, AFileThatIsMissing) {
  Program p;
  Reading reading(Dataset::TFRecords(p, {"/nowhere/to/be/found"}));
  const Status failed = reading.Next();
  EXPECT_EQ(failed.code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(failed.message()),
              AllOf(HasSubstr("/nowhere/to/be/found"),
                    HasSubstr(StrCat("dataset_errors_test.cc:", reading.line, ")"))));
}

double SecondsOf(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// A dataset whose function waits for a queue that nothing fills.
Dataset Waiting(Program& p, bool prefetch) {
  const Output queue =
      CallIn(p, "FIFOQueueV2", {}, {{"component_types", std::vector<DType>{DType::kInt64}}});
  const Dataset waiting = Dataset::Range(p, 0, 3).Map([&](const Outputs&) {
    return CallN("QueueDequeueV2", {queue},
                 {{"component_types", std::vector<DType>{DType::kInt64}}});
  });
  return prefetch ? waiting.Prefetch(1) : waiting;
}

TEST(DatasetErrors, AStepThatWaitsIsCancelled) {
  for (const bool prefetch : {false, true}) {
    Program p;
    Reading reading(Waiting(p, prefetch));
    Cancellation cancellation;
    std::thread cancels([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      cancellation.Cancel(Cancelled("told to"));
    });
    Status status;
    const double seconds = SecondsOf(
        [&] { status = reading.Next({.timeout_ms = 60'000, .cancellation = &cancellation}); });
    cancels.join();
    EXPECT_EQ(status.code(), StatusCode::kCancelled) << status;
    EXPECT_LT(seconds, 10);
    // Closing the session ends the thread that reads ahead, which still waits.
    EXPECT_LT(SecondsOf([&] { reading.session = nullptr; }), 10);
  }
}

TEST(DatasetErrors, AStepThatWaitsReachesItsTimeout) {
  Program p;
  Reading reading(Waiting(p, /*prefetch=*/true));
  Status status;
  EXPECT_LT(SecondsOf([&] { status = reading.Next({.timeout_ms = 100}); }), 10);
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
}

}  // namespace
}  // namespace penstock::client

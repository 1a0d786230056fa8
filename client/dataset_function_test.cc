// SPDX-License-Identifier: Apache-2.0
//
// Tests the functions of datasets: the nodes that they may contain, and that their nodes are not in
// the program's graph.
#include "client/control_flow.h"
#include "client/dataset.h"
#include "client/program.h"
#include "client/testing/dataset_elements.h"
#include "core/op/gradient.h"
#include "gmock/gmock.h"

namespace penstock::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> Expect(int64_t count, const std::function<int64_t(int64_t)>& fn) {
  std::vector<std::string> texts;
  for (int64_t i = 0; i < count; ++i) texts.push_back(Tensor::Scalar(fn(i)).ToString());
  return texts;
}

TEST(DatasetFunction, MapsInOrder) {
  Program p;
  const auto square = [](const Outputs& x) { return Outputs{x[0] * x[0] + 1}; };
  const auto expected = Expect(50, [](int64_t x) { return x * x + 1; });
  EXPECT_EQ(DatasetElements(Dataset::Range(p, 0, 50).Map(square)), expected);
  for (const int64_t calls : {-1, 1, 4}) {
    EXPECT_EQ(DatasetElements(Dataset::Range(p, 0, 50).ParallelMap(square, calls)), expected);
  }
}

// Numbers of components, types and shapes may change. A function may return its arguments, and the
// same tensor twice.
TEST(DatasetFunction, ChangesTheComponents) {
  Program p;
  const Dataset mapped = Dataset::Range(p, 3, 5).Map([](const Outputs& x) {
    const Output y = Cast(x[0], DType::kFloat);
    return Outputs{Pack({y, y + 1}), x[0], y, y};
  });
  EXPECT_THAT(mapped.types(),
              ElementsAre(DType::kFloat, DType::kInt64, DType::kFloat, DType::kFloat));
  EXPECT_THAT(mapped.shapes()[0], PartialShape({2}));
  EXPECT_THAT(DatasetElements(mapped),
              ElementsAre("float[2] 3 4; int64[] 3; float[] 3; float[] 3",
                          "float[2] 4 5; int64[] 4; float[] 4; float[] 4"));
  const Dataset swapped = mapped.Map([](const Outputs& x) { return Outputs{x[1], x[0]}; });
  EXPECT_THAT(DatasetElements(swapped),
              ElementsAre("int64[] 3; float[2] 3 4", "int64[] 4; float[2] 4 5"));
}

// Constants are copied, other tensors are captured when the iterator is initialised. Variables are
// read for each element.
TEST(DatasetFunction, UsesWhatIsOutside) {
  Program p;
  const Variable w(p, "w", {}, Zeros(), {.dtype = DType::kInt64});
  const Output fed =
      CallIn(p, "Placeholder", {}, {{"dtype", DType::kInt64}, {"shape", PartialShape::Scalar()}});
  const Output hundred = Int64(p, 100);
  const Dataset sums = Dataset::Range(p, 0, 9).Map([&](const Outputs& x) {
    return Outputs{x[0] + hundred + fed + w, fed, hundred};
  });
  const Iterator iterator(sums);
  const Outputs next = iterator.GetNext();
  const Output more = w.AssignAdd(Int64(p, 10000));
  const auto session = Session::New(p);
  ASSERT_TRUE((*session)->Execute(w.initializer()).ok());
  ASSERT_TRUE(
      (*session)->Execute(iterator.initializer(), {{fed, Tensor::Scalar<int64_t>(5000)}}).ok());
  const auto sum = [&] { return (*session)->Fetch(next[0])->scalar<int64_t>(); };
  EXPECT_EQ(sum(), 5100);
  EXPECT_EQ(sum(), 5101);
  ASSERT_TRUE((*session)->Execute(more).ok());
  EXPECT_EQ(sum(), 15102);
  const auto others = (*session)->Run({next[1], next[2]});
  EXPECT_EQ((*others)[0].scalar<int64_t>(), 5000);
  EXPECT_EQ((*others)[1].scalar<int64_t>(), 100);
}

// Nodes may have a control edge from an argument, whether they also use another argument or none.
TEST(DatasetFunction, WaitsForItsArguments) {
  Program p;
  const Dataset numbers = Dataset::Range(p, 0, 5);
  const Dataset sums = Dataset::Zip(p, {numbers, numbers}).Map([&](const Outputs& x) {
    const auto after = p.ControlDependencies({x[0]});
    return Outputs{x[1] + Int64(p, 10)};
  });
  EXPECT_EQ(DatasetElements(sums), Expect(5, [](int64_t i) { return i + 10; }));
}

TEST(DatasetFunction, HasConditionalsAndLoops) {
  Program p;
  const Output limit = Int64(p, 1000) + Int64(p, 0);
  const Dataset powers = Dataset::Range(p, 2, 6).Map([&](const Outputs& x) {
    const Outputs last = While(
        p, {Int64(p, 1)}, [&](const Outputs& v) { return Less(v[0], limit); },
        [&](const Outputs& v) { return Outputs{v[0] * x[0]}; });
    const Output even = Equal(Call("FloorMod", {x[0], Int64(p, 2)}), Int64(p, 0));
    return Cond(
        p, even, [&] { return Outputs{last[0]}; }, [&] { return Outputs{-last[0]}; });
  });
  EXPECT_EQ(DatasetElements(powers), Expect(4, [](int64_t i) {
              int64_t v = 1;
              while (v < 1000) v *= i + 2;
              return i % 2 == 0 ? v : -v;
            }));
}

TEST(DatasetFunction, Filters) {
  Program p;
  const Output three = Int64(p, 3);
  const Dataset filtered = Dataset::Range(p, 0, 10).Filter([&](const Outputs& x) {
    return Equal(Call("FloorMod", {x[0], three}), Int64(p, 0));
  });
  EXPECT_EQ(DatasetElements(filtered), Expect(4, [](int64_t i) { return 3 * i; }));
}

// A function inside a function: the inner one captures an argument of the outer one, and a tensor
// from outside both.
TEST(DatasetFunction, MakesDatasets) {
  Program p;
  const Output fed = Call("Identity", {Int64(p, 7)});
  const auto row = [&](const Outputs& x) {
    return Dataset::Range(p, 0, 3).Map(
        [&](const Outputs& y) { return Outputs{x[0] * 10 + y[0] + fed}; });
  };
  const Dataset numbers = Dataset::Range(p, 0, 4);
  EXPECT_EQ(DatasetElements(numbers.FlatMap(row)),
            Expect(12, [](int64_t i) { return i / 3 * 10 + i % 3 + 7; }));
  for (const int64_t calls : {0, -1, 2}) {
    const Dataset turns = numbers.Interleave(row, {.cycle_length = 4, .num_parallel_calls = calls});
    EXPECT_EQ(DatasetElements(turns), Expect(12, [](int64_t i) { return i % 4 * 10 + i / 4 + 7; }));
  }
  const Dataset blocks = numbers.Interleave(row, {.cycle_length = 2, .block_length = 3});
  EXPECT_EQ(DatasetElements(blocks), Expect(12, [](int64_t i) { return i / 3 * 10 + i % 3 + 7; }));
}

// The nodes of functions are not in the graph of the program.
TEST(DatasetFunction, ItsNodesAreNotInTheGraph) {
  Program p;
  const Dataset mapped =
      Dataset::Range(p, 0, 3).Map([](const Outputs& x) { return Outputs{Square(x[0])}; });
  for (const Node* node : p.graph().nodes()) {
    EXPECT_NE(node->op_name(), "Square");
    EXPECT_NE(node->op_name(), "PlaceholderV2");
  }
  EXPECT_TRUE(p.graph().Validate().ok());
  EXPECT_EQ(DatasetElements(mapped), Expect(3, [](int64_t x) { return x * x; }));
}

TEST(DatasetFunction, WhatIsLeftToChanceIsNotRepeatable) {
  Program p;
  const auto draw = [&](int64_t seed) {
    return [&p, seed](const Outputs& x) {
      const Output shape = Constant(p, Tensor::Vector<int32_t>({2}));
      return Outputs{
          CallIn(p, "RandomUniform", {shape}, {{"dtype", DType::kFloat}, {"seed", seed}})};
    };
  };
  const Dataset numbers = Dataset::Range(p, 0, 3);
  const auto why = [](const Dataset& dataset) {
    return std::string(dataset.Batch(2).Repeat().repeatable().message());
  };
  EXPECT_EQ(why(numbers.Shuffle(3, 1).Map(draw(1)).Prefetch()), "");
  EXPECT_THAT(why(numbers.Shuffle(3)), HasSubstr("ShuffleDataset' has no seed"));
  EXPECT_THAT(why(numbers.Map(draw(0))), HasSubstr("RandomUniform' (RandomUniform) has no seed"));
  EXPECT_THAT(why(numbers.ParallelMap(draw(1))), HasSubstr("called in parallel"));
  const auto identity = [](const Outputs& x) { return x; };
  const Dataset drawn = numbers.Map(draw(1)).ParallelMap(identity);
  EXPECT_EQ(why(drawn), "");
  const auto made_before = [&](const Outputs&) { return drawn; };
  EXPECT_EQ(why(numbers.FlatMap(made_before)), "");
  EXPECT_THAT(why(numbers.Interleave(made_before, {.num_parallel_calls = 2})),
              HasSubstr("called in parallel"));
  EXPECT_THAT(why(Dataset::Zip(p, {numbers, numbers.Shuffle(3)})), HasSubstr("has no seed"));
  EXPECT_THAT(why(numbers.Concatenate(numbers.Shuffle(3))), HasSubstr("has no seed"));
  const auto nested = [&](const Outputs&) { return numbers.Map(draw(1)); };
  EXPECT_EQ(why(numbers.FlatMap(nested)), "");
  EXPECT_EQ(why(numbers.Interleave(nested)), "");
  EXPECT_THAT(why(numbers.Interleave(nested, {.num_parallel_calls = 2})),
              HasSubstr("called in parallel"));
}

}  // namespace
}  // namespace penstock::client

// SPDX-License-Identifier: Apache-2.0
//
// Tests lookups against TensorFlow's results (testdata/make_testdata.py), for tables of one to
// three parts with both strategies; and gradients with respect to the weights against finite
// differences.
#include "client/embedding/lookup.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>

#include "client/gradients.h"
#include "client/session.h"
#include "core/op/gradient.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using testing::HasSubstr;
using Values = std::vector<double>;

constexpr int64_t kLookupRows = 7, kLookupDepth = 2;
const std::vector<int64_t> kExamples = {0, 0, 2, 2, 2, 3};
const std::vector<int64_t> kIds = {6, 1, 3, 3, 0, 1};
const Values kWeights = {0.5, 2, 1.5, -0.25, 1, 3};
const std::vector<int64_t> kSplits = {0, 2, 2, 5, 6};

double TableAt(int64_t row, int64_t column) {
  return 2 * std::sin(1.7 * static_cast<double>(row) + 0.9 * static_cast<double>(column));
}

struct Layout {
  int parts;
  PartitionStrategy strategy;
  bool ref = false;

  // Returns the id of row `row` of part `part`; `start` is the part's first row in the table.
  int64_t IdOf(int64_t start, int part, int64_t row) const {
    return strategy == PartitionStrategy::kMod ? row * parts + part : start + row;
  }
};

class LookupTest : public testing::TestWithParam<Layout> {
 protected:
  LookupTest()
      : table(program, "table", {kLookupRows, kLookupDepth}, RowsOfTheTable(),
              {.parts = GetParam().parts,
               .strategy = GetParam().strategy,
               .variable = {.dtype = DType::kDouble, .ref = GetParam().ref}}) {}

  // Initialises each row with the values of the id that the strategy puts there.
  Initializer RowsOfTheTable() {
    return [this](GraphSink& sink, DType, const InitialShape& shape) {
      const int part = next_part_++;
      Values values;
      for (int64_t row = 0; row < shape.shape.dim(0); ++row) {
        const int64_t id = GetParam().IdOf(shape.start, part, row);
        for (int64_t column = 0; column < kLookupDepth; ++column) {
          values.push_back(TableAt(id, column));
        }
      }
      return Constant(sink, Tensor::Of<double>(shape.shape, values));
    };
  }

  Output Longs(const std::vector<int64_t>& values) {
    return Constant(program, Tensor::Vector<int64_t>(values));
  }
  IdLists SparseLists() {
    std::vector<int64_t> indices;
    for (const int64_t example : kExamples) indices.insert(indices.end(), {example, 0});
    return IdLists::FromSparse(Constant(program, Tensor::Of<int64_t>({6, 2}, indices)), Longs(kIds),
                               Longs({4, 3}));
  }
  Output Weights() { return Constant(program, Tensor::Vector<double>(kWeights)); }

  void Start() {
    auto made = Session::New(program);
    ASSERT_TRUE(made.ok()) << made.status();
    session = *std::move(made);
    const Status initialized = session->Execute(program.Initialize(program.globals()));
    ASSERT_TRUE(initialized.ok()) << initialized;
  }
  StatusOr<Values> Fetch(Output output) {
    ASSIGN_OR_RETURN(const Tensor tensor, session->Fetch(output));
    const auto flat = tensor.flat<double>();
    return Values(flat.begin(), flat.end());
  }
  // Returns d(sum of squares of `rows`) / d(table), by part.
  std::vector<Gradient> TableGradients(Output rows) {
    const Output loss = Sum(Square(rows), Constant(program, Tensor::Vector<int32_t>({0, 1})));
    Outputs handles;
    for (const Variable& part : table.parts()) handles.push_back(part.handle());
    return Gradients(program, {loss}, handles);
  }
  Values ById(const std::vector<Gradient>& gradients) {
    Values by_id(kLookupRows * kLookupDepth);
    for (size_t part = 0; part < gradients.size(); ++part) {
      const auto values = Fetch(Dense(gradients[part]));
      EXPECT_TRUE(values.ok()) << values.status();
      for (int64_t row = 0; values.ok() && row * kLookupDepth < std::ssize(*values); ++row) {
        const int64_t id = GetParam().IdOf(table.starts()[part], static_cast<int>(part), row);
        for (int c = 0; c < kLookupDepth; ++c)
          by_id[id * kLookupDepth + c] = (*values)[row * kLookupDepth + c];
      }
    }
    return by_id;
  }

  Program program;
  int next_part_ = 0;
  PartitionedVariable table;
  std::unique_ptr<Session> session;
};

INSTANTIATE_TEST_SUITE_P(
    Layouts, LookupTest,
    testing::Values(Layout{1, PartitionStrategy::kDiv}, Layout{2, PartitionStrategy::kDiv},
                    Layout{3, PartitionStrategy::kDiv}, Layout{3, PartitionStrategy::kDiv, true},
                    Layout{2, PartitionStrategy::kMod}, Layout{3, PartitionStrategy::kMod}),
    [](const auto& info) {
      const Layout& layout = info.param;
      return StrCat(layout.strategy == PartitionStrategy::kMod ? "Mod" : "Div", layout.parts,
                    layout.ref ? "Reference" : "");
    });

// Calls EXPECT_NEAR for each element.
void ExpectNear(const StatusOr<Values>& values, const Values& want, double tolerance) {
  ASSERT_TRUE(values.ok()) << values.status();
  ASSERT_EQ(values->size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR((*values)[i], want[i], tolerance) << i;
}

TEST_P(LookupTest, RowsComeInTheShapeOfTheIds) {
  const std::vector<int32_t> ids = {6, 1, 3, 6, 0, 5};
  const Output rows = EmbeddingLookup(table, Constant(program, Tensor::Of<int32_t>({2, 3}, ids)));
  const Output none = EmbeddingLookup(table, Constant(program, Tensor::Of<int64_t>({0, 3}, {})));
  Start();
  EXPECT_EQ(rows.shape(), PartialShape({2, 3, kLookupDepth}));
  Values want;
  for (const int32_t id : ids) {
    for (int c = 0; c < kLookupDepth; ++c) want.push_back(TableAt(id, c));
  }
  ExpectNear(Fetch(rows), want, 0);
  const auto empty = session->Fetch(none);
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_EQ(empty->shape(), Shape({0, 3, kLookupDepth}));
}

TEST_P(LookupTest, CombinationsAndGradientsAreTensorFlows) {
  const std::map<std::string, Combiner> combiners = {
      {"sum", Combiner::kSum}, {"mean", Combiner::kMean}, {"sqrtn", Combiner::kSqrtN}};
  const IdLists sparse = SparseLists();
  const IdLists ragged = IdLists::FromRagged(Longs(kIds), Longs(kSplits));
  std::ifstream file("client/embedding/testdata/tensorflow_lookups.txt");
  struct Case {
    std::string line;
    Output sparse, ragged;
    std::vector<Gradient> gradients;
    Values rows, by_id;
  };
  std::vector<Case> cases;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    double max_norm;
    std::string combiner;
    int weighted;
    words >> max_norm >> combiner >> weighted;
    Case c{.line = line,
           .rows = Values(4 * kLookupDepth),
           .by_id = Values(kLookupRows * kLookupDepth)};
    for (double& value : c.rows) words >> value;
    for (double& value : c.by_id) words >> value;
    ASSERT_TRUE(words) << line;
    const EmbeddingLookupSparseOptions options{.combiner = combiners.at(combiner),
                                               .weights = weighted ? Weights() : Output(),
                                               .max_norm = max_norm};
    c.sparse = EmbeddingLookupSparse(table, sparse, options);
    c.ragged = EmbeddingLookupSparse(table, ragged, options);
    c.gradients = TableGradients(c.sparse);
    cases.push_back(std::move(c));
  }
  ASSERT_EQ(cases.size(), 12u);
  Start();
  for (const Case& c : cases) {
    SCOPED_TRACE(c.line);
    ExpectNear(Fetch(c.sparse), c.rows, 1e-10);
    ExpectNear(Fetch(c.ragged), c.rows, 1e-10);
    for (const Gradient& g : c.gradients) EXPECT_TRUE(g.sparse());
    ExpectNear(ById(c.gradients), c.by_id, 1e-10);
  }
}

// The table is all zeros. There the gradient of a row's norm would be infinite.
TEST_P(LookupTest, ShorteningHasAGradientAtZero) {
  const Output rows = EmbeddingLookup(table, Longs({1, 1, 4}), {.max_norm = 1});
  const auto gradients = TableGradients(rows);
  Start();
  for (const Variable& part : table.parts()) {
    const Status zeroed = session->Execute(part.Assign(ZerosLike(part)));
    ASSERT_TRUE(zeroed.ok()) << zeroed;
  }
  ExpectNear(ById(gradients), Values(kLookupRows * kLookupDepth), 0);
}

TEST_P(LookupTest, EachRowOfAPartHasItsGradientOnce) {
  const auto gradients = TableGradients(EmbeddingLookup(table, Longs({5, 2, 5, 5, 2, 0})));
  Start();
  int64_t rows = 0;
  for (const Gradient& gradient : gradients) {
    const auto indices = session->Fetch(gradient.indices);
    ASSERT_TRUE(indices.ok()) << indices.status();
    rows += indices->num_elements();
  }
  EXPECT_EQ(rows, 3);
}

TEST_P(LookupTest, WeightsHaveTheSlopeOfTheDifferences) {
  const Output weights =
      CallIn(program, "Placeholder", {}, {{"dtype", DType::kDouble}, {"shape", PartialShape({6})}});
  Outputs losses, slopes;
  for (const Combiner combiner : {Combiner::kSum, Combiner::kMean, Combiner::kSqrtN}) {
    const Output rows =
        EmbeddingLookupSparse(table, SparseLists(), {.combiner = combiner, .weights = weights});
    losses.push_back(Sum(Square(rows), Constant(program, Tensor::Vector<int32_t>({0, 1}))));
    slopes.push_back(Gradients(program, {losses.back()}, {weights})[0].values);
  }
  Start();
  const auto at = [&](Output output, const Values& w) {
    const auto got = session->Run({{weights, Tensor::Vector<double>(w)}}, {output});
    EXPECT_TRUE(got.ok()) << got.status();
    const auto flat = (*got)[0].flat<double>();
    return Values(flat.begin(), flat.end());
  };
  for (size_t k = 0; k < losses.size(); ++k) {
    const Values slope = at(slopes[k], kWeights);
    for (size_t i = 0; i < kWeights.size(); ++i) {
      constexpr double kStep = 1e-5;
      Values above = kWeights, below = kWeights;
      above[i] += kStep;
      below[i] -= kStep;
      const double difference = (at(losses[k], above)[0] - at(losses[k], below)[0]) / (2 * kStep);
      EXPECT_NEAR(slope[i], difference, 1e-5 * std::max(1.0, std::abs(difference)))
          << k << " " << i;
    }
  }
}

TEST_P(LookupTest, TrailingExamplesWithoutIdsAreZeros) {
  const IdLists lists = IdLists::FromRagged(Longs({2}), Longs({0, 1, 1, 1}));
  const Output rows = EmbeddingLookupSparse(table, lists);
  Start();
  ExpectNear(Fetch(rows), {TableAt(2, 0), TableAt(2, 1), 0, 0, 0, 0}, 0);
}

TEST_P(LookupTest, IdsOutOfRangeFailTheStep) {
  for (const int64_t id : {int64_t{-1}, kLookupRows, kLookupRows + 1, int64_t{1} << 40,
                           std::numeric_limits<int64_t>::min()}) {
    const Output rows = EmbeddingLookup(table, Longs({1, id, 1}));
    Start();
    const auto fetched = Fetch(rows);
    EXPECT_EQ(fetched.status().code(), StatusCode::kInvalidArgument) << id << fetched.status();
    EXPECT_THAT(std::string(fetched.status().message()), HasSubstr("indices")) << fetched.status();
  }
}

TEST(LookupMistakes, BecomeTheProgramsError) {
  {
    Program program;
    const PartitionedVariable table(program, "t", {2, 3}, Zeros(), {.parts = 3});
    EmbeddingLookup(table, Constant(program, Tensor::Vector<int64_t>({0})));
    EXPECT_THAT(std::string(program.status().message()), HasSubstr("cannot have 3 parts"));
  }
  {
    Program program;
    const Variable scalar(program, "s", {}, Zeros());
    EmbeddingLookup(scalar, Constant(program, Tensor::Vector<int64_t>({0})));
    EXPECT_EQ(program.status().code(), StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace penstock::client

// SPDX-License-Identifier: Apache-2.0
//
// Tests gradients of the recurrent cells. The conformance test does not check them, because the ops
// have no double type. Compares with central differences of sums of the states.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/gradients/gradients.h"
#include "core/graph/builder.h"
#include "distributed/session/session.h"

namespace penstock {
namespace {

Tensor Wave(const Shape& shape, int seed) {
  Tensor t(DType::kFloat, shape);
  for (int64_t k = 0; k < shape.num_elements(); ++k) {
    t.mutable_data<float>()[k] =
        static_cast<float>(0.5 * std::sin(0.7 * static_cast<double>(k) + seed));
  }
  return t;
}

struct Cell {
  const char* op;
  std::vector<Shape> inputs;  // floats; BlockLSTM's seq_len_max comes before them
  Attrs attrs;
  std::vector<int> states;  // the outputs through which gradients flow
  int64_t steps = 0;        // seq_len_max, if > 0
};

class CellGradient : public testing::TestWithParam<Cell> {
 protected:
  // Returns the sum of the states' elements, each with a different weight.
  Output Loss(const Outputs& outputs) {
    Outputs terms;
    for (const int state : GetParam().states) {
      const Shape shape = outputs[state].shape().ToShape();
      const Output weighted = outputs[state] * Constant(b_, Wave(shape, state + 20));
      terms.push_back(Sum(Reshape(weighted, Constant(b_, Tensor::Vector<int32_t>({-1}))),
                          Constant(b_, Tensor::Vector<int32_t>({0}))));
    }
    return AddN(terms);
  }
  Tensor Value(SessionInterface& session, const Feeds& feeds, Output output) {
    std::vector<Tensor> values;
    CHECK_OK(session.Run({}, feeds, {output.name()}, {}, &values, nullptr));
    return values[0];
  }
  GraphBuilder b_;
};

TEST_P(CellGradient, IsThatOfCentralDifferences) {
  std::vector<NodeInput> inputs;
  if (GetParam().steps > 0) inputs.push_back(Constant(b_, Tensor::Scalar(GetParam().steps)));
  Outputs xs;
  Feeds feeds;
  for (const Shape& shape : GetParam().inputs) {
    xs.push_back(
        CallIn(b_, "Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape(shape)}}));
    inputs.push_back(xs.back());
    feeds.emplace_back(xs.back().name(), Wave(shape, static_cast<int>(xs.size())));
  }
  const Output loss = Loss(CallN(GetParam().op, inputs, GetParam().attrs));
  ASSERT_EQ(b_.status(), OkStatus());
  const auto gradients = AddGradients(b_, {loss}, xs);
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  const auto session = NewLocalSession({});
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_EQ((*session)->Extend(b_.graph()), OkStatus());
  constexpr float kStep = 1e-2f;
  for (size_t i = 0; i < xs.size(); ++i) {
    const Tensor gradient = Value(**session, feeds, (*gradients)[i].values);
    const Tensor x = feeds[i].second;
    ASSERT_EQ(gradient.shape(), x.shape());
    for (int64_t k = 0; k < x.num_elements(); ++k) {
      const auto loss_at = [&](float change) {
        feeds[i].second = x.Clone();
        feeds[i].second.mutable_data<float>()[k] += change;
        return Value(**session, feeds, loss).scalar<float>();
      };
      const float slope = (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep);
      EXPECT_NEAR(gradient.data<float>()[k], slope, 1e-3) << "input " << i << " [" << k << "]";
    }
    feeds[i].second = x;
  }
}

// Returns the shapes of the inputs for batch 2, 2 inputs and 3 cells.
std::vector<Shape> LstmInputs(const Shape& x) {
  return {x,          Shape({2, 3}), Shape({2, 3}), Shape({5, 12}),
          Shape({3}), Shape({3}),    Shape({3}),    Shape({12})};
}
const Attrs kPeephole = {{"use_peephole", true}, {"cell_clip", 0.0f}};

INSTANTIATE_TEST_SUITE_P(
    Cells, CellGradient,
    testing::Values(Cell{"LSTMBlockCell", LstmInputs({2, 2}), kPeephole, {1, 6}},
                    Cell{"BlockLSTM", LstmInputs({3, 2, 2}), kPeephole, {1, 6}, 3},
                    Cell{"BlockLSTMV2", LstmInputs({3, 2, 2}), kPeephole, {1, 6}, 2},
                    Cell{"GRUBlockCell",
                         {Shape({2, 2}), Shape({2, 3}), Shape({5, 6}), Shape({5, 3}), Shape({6}),
                          Shape({3})},
                         {},
                         {3}}));

}  // namespace
}  // namespace penstock

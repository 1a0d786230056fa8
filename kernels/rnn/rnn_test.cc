// SPDX-License-Identifier: Apache-2.0
//
// Compares the cells with TensorFlow's ops: each expected number is a digest of an output of
// TensorFlow's op for the same inputs.
#include <cmath>
#include <string>
#include <vector>

#include "core/op/testing/op_runner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr int64_t kBatch = 2, kInputs = 2, kCells = 3, kTime = 3, kSteps = 2;

Tensor Wave(const Shape& shape, int seed) {
  Tensor t(DType::kFloat, shape);
  for (int64_t k = 0; k < shape.num_elements(); ++k) {
    t.mutable_data<float>()[k] = static_cast<float>(0.5 * std::sin(0.7 * k + seed));
  }
  return t;
}
Tensor State(int seed) { return Wave({kBatch, kCells}, seed); }
Tensor States(int seed) { return Wave({kTime, kBatch, kCells}, seed); }

double Digest(const Tensor& t) {
  double sum = 0;
  for (int64_t k = 0; k < t.num_elements(); ++k) sum += t.data<float>()[k] * std::cos(1.0 * k);
  return sum;
}
std::vector<double> Digests(const StatusOr<std::vector<Tensor>>& outputs) {
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  std::vector<double> digests;
  if (outputs.ok()) {
    for (const Tensor& output : *outputs) digests.push_back(Digest(output));
  }
  return digests;
}
auto Near(const std::vector<double>& values) { return Pointwise(DoubleNear(2e-6), values); }

std::vector<Tensor> LstmInputs(Tensor x) {
  return {std::move(x),      State(2),
          State(3),          Wave({kInputs + kCells, 4 * kCells}, 4),
          Wave({kCells}, 5), Wave({kCells}, 6),
          Wave({kCells}, 7), Wave({4 * kCells}, 8)};
}
std::vector<Tensor> CellInputs() { return LstmInputs(Wave({kBatch, kInputs}, 1)); }
std::vector<Tensor> BlockInputs(int64_t steps = kSteps) {
  std::vector<Tensor> inputs = LstmInputs(Wave({kTime, kBatch, kInputs}, 1));
  inputs.insert(inputs.begin(), Tensor::Scalar(steps));
  return inputs;
}

StatusOr<std::vector<Tensor>> RunOp(const char* op, const std::vector<Tensor>& inputs,
                                    const Attrs& attrs = {}) {
  OpRunner run(op);
  for (const Tensor& input : inputs) run.In(input);
  for (const auto& [name, value] : attrs) run.Attr(name, value);
  return run.SetKnownInputs(OpRunner::Known::kNothing).Run();
}

TEST(LstmBlockCell, IsTensorFlows) {
  const auto cell = [](bool peephole, float clip) {
    return Digests(
        RunOp("LSTMBlockCell", CellInputs(), {{"use_peephole", peephole}, {"cell_clip", clip}}));
  };
  EXPECT_THAT(cell(false, 3), Near({-0.05126741, 0.7246199, -0.1664401, -0.05196099, -0.2643581,
                                    0.6924163, 0.3864627}));
  EXPECT_THAT(cell(false, 0.2f), Near({-0.05126741, 0.4271377, -0.1664401, -0.05196099, -0.2643581,
                                       0.4220428, 0.2369972}));
  EXPECT_THAT(cell(true, 3), Near({-0.1817875, 0.7501597, -0.1788805, 0.02013238, -0.2643581,
                                   0.7167902, 0.3768432}));
  EXPECT_THAT(cell(true, 0.2f), Near({-0.1817875, 0.4431232, -0.1788805, -0.01203446, -0.2643581,
                                      0.437823, 0.241233}));
}

TEST(LstmBlockCell, GradientIsTensorFlows) {
  std::vector<Tensor> inputs = CellInputs();
  for (int seed = 9; seed <= 16; ++seed) inputs.push_back(State(seed));
  EXPECT_THAT(Digests(RunOp("LSTMBlockCellGrad", inputs, {{"use_peephole", false}})),
              Near({0.09135178, -0.3751517, 0, 0, 0}));
  EXPECT_THAT(Digests(RunOp("LSTMBlockCellGrad", inputs, {{"use_peephole", true}})),
              Near({0.160074, -0.3778822, -0.04088238, -0.08953535, -0.008316575}));
}

std::vector<double> FirstSteps(const char* op, bool peephole) {
  auto outputs = RunOp(op, BlockInputs(), {{"use_peephole", peephole}});
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  for (Tensor& output : *outputs) {
    const Tensor rest = output.Slice(kSteps, kTime);
    EXPECT_EQ(Digest(rest), 0);
    output = output.Slice(0, kSteps);
  }
  return Digests(outputs);
}

TEST(BlockLstm, IsTensorFlows) {
  EXPECT_THAT(FirstSteps("BlockLSTM", false),
              Near({-0.1648999, 1.21369, -0.2363727, -0.1666628, -0.3887123, 1.08883, 0.642499}));
  EXPECT_THAT(FirstSteps("BlockLSTM", true), Near({-0.3582745, 1.272612, -0.2474149, -0.03746604,
                                                   -0.3982321, 1.141887, 0.6090497}));
  EXPECT_THAT(FirstSteps("BlockLSTMV2", false),
              Near({-0.174273, 1.00953, -0.3090192, -0.175941, 0.300307, 0.9851238, 0.5980053}));
  EXPECT_THAT(FirstSteps("BlockLSTMV2", true), Near({-0.3660418, 1.022993, -0.3233379, -0.07956807,
                                                     0.2996349, 0.9965482, 0.5940513}));
}

std::vector<double> BlockGradient(const char* op, bool peephole) {
  std::vector<Tensor> inputs = BlockInputs();
  for (int seed = 9; seed <= 17; ++seed) inputs.push_back(States(seed));
  return Digests(RunOp(op, inputs, {{"use_peephole", peephole}}));
}

TEST(BlockLstm, GradientIsTensorFlows) {
  EXPECT_THAT(BlockGradient("BlockLSTMGrad", false),
              Near({-0.00278527, 0.06933741, -0.06142502, -0.05988823, 0, 0, 0, -0.4326515}));
  EXPECT_THAT(BlockGradient("BlockLSTMGrad", true),
              Near({-0.01587481, 0.08362308, -0.06792939, -0.09628035, -0.01411723, -0.006648588,
                    -0.03165472, -0.4695841}));
  EXPECT_THAT(BlockGradient("BlockLSTMGradV2", false),
              Near({-0.3472239, 0.07708346, 0.06568098, -0.7427814, 0, 0, 0, -0.01511642}));
  EXPECT_THAT(BlockGradient("BlockLSTMGradV2", true),
              Near({-0.3459851, 0.08563198, 0.0741804, -0.7044543, -0.007078904, 0.003128553,
                    -0.02169659, 0.03078609}));
}

std::vector<Tensor> GruInputs() {
  return {Wave({kBatch, kInputs}, 1),
          State(2),
          Wave({kInputs + kCells, 2 * kCells}, 3),
          Wave({kInputs + kCells, kCells}, 4),
          Wave({2 * kCells}, 5),
          Wave({kCells}, 6)};
}

TEST(GruBlockCell, IsTensorFlows) {
  EXPECT_THAT(Digests(RunOp("GRUBlockCell", GruInputs())),
              Near({-0.1326232, -0.1349617, -0.1079211, 0.6869753}));
}

TEST(GruBlockCell, GradientIsTensorFlows) {
  std::vector<Tensor> inputs = GruInputs();
  for (int seed = 7; seed <= 10; ++seed) inputs.push_back(State(seed));
  EXPECT_THAT(Digests(RunOp("GRUBlockCellGrad", inputs)),
              Near({0.03628997, -0.3142456, 0.1397632, -0.002879537}));
}

std::string Mistake(const char* op, const std::vector<Tensor>& inputs) {
  return std::string(RunOp(op, inputs).status().message());
}

TEST(Cells, MistakesAreNamed) {
  std::vector<Tensor> inputs = CellInputs();
  inputs[3] = Wave({4, 12}, 1);
  EXPECT_THAT(Mistake("LSTMBlockCell", inputs), HasSubstr("w must have shape [5,12], has [4,12]"));
  inputs = CellInputs();
  inputs[4] = Wave({2}, 1);
  EXPECT_THAT(Mistake("LSTMBlockCell", inputs), HasSubstr("wci must have shape [3]"));
  EXPECT_THAT(Mistake("BlockLSTM", BlockInputs(4)), HasSubstr("between 0 and 3"));
  EXPECT_THAT(Mistake("BlockLSTMV2", BlockInputs(-1)), HasSubstr("seq_len_max"));
  inputs = GruInputs();
  inputs[4] = Wave({3}, 1);
  EXPECT_THAT(Mistake("GRUBlockCell", inputs), HasSubstr("b_ru must have shape [6]"));
}

}  // namespace
}  // namespace penstock

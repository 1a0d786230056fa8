// SPDX-License-Identifier: Apache-2.0
//
// Tests the cells against the numbers of TensorFlow's dynamic_rnn with BasicLSTMCell, GRUCell and
// BasicRNNCell, on the same weights and inputs: outputs, last states, and the gradient of
// sum(outputs^2) + sum(states) with respect to the inputs and the first elements of each weight.
#include "client/rnn.h"

#include <gmock/gmock.h>

#include "client/testing/flow_test_program.h"

namespace penstock::client {
namespace {

using testing::DoubleNear;
using testing::Pointwise;

// Returns numbers with a period of 13.
Tensor Weights(const Shape& shape, int k) {
  Tensor t(DType::kDouble, shape);
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    t.mutable_data<double>()[i] = static_cast<double>((i * 7 + k) % 13 - 6) / 10;
  }
  return t;
}

const RnnCellOptions kDouble = {.dtype = DType::kDouble};

class Rnn : public FlowTest {
 protected:
  void SetWeights() {
    int k = 0;
    for (const Variable& v : program_.trainable()) {
      const Output set = v.Assign(Constant(program_, Weights(v.shape().ToShape(), k++)));
      setters_.push_back(set);
    }
  }
  std::vector<double> Numbers(Output output) {
    for (const Output& set : std::exchange(setters_, {})) {
      if (session_ == nullptr) session_ = *Session::New(program_, "");
      EXPECT_TRUE(session_->Execute(set).ok());
    }
    const Tensor value = Value(output);
    if (!value.valid()) return {};
    return {value.data<double>(), value.data<double>() + value.num_elements()};
  }
  void ExpectNumbers(Output output, std::vector<double> wanted, size_t count = 0) {
    std::vector<double> found = Numbers(output);
    if (count > 0) found.resize(count);
    EXPECT_THAT(found, Pointwise(DoubleNear(1e-12), wanted)) << output.name();
  }
  Output Loss(const RnnOutputs& rnn) {
    Output loss = Total(Square(rnn.outputs));
    for (const Output& state : rnn.state) loss = loss + Total(state);
    return loss;
  }

  const Tensor input_ = Weights({2, 4, 3}, 3);
  Outputs setters_;
};

struct Golden {
  std::vector<double> outputs;
  std::vector<std::vector<double>> states;
  std::vector<double> input_gradient;
  std::vector<std::vector<double>> weight_gradients;
};

const Golden kLstm = {
    {-0.0599525738619693, 0.16069561067139632, -0.10963977900312126, 0.22425136250995142,
     -0.11747376167756252, 0.20242730114291693, -0.123375933763908, 0.26226672533389406,
     -0.06532889388961055, 0.019406182682825287, -0.10091691811980043, 0.1805901712533362, 0, 0, 0,
     0},
    {{-0.2785138821597686, 0.5540794719495894, -0.21736471427374504, 0.34982326983577244},
     {-0.123375933763908, 0.26226672533389406, -0.10091691811980043, 0.1805901712533362}},
    {0.20441614773510564,
     0.6414265857329202,
     -0.3579961929942096,
     0.21822199430052283,
     0.5241337601460868,
     -0.31775966144421464,
     0.11352201822739957,
     0.4111397858136473,
     -0.20201698246177976,
     0.12480346108185875,
     0.35994418604109635,
     -0.26303048752930197,
     0.05884026886384552,
     0.4229447802595407,
     -0.1547583305392337,
     0.08488844916688584,
     0.45117854372596583,
     -0.2403754421074087,
     0,
     0,
     0,
     0,
     0,
     0},
    {{0.027702132777458373, -0.14112905546953303, -0.22784419083027},
     {-0.3564426474256984, 0.7622349704329785, 1.609081485324301}}};

const Golden kGru = {
    {-0.14917422967878652, 0.1523770693299632, -0.39712808446727876, 0.3025625383437307,
     -0.24712943709429175, 0.17049536146848893, -0.1514458176747885, 0.0940673095967748,
     -0.24180844471748125, 0.1969971792757179, -0.2937306456624561, 0.2565656223157123, 0, 0, 0, 0},
    {{-0.1514458176747885, 0.0940673095967748, -0.2937306456624561, 0.2565656223157123}},
    {0.19975998555077512,
     0.1857761251304675,
     0.17179226471015988,
     0.2105548087138453,
     0.16034090458077335,
     0.11012700044770143,
     0.13394171742951108,
     0.17022700125173773,
     0.20651228507396435,
     0.054147002148694466,
     0.14425594290032362,
     0.23436488365195263,
     0.1146180334440948,
     0.1065343195267701,
     0.09845060560944541,
     0.05839631161279751,
     0.11624212725947822,
     0.17408794290615887,
     0,
     0,
     0,
     0,
     0,
     0},
    {{0.010171390049515776, 0.008192114164863804, -0.014009341078234388},
     {-0.059372594371957146, -0.04820279708227558, -0.12701244757851354},
     {-0.3572165895496201, -0.292579565623358, 0.16166258048777643},
     {-0.13795932745839712, 2.2462628245496745}}};

const Golden kBasic = {
    {-0.41364444218713514, 0.18774620586828547, -0.717976450114864, 0.32606193022655733,
     -0.08957868744326047, -0.014158668699326851, -0.10984958401376615, 0.027082566382430135,
     -0.5979820004989413, 0.28213481266963425, -0.4357984038177995, 0.15071757221735554, 0, 0, 0,
     0},
    {{-0.10984958401376615, 0.027082566382430135, -0.4357984038177995, 0.15071757221735554}},
    {0.2550407386223215,
     0.31033564906158706,
     0.36563055950085255,
     0.4518319912302312,
     0.4622331019091108,
     0.4726342125879904,
     0.027905564334095155,
     0.0634034439722169,
     0.09890132361033865,
     -0.3571918034425125,
     -0.17476410997234512,
     0.007663583497822257,
     0.3854676313029509,
     0.4478672347019762,
     0.5102668381010014,
     0.06477710646863641,
     0.20236599122664434,
     0.3399548759846523,
     0,
     0,
     0,
     0,
     0,
     0},
    {{-0.7744060061516443, -0.33959059844153155, 0.2870565207112804},
     {-0.4917444944746504, 5.327845318309325}}};

class RnnGolden : public Rnn {
 protected:
  // Checks outputs, states and gradients of a cell, for an input whose shape is `known` when the
  // graph is built (-1: an unknown dimension).
  void Check(const RnnCell& cell, const Golden& golden, const PartialShape& known) {
    const Output x =
        CallIn(program_, "Placeholder", {}, {{"dtype", DType::kDouble}, {"shape", known}});
    feeds_.push_back({x, input_});
    const Output lengths = Input(Tensor::Vector<int32_t>({4, 2}));
    const RnnOutputs rnn = DynamicRnn(program_, cell, x, {.lengths = lengths});
    ASSERT_TRUE(program_.status().ok()) << program_.status();
    Outputs xs = {x};
    for (const Variable& v : program_.trainable()) xs.push_back(v.handle());
    const auto gradients = Gradients(program_, {Loss(rnn)}, xs);
    SetWeights();
    ASSERT_TRUE(program_.status().ok()) << program_.status();
    ExpectNumbers(rnn.outputs, golden.outputs);
    for (size_t i = 0; i < rnn.state.size(); ++i) ExpectNumbers(rnn.state[i], golden.states[i]);
    ExpectNumbers(Dense(gradients[0]), golden.input_gradient);
    for (size_t i = 1; i < xs.size(); ++i) {
      const std::vector<double>& wanted = golden.weight_gradients[i - 1];
      ExpectNumbers(Dense(gradients[i]), wanted, wanted.size());
    }
  }
};

TEST_F(RnnGolden, Lstm) { Check(LstmCell(program_, "cell", 3, 2, kDouble), kLstm, {2, 4, 3}); }
TEST_F(RnnGolden, Gru) { Check(GruCell(program_, "cell", 3, 2, kDouble), kGru, {2, 4, 3}); }
TEST_F(RnnGolden, Basic) {
  Check(BasicRnnCell(program_, "cell", 3, 2, kDouble), kBasic, {2, 4, 3});
}
TEST_F(RnnGolden, LstmOfAnyBatchAndTime) {
  Check(LstmCell(program_, "cell", 3, 2, kDouble), kLstm, {-1, -1, 3});
}
TEST_F(RnnGolden, GruOfAnyBatchAndTime) {
  Check(GruCell(program_, "cell", 3, 2, kDouble), kGru, {-1, -1, 3});
}

TEST_F(Rnn, TimeMajorAndInitialState) {
  const LstmCell cell(program_, "cell", 3, 2, kDouble);
  const Output x = Input(Weights({4, 2, 3}, 1));
  const Output c = Input(Weights({2, 2}, 5)), h = Input(Weights({2, 2}, 2));
  const RnnOutputs rnn =
      DynamicRnn(program_, cell, x, {.initial_state = {c, h}, .time_major = true});
  // The same network, computed step by step.
  const RnnFunction step = cell.Read();
  Outputs state = {c, h}, outputs;
  const Outputs inputs = CallN("Unpack", {x}, {{"num", 4}});
  for (int t = 0; t < 4; ++t) {
    const RnnStep each = step(inputs[t], state);
    outputs.push_back(each.output);
    state = each.state;
  }
  const auto rolled = Gradients(program_, {Loss(rnn)}, {x, c, h});
  const auto unrolled = Gradients(program_, {Loss({Pack(outputs), state})}, {x, c, h});
  SetWeights();
  ASSERT_TRUE(program_.status().ok()) << program_.status();
  ExpectNumbers(rnn.outputs, Numbers(Pack(outputs)));
  for (int i = 0; i < 2; ++i) ExpectNumbers(rnn.state[i], Numbers(state[i]));
  for (int i = 0; i < 3; ++i) ExpectNumbers(rolled[i].values, Numbers(unrolled[i].values));
}

TEST_F(Rnn, StepsThatNoRowNeedsAreNotTaken) {
  const auto first = std::make_shared<GruCell>(program_, "one", 3, 4, kDouble);
  const auto second = std::make_shared<LstmCell>(program_, "two", 4, 2, kDouble);
  const StackedCell cell({first, second});
  const Output x = Input(input_);
  const Output lengths = Input(Tensor::Vector<int32_t>({2, 1}));
  const RnnOutputs rnn = DynamicRnn(program_, cell, x, {.lengths = lengths});
  ASSERT_EQ(rnn.state.size(), 3u);
  const Output dx = Gradients(program_, {Loss(rnn)}, {x})[0].values;
  SetWeights();
  ASSERT_TRUE(program_.status().ok()) << program_.status();
  const std::vector<double> outputs = Numbers(rnn.outputs), gradient = Numbers(dx);
  EXPECT_NE(outputs[3], 0);
  for (size_t i = 4; i < 8; ++i) EXPECT_EQ(outputs[i], 0);
  EXPECT_NE(outputs[8], 0);
  for (size_t i = 10; i < 16; ++i) EXPECT_EQ(outputs[i], 0);
  EXPECT_NE(gradient[5], 0);
  for (size_t i = 6; i < 12; ++i) EXPECT_EQ(gradient[i], 0);
  Feed(lengths, Tensor::Vector<int32_t>({0, 0}));
  for (const double each : Numbers(rnn.outputs)) EXPECT_EQ(each, 0);
  for (const double each : Numbers(dx)) EXPECT_EQ(each, 0);
}

TEST_F(Rnn, Mistakes) {
  const LstmCell cell(program_, "cell", 3, 2, kDouble);
  DynamicRnn(program_, cell, Input({1, 2}));
  const int line = __LINE__ - 1;
  EXPECT_EQ(program_.status().message(),
            StrCat("rnn 'rnn': inputs must be [batch, time, n], are [2] (made at ", __FILE__, ":",
                   line, ")"));
}

}  // namespace
}  // namespace penstock::client

// SPDX-License-Identifier: Apache-2.0
//
// Tests ParameterizedTruncatedNormal and its stateless form. The expected numbers are those of
// TensorFlow 2.21.
#include "kernels/array/testing/golden.h"

namespace penstock {
namespace {

using namespace golden;  // NOLINT: the tables below use its names

TEST(ParameterizedTruncatedNormal, DrawsTensorFlowsNumbers) {
  ExpectOutputs({"ParameterizedTruncatedNormal",
                 {I({1}, {5}), F({}, {0}), F({}, {1}), F({}, {-1}), F({}, {1})},
                 {{"seed", 87}, {"seed2", 12}}},
                {F({5}, {-0.9623966f, 0.7844794f, -0.8448751f, -0.16327834f, -0.51835823f})},
                2e-06);
  ExpectOutputs({"ParameterizedTruncatedNormal",
                 {I({1}, {5}), F({}, {0}), F({}, {1}), F({}, {-3}), F({}, {3})},
                 {{"seed", 87}, {"seed2", 12}}},
                {F({5}, {-1.7662503f, 2.1972659f, 1.109726f, -1.9702415f, -1.0820183f})}, 2e-06);
  ExpectOutputs({"ParameterizedTruncatedNormal",
                 {I({1}, {5}), F({}, {0}), F({}, {2}), F({}, {4}), F({}, {9})},
                 {{"seed", 87}, {"seed2", 12}}},
                {F({5}, {6.1180162f, 4.716214f, 4.4172726f, 5.1794333f, 5.898258f})}, 2e-06);
  ExpectOutputs(
      {"ParameterizedTruncatedNormal",
       {I({2}, {2, 3}), F({2}, {0, 5}), F({2}, {1, 2}), F({}, {-1}), F({2}, {1, 3})},
       {{"seed", 87}, {"seed2", 12}}},
      {F({2, 3}, {-0.9623966f, 0.7844794f, -0.8448751f, 1.2402077f, 0.16767359f, 0.2821455f})},
      2e-06);
  ExpectOutputs({"ParameterizedTruncatedNormal",
                 {I({1}, {5}), F({}, {0}), F({}, {1}), F({}, {-INFINITY}), F({}, {-3})},
                 {{"seed", 87}, {"seed2", 12}}},
                {F({5}, {-3.774098f, -3.2617638f, -3.1525059f, -3.4310622f, -3.6937802f})}, 2e-06);
  ExpectOutputs({"ParameterizedTruncatedNormal",
                 {I({1}, {5}), D({}, {0}), D({}, {1}), D({}, {-1}), D({}, {1})},
                 {{"seed", 87}, {"seed2", 12}}},
                {D({5}, {-0.6991713162800681, 0.24100016585871886, 0.10305880052797001,
                         -0.6340477153909116, 0.3709736600798945})},
                1e-12);
  ExpectOutputs({"ParameterizedTruncatedNormal",
                 {I({1}, {5}), D({}, {0}), D({}, {1}), D({}, {-3}), D({}, {3})},
                 {{"seed", 87}, {"seed2", 12}}},
                {D({5}, {-1.3368982565456813, -1.4147176677512556, -1.2167383168145787,
                         0.7130081894456997, -0.36402995541106964})},
                1e-12);
  ExpectOutputs({"ParameterizedTruncatedNormal",
                 {I({1}, {5}), D({}, {0}), D({}, {2}), D({}, {4}), D({}, {9})},
                 {{"seed", 87}, {"seed2", 12}}},
                {D({5}, {5.569340462191025, 4.823801523120618, 4.063182521226895,
                         4.0988718927390835, 4.492963954265132})},
                1e-12);
  ExpectOutputs({"ParameterizedTruncatedNormal",
                 {I({2}, {2, 3}), D({2}, {0, 5}), D({2}, {1, 2}), D({}, {-1}), D({2}, {1, 3})},
                 {{"seed", 87}, {"seed2", 12}}},
                {D({2, 3}, {-0.6991713162800681, 0.24100016585871886, 0.10305880052797001,
                            2.533228603372373, 1.7693384717034513, 1.3636179525818095})},
                1e-12);
  ExpectOutputs({"ParameterizedTruncatedNormal",
                 {I({1}, {5}), D({}, {0}), D({}, {1}), D({}, {-INFINITY}), D({}, {-3})},
                 {{"seed", 87}, {"seed2", 12}}},
                {D({5}, {-3.573566515466388, -3.301085061167996, -3.0230921074244756,
                         -3.0361359490577002, -3.180169710977583})},
                1e-12);
  ExpectOutputs({"ParameterizedTruncatedNormal",
                 {I({1}, {5}), H({}, {0}), H({}, {1}), H({}, {-1}), H({}, {1})},
                 {{"seed", 87}, {"seed2", 12}}},
                {H({5}, {-0.544921875, -0.216796875, -0.576171875, 0.609375, 0.45703125})}, 0.002);
  ExpectOutputs({"ParameterizedTruncatedNormal",
                 {I({1}, {5}), H({}, {0}), H({}, {1}), H({}, {-3}), H({}, {3})},
                 {{"seed", 87}, {"seed2", 12}}},
                {H({5}, {-1.76660156, 2.19726562, 1.109375, -1.97070312, -1.08203125})}, 0.002);
  ExpectOutputs({"ParameterizedTruncatedNormal",
                 {I({1}, {5}), H({}, {0}), H({}, {2}), H({}, {4}), H({}, {9})},
                 {{"seed", 87}, {"seed2", 12}}},
                {H({5}, {7.109375, 4.77734375, 4.16796875, 4.7890625, 4.1796875})}, 0.002);
  ExpectOutputs(
      {"ParameterizedTruncatedNormal",
       {I({2}, {2, 3}), H({2}, {0, 5}), H({2}, {1, 2}), H({}, {-1}), H({2}, {1, 3})},
       {{"seed", 87}, {"seed2", 12}}},
      {H({2, 3}, {-0.544921875, -0.216796875, -0.576171875, 2.73046875, 1.91015625, 2.72070312})},
      0.002);
  ExpectOutputs({"ParameterizedTruncatedNormal",
                 {I({1}, {5}), H({}, {0}), H({}, {1}), H({}, {-INFINITY}), H({}, {-3})},
                 {{"seed", 87}, {"seed2", 12}}},
                {H({5}, {-4.13671875, -3.28320312, -3.06054688, -3.2890625, -3.06640625})}, 0.002);
}

TEST(ParameterizedTruncatedNormal, Mistakes) {
  OpCall{"ParameterizedTruncatedNormal",
         {I({1}, {2}), F({}, {0}), F({}, {0}), F({}, {-1}), F({}, {1})}}
      .ExpectError("Invalid parameters");
  OpCall{"ParameterizedTruncatedNormal",
         {I({1}, {2}), F({}, {0}), F({}, {1}), F({}, {2}), F({}, {1})}}
      .ExpectError("Invalid parameters");
  OpCall{"ParameterizedTruncatedNormal",
         {I({1}, {2}), F({3}, {0, 1, 2}), F({}, {1}), F({}, {-2}), F({}, {1})}}
      .ExpectError("Input means should be");
}

TEST(StatelessParameterizedTruncatedNormal, DrawsTensorFlowsNumbers) {
  const auto call = [](Dims shape, Tensor mean, Tensor deviation, Tensor low, Tensor high) {
    const int64_t rank = static_cast<int64_t>(shape.size());
    return OpCall{"StatelessParameterizedTruncatedNormal",
                  {I({rank}, {shape.begin(), shape.end()}), I({2}, {87, 12}), std::move(mean),
                   std::move(deviation), std::move(low), std::move(high)}};
  };
  ExpectOutputs(call({5}, F({}, {0}), F({}, {1}), F({}, {-1}), F({}, {1})),
                {F({5}, {-0.51080656f, 0.45719337f, -0.061900139f, -0.88776422f, 0.61652493f})},
                5e-06);
  ExpectOutputs(call({5}, F({}, {0}), F({}, {1}), F({}, {-3}), F({}, {3})),
                {F({5}, {-1.6699084f, -0.16641797f, 0.15377839f, -0.780783f, -1.1012067f})}, 5e-06);
  ExpectOutputs(call({5}, F({}, {0}), F({}, {2}), F({}, {4}), F({}, {9})),
                {F({5}, {5.1665449f, 4.2623091f, 4.3061051f, 4.2574682f, 4.4582982f})}, 5e-06);
  ExpectOutputs(
      call({2, 3, 2}, F({2}, {0, 5}), F({3, 1}, {1, 2, 0.5}), F({}, {-1}), F({2}, {1, 3})),
      {F({2, 3, 2}, {-0.51080656f, 2.8712659f, 0.72452927f, 2.0011532f, 0.51614046f, 2.6189327f,
                     0.45719337f, 2.7708509f, 0.20091486f, 2.1125364f, 0.11047325f, 2.9777067f})},
      5e-06);
  // Seven numbers are not whole groups of the generator.
  ExpectOutputs(call({7, 2}, F({2}, {0, 0}), F({2}, {1, 1}), F({2}, {-3, 2}), F({2}, {3, 9})),
                {F({7, 2}, {-1.6699084f, 2.1287341f, -0.16641797f, 2.2291491f, 0.15377839f,
                            2.2213294f, -0.780783f, 2.0613835f, -1.1012067f, 2.661966f, 2.7404127f,
                            2.1555743f, -0.48640767f, 2.0834105f})},
                5e-06);
  ExpectOutputs(call({5}, F({}, {0}), F({}, {1}), F({}, {-INFINITY}), F({}, {-3})),
                {F({5}, {-3.4263518f, -3.0958693f, -3.111876f, -3.8720849f, -3.0941002f})}, 5e-06);
  ExpectOutputs(call({5}, D({}, {0}), D({}, {1}), D({}, {-1}), D({}, {1})),
                {D({5}, {0.9135480401448581, 0.6575482058117164, -0.1021124802222011,
                         0.7258656639698993, 0.796234479548251})},
                1e-12);
  ExpectOutputs(call({5}, D({}, {0}), D({}, {1}), D({}, {-3}), D({}, {3})),
                {D({5}, {-0.26160487153359013, 0.1412054863218738, -0.3822237791172213,
                         -2.101790812253905, -0.9601225051924273})},
                1e-12);
  ExpectOutputs(call({5}, D({}, {0}), D({}, {2}), D({}, {4}), D({}, {9})),
                {D({5}, {4.036606578454738, 5.890313146659523, 4.663452204841448, 4.422099276992102,
                         4.0890183572282925})},
                1e-12);
  ExpectOutputs(call({5}, H({}, {0}), H({}, {1}), H({}, {-1}), H({}, {1})),
                {H({5}, {0.47265625, -0.009765625, 0.328125, -0.0859375, 0.43554688})}, 0.002);
  ExpectOutputs(call({5}, H({}, {0}), H({}, {1}), H({}, {-3}), H({}, {3})),
                {H({5}, {-1.6699219, -0.16638184, 0.15380859, -0.78076172, -1.1015625})}, 0.002);
  ExpectOutputs(call({5}, H({}, {0}), H({}, {1}), H({}, {-INFINITY}), H({}, {-3})),
                {H({5}, {-3.0917969, -3.1230469, -3.1816406, -3.3476562, -3.0996094})}, 0.002);
}

TEST(StatelessParameterizedTruncatedNormal, Mistakes) {
  const auto call = [](Tensor shape, Tensor seed, Tensor mean, Tensor deviation, float low,
                       float high) {
    return OpCall{"StatelessParameterizedTruncatedNormal",
                  {std::move(shape), std::move(seed), std::move(mean), std::move(deviation),
                   F({}, {low}), F({}, {high})}};
  };
  const Tensor two = I({1}, {2}), seed = I({2}, {1, 2}), zero = F({}, {0}), one = F({}, {1});
  call(two, seed, zero, zero, -1, 1).ExpectError("Invalid parameters: number 0 has stddev 0");
  call(two, seed, zero, one, 2, 1).ExpectError("Invalid parameters");
  call(two, seed, zero, one, -INFINITY, INFINITY).ExpectError("Invalid parameters");
  call(two, seed, F({3}, {0, 1, 2}), one, -2, 1)
      .ExpectError("Shape passed in must end with broadcasted shape");
  call(two, seed, F({3}, {0, 1, 2}), F({2}, {1, 1}), -2, 1)
      .ExpectError("must have compatible batch dimensions");
  call(two, I({3}, {1, 2, 3}), zero, one, -2, 1).ExpectError("seed");
  // Without numbers to draw, TensorFlow does not look at the parameters.
  ExpectOutputs(call(I({1}, {0}), seed, zero, one, 2, 1), {F({0}, {})});
  ExpectOutputs(call(I({2}, {0, 2}), seed, F({2}, {0, 0}), one, -2, 1), {F({0, 2}, {})});
}

}  // namespace
}  // namespace penstock

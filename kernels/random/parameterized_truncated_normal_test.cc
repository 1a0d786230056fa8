// SPDX-License-Identifier: Apache-2.0
//
// Tests ParameterizedTruncatedNormal. The expected numbers are those of TensorFlow 2.21.
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

}  // namespace
}  // namespace penstock

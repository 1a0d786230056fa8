// SPDX-License-Identifier: Apache-2.0
//
// Tests incomplete gamma and beta functions. The expected numbers are those of TensorFlow 2.21.
#include "kernels/array/testing/golden.h"

namespace penstock {
namespace {

using namespace golden;  // NOLINT: the tables below use its names

TEST(Incomplete, Gamma) {
  ExpectOutputs({"Igamma",
                 {F({9}, {0, 1, 2, -1, 0.5f, 1e+03f, 3, NAN, 2}),
                  F({9}, {1, 0, 3, 1, INFINITY, 1e+03f, -1, 1, 0.001f})}},
                {F({9}, {NAN, 0, 0.8008517f, NAN, 1, 0.5043565f, NAN, NAN, 4.996665e-07f})}, 1e-05);
  ExpectOutputs({"Igamma", {D({3}, {0.3, 2, 5e+01}), D({2, 1}, {0.1, 2e+01})}},
                {D({2, 3}, {0.5459128495917965, 0.004678840160444474, 2.980904350473814e-115,
                            0.9999999999181155, 0.9999999567157739, 1.2458926079719434e-08})},
                1e-12);
  ExpectOutputs({"Igammac",
                 {F({9}, {0, 1, 2, -1, 0.5f, 1e+03f, 3, NAN, 2}),
                  F({9}, {1, 0, 3, 1, INFINITY, 1e+03f, -1, 1, 0.001f})}},
                {F({9}, {NAN, 1, 0.19914828f, NAN, 0, 0.4959439f, NAN, NAN, 0.9999995f})}, 1e-05);
  ExpectOutputs({"Igammac", {D({3}, {0.3, 2, 5e+01}), D({2, 1}, {0.1, 2e+01})}},
                {D({2, 3}, {0.45408715040820347, 0.9953211598395555, 1, 8.188445289210279e-11,
                            4.328422607120966e-08, 0.9999999875410739})},
                1e-12);
  ExpectOutputs({"IgammaGradA", {F({4}, {1, 2, 0.5f, 1e+03f}), F({4}, {0, 3, 2, 1e+03f})}},
                {F({4}, {0, -0.19742544f, -0.13561936f, -0.0126204025f})}, 0.0001);
  ExpectOutputs({"IgammaGradA", {D({3}, {0.3, 2, 5e+01}), D({3}, {1, 2, 2e+01})}},
                {D({3}, {-0.3363198054199027, -0.29400469074623103, -1.1690273381623912e-08})},
                1e-11);
  ExpectOutputs({"RandomGammaGrad", {F({4}, {1, 2, 0.5f, 2e+01f}), F({4}, {0.5f, 3, 0.2f, 25})}},
                {F({4}, {0.80697906f, 1.3217986f, 0.79405046f, 1.1250503f})}, 0.0001);
  ExpectOutputs({"RandomGammaGrad", {D({3}, {0.3, 2, 5e+01}), D({3}, {1, 2, 2e+01})}},
                {D({3}, {2.734928314111534, 1.0862085766363292, 0.6128432204439116})}, 1e-11);
}

TEST(Incomplete, Beta) {
  ExpectOutputs(
      {"Betainc",
       {F({5}, {1, 2, 0, 0.5f, 3}), F({5}, {1, 3, 1, 0.5f, 2}), F({5}, {0.5f, 0.2f, 0.3f, 1, 2})}},
      {F({5}, {0.5f, 0.18080002f, NAN, 1, NAN})}, 1e-06);
  ExpectOutputs(
      {"Betainc", {D({}, {2}), D({5}, {1, 3, 1, 0.5, 3}), D({5}, {0.5, 0.2, 0.3, 1, 0.4})}},
      {D({5}, {0.25, 0.18080000000000004, 0.08999999999999998, 1, 0.5248})}, 1e-12);
  OpCall{"Betainc", {F({1}, {2}), F({2}, {1, 3}), F({2}, {0.5f, 0.2f})}}.ExpectError(
      "of one shape");
}

}  // namespace
}  // namespace penstock

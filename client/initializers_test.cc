// SPDX-License-Identifier: Apache-2.0
#include "client/initializers.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "client/program.h"
#include "client/session.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

struct Moments {
  double mean = 0, stddev = 0, low = 0, high = 0;
};
Moments MomentsOf(const Tensor& t) {
  Moments m{.low = 1e9, .high = -1e9};
  double squares = 0;
  for (const float v : t.flat<float>()) {
    m.mean += v;
    squares += v * v;
    m.low = std::min<double>(m.low, v);
    m.high = std::max<double>(m.high, v);
  }
  m.mean /= t.num_elements();
  m.stddev = std::sqrt(squares / t.num_elements() - m.mean * m.mean);
  return m;
}

TEST(InitializersTest, HaveTheMomentsThatTheyPromise) {
  const Shape shape = {3, 3, 20, 50};  // fan_in is 180, fan_out is 450
  const double glorot = std::sqrt(6.0 / 630), he = std::sqrt(2.0 / 180);
  struct {
    const char* name;
    Initializer initializer;
    Moments want;
  } const cases[] = {
      {"Zeros", Zeros(), {0, 0, 0, 0}},
      {"Ones", Ones(), {1, 0, 1, 1}},
      {"Filled", Filled(-2.5), {-2.5, 0, -2.5, -2.5}},
      {"RandomUniform", RandomUniform(1, 3, 7), {2, 2 / std::sqrt(12.0), 1, 3}},
      {"RandomNormal", RandomNormal(1, 2, 7), {1, 2, -1e9, 1e9}},
      {"TruncatedNormal", TruncatedNormal(1, 2, 7), {1, 2 * 0.8796, -3, 5}},
      {"GlorotUniform", GlorotUniform(7), {0, 2 * glorot / std::sqrt(12.0), -glorot, glorot}},
      {"HeNormal", HeNormal(7), {0, he, -2 * he / 0.8796, 2 * he / 0.8796}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    Program program;
    Variable v(program, "v", shape, c.initializer);
    auto session = *Session::New(program);
    const Status status = session->Execute(v.initializer());
    ASSERT_TRUE(status.ok()) << status;
    const Moments m = MomentsOf(*session->Fetch(v));
    const double tolerance = 0.05 * std::max(1e-6, c.want.stddev);
    EXPECT_NEAR(m.mean, c.want.mean, tolerance);
    EXPECT_NEAR(m.stddev, c.want.stddev, tolerance);
    EXPECT_GE(m.low, c.want.low - 1e-6);
    EXPECT_LE(m.high, c.want.high + 1e-6);
  }
}

TEST(InitializersTest, ASeedRepeatsItselfAndNoSeedDoesNot) {
  for (const int64_t seed : {0, 42}) {
    Program program;
    Variable v(program, "v", {100}, RandomNormal(0, 1, seed));
    std::string values[2];
    for (std::string& value : values) {
      auto session = *Session::New(program);
      ASSERT_TRUE(session->Execute(v.initializer()).ok());
      value = session->Fetch(v)->ToString(100);
    }
    EXPECT_EQ(values[0] == values[1], seed != 0);
  }
}

}  // namespace
}  // namespace penstock::client

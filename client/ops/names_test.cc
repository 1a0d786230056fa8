// SPDX-License-Identifier: Apache-2.0
//
// Tests the using-directives of the README with names that also exist in lower layers, or are ops.
// The main check is that this file compiles.
#include <type_traits>

#include "client/control_flow.h"
#include "client/layers/layers.h"
#include "client/ops/ops.h"
#include "client/optimizers.h"
#include "client/program.h"
#include "client/session.h"
#include "gtest/gtest.h"

using namespace penstock;          // NOLINT
using namespace penstock::client;  // NOLINT

namespace {

static_assert(std::is_same_v<Variable, penstock::client::Variable>);
static_assert(std::is_same_v<Session, penstock::client::Session>);
static_assert(std::is_class_v<layers::Dense>);

TEST(Names, MeanTheClients) {
  Program program;
  const Variable w(program, "w", {2, 2}, Zeros());
  const layers::Dense dense(program, "dense", 2, 3);
  const Output y = ops::MatMul(dense(w), w, {.transpose_a = true});
  const Output known = ops::Placeholder(program, DType::kBool, {.shape = {}});
  const auto branch = [&] { return Outputs{y}; };
  EXPECT_EQ(Case(program, {{known, branch}}, branch).size(), 1);
  EXPECT_TRUE(program.status().ok()) << program.status();
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
//
// FlowTest, a fixture for tests of control flow: a program of doubles, run in this process, whose
// gradients are compared with central differences.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "client/gradients.h"
#include "client/program.h"
#include "client/session.h"
#include "core/op/gradient.h"

namespace penstock::client {

class FlowTest : public testing::Test {
 protected:
  // Returns a tensor to which Run feeds `value`, until Feed sets another value.
  Output Input(Tensor value) {
    // (A Placeholder of shape [] would accept any shape.)
    const Output x = CallIn(program_, "PlaceholderWithDefault", {Constant(program_, value)},
                            {{"shape", PartialShape(value.shape())}});
    feeds_.push_back({x, std::move(value)});
    return x;
  }
  Output Input(const std::vector<double>& values) { return Input(Tensor::Vector(values)); }
  Output Input(double value) { return Input(Tensor::Scalar(value)); }
  Output InputInt(int32_t value) { return Input(Tensor::Scalar(value)); }
  Output InputBool(bool value) { return Input(Tensor::Scalar(value)); }
  void Feed(Output input, Tensor value) {
    for (auto& feed : feeds_) {
      if (feed.tensor.name == input.name()) feed.value = std::move(value);
    }
  }

  StatusOr<std::vector<Tensor>> Run(const Outputs& fetches) {
    if (session_ == nullptr) {
      ASSIGN_OR_RETURN(session_, Session::New(program_, ""));
    }
    return session_->Run(feeds_, {fetches.begin(), fetches.end()}, {}, {.timeout_ms = 20'000});
  }
  Tensor Value(Output output) {
    const auto values = Run({output});
    EXPECT_TRUE(values.ok()) << values.status();
    return values.ok() ? (*values)[0] : Tensor();
  }
  std::string Text(Output output) { return Value(output).ToString(100); }

  Output Total(Output y) {
    if (y.shape().rank() == 0) return y;
    const Output flat = Reshape(y, Constant(program_, Tensor::Vector<int32_t>({-1})));
    return Sum(flat, Constant(program_, Tensor::Scalar<int32_t>(0)));
  }

  // Checks the gradients of the sum of y against central differences.
  void CheckGradients(Output y, const Outputs& xs) {
    const Output total = Total(y);
    const std::vector<Gradient> gradients = Gradients(program_, {total}, xs);
    ASSERT_TRUE(program_.status().ok()) << program_.status();
    for (size_t i = 0; i < xs.size(); ++i) {
      ASSERT_FALSE(gradients[i].none()) << i;
      CheckGradient(total, xs[i], Dense(gradients[i]));
    }
  }
  void CheckGradient(Output total, Output x, Output dx) {
    const Tensor found = Value(dx);
    ASSERT_TRUE(found.valid());
    size_t feed = 0;
    while (feeds_[feed].tensor.name != x.name()) ++feed;
    const Tensor value = feeds_[feed].value;
    ASSERT_EQ(found.shape(), value.shape());
    const double step = 1e-5;
    for (int64_t i = 0; i < value.num_elements(); ++i) {
      double at[2];
      for (const int side : {0, 1}) {
        Tensor moved = value.Clone();
        moved.mutable_data<double>()[i] += side == 0 ? -step : step;
        feeds_[feed].value = std::move(moved);
        const Tensor sum = Value(total);
        ASSERT_TRUE(sum.valid());
        at[side] = sum.scalar<double>();
      }
      feeds_[feed].value = value;
      const double wanted = (at[1] - at[0]) / (2 * step);
      EXPECT_NEAR(found.data<double>()[i], wanted, 1e-6 * std::max(1.0, std::abs(wanted)))
          << x.name() << "[" << i << "]";
    }
  }

  Program program_;
  std::vector<client::Feed> feeds_;
  std::unique_ptr<Session> session_;
};

inline Output Double(Output like, double value) { return ConstantLike(like, value); }

}  // namespace penstock::client

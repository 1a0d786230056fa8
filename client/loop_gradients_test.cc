// SPDX-License-Identifier: Apache-2.0
//
// Tests gradients through conditionals and loops against central differences, and against the same
// computation without control flow.
#include "client/control_flow.h"
#include "client/tensor_array.h"
#include "client/testing/flow_test_program.h"
#include "core/gradients/gradients.h"
#include "core/graph/graph_proto.h"

namespace penstock::client {
namespace {

class LoopGradients : public FlowTest {
 protected:
  Output Int(int32_t value) { return Constant(program_, Tensor::Scalar(value)); }
  // Returns x after x = body(i, x) for i = 0, ..., times - 1.
  Output Repeat(Output times, Output x, const std::function<Output(Output, Output)>& body,
                const WhileOptions& options = {}) {
    return While(
        program_, {Int(0), x}, [&](const Outputs& v) { return Less(v[0], times); },
        [&](const Outputs& v) {
          return Outputs{v[0] + 1, body(v[0], v[1])};
        },
        options)[1];
  }
};

TEST_F(LoopGradients, Cond) {
  const Output pred = InputBool(true), x = Input({1, 2}), z = Input({3, 4});
  const Output y = Cond(
      program_, pred, [&] { return Outputs{x * x * z}; }, [&] { return Outputs{Exp(x)}; })[0];
  CheckGradients(y, {x, z});
  Feed(pred, Tensor::Scalar(false));
  CheckGradients(y, {x, z});
}

TEST_F(LoopGradients, CondWhereASideIsConstant) {
  const Output pred = InputBool(true), x = Input(2.0);
  const Output y = Cond(
      program_, pred, [&] { return Outputs{x * x}; }, [&] { return Outputs{Double(x, 5)}; })[0];
  CheckGradients(y, {x});
  Feed(pred, Tensor::Scalar(false));
  CheckGradients(y, {x});
}

TEST_F(LoopGradients, NestedConds) {
  const Output a = InputBool(true), b = InputBool(true), x = Input(0.7);
  const Output y = Cond(
      program_, a,
      [&] {
        const Output inside = x * 2;
        return Cond(
            program_, b, [&] { return Outputs{inside * inside * x}; },
            [&] { return Outputs{Sin(inside)}; });
      },
      [&] { return Outputs{Exp(x)}; })[0];
  for (const bool first : {true, false}) {
    for (const bool second : {true, false}) {
      Feed(a, Tensor::Scalar(first));
      Feed(b, Tensor::Scalar(second));
      CheckGradients(y, {x});
    }
  }
}

TEST_F(LoopGradients, While) {
  const Output n = InputInt(4), x = Input({0.5, 0.9});
  const Output y = Repeat(n, x, [&](Output, Output v) { return Sin(v) * v; });
  CheckGradients(y, {x});
  Feed(n, Tensor::Scalar<int32_t>(0));
  CheckGradients(y, {x});
}

TEST_F(LoopGradients, WhatComesFromOutsideAddsUp) {
  const Output n = InputInt(3), x = Input({0.5, 0.9}), w = Input({1.1, 0.7}), b = Input(0.3);
  const Output y = Repeat(n, x, [&](Output, Output v) { return Tanh(v * w + b); });
  CheckGradients(y, {x, w, b});
  Feed(n, Tensor::Scalar<int32_t>(0));
  CheckGradients(y, {x, w});
  EXPECT_EQ(Text(Gradients(program_, {Total(y)}, {w})[0].values), "double[2] 0 0");
}

TEST_F(LoopGradients, AsTheUnrolledGraph) {
  const Output x = Input(Tensor::Of<double>({2, 3}, {.1, .2, .3, .4, .5, .6}));
  const Output w = Input(Tensor::Of<double>({3, 3}, {1, .2, 0, .1, 1, .3, 0, .4, 1}));
  const auto body = [&](Output, Output v) { return Tanh(MatMul(v, w)); };
  Output unrolled = x;
  for (int i = 0; i < 5; ++i) unrolled = body(unrolled, unrolled);
  const Output looped = Repeat(InputInt(5), x, body);
  const auto flat = Gradients(program_, {Total(unrolled)}, {x, w});
  const auto rolled = Gradients(program_, {Total(looped)}, {x, w});
  ASSERT_TRUE(program_.status().ok()) << program_.status();
  EXPECT_EQ(Text(looped), Text(unrolled));
  for (int i = 0; i < 2; ++i) {
    const Tensor a = Value(flat[i].values), b = Value(rolled[i].values);
    for (int64_t k = 0; k < a.num_elements(); ++k) {
      EXPECT_NEAR(a.data<double>()[k], b.data<double>()[k], 1e-12);
    }
  }
}

TEST_F(LoopGradients, OneIterationAtATimeAndSwapped) {
  const Output x = Input(0.5);
  const Output y = Repeat(InputInt(6), x, [&](Output, Output v) { return Sin(v) * Exp(v) * 0.4; },
                          {.parallel_iterations = 1, .swap_memory = true});
  CheckGradients(y, {x});
}

TEST_F(LoopGradients, ConstantsOfABody) {
  const Output x = Input(0.5);
  const Output y = Repeat(InputInt(3), x, [&](Output i, Output v) {
    const Output weight = Cast(i, DType::kDouble) + 1;
    return v * Constant(program_, Tensor::Scalar(1.5)) * weight;
  });
  CheckGradients(y, {x});
}

TEST_F(LoopGradients, SeveralVariablesThatDependOnEachOther) {
  const Output x = Input(0.5), z = Input(1.5);
  const Outputs last = client::While(
      program_, {Int(0), x, z, x}, [&](const Outputs& v) { return Less(v[0], Int(4)); },
      [&](const Outputs& v) {
        return Outputs{v[0] + 1, v[1] * v[2], Sin(v[1]) + v[2], v[3]};
      });
  CheckGradients(last[1] + last[3], {x, z});  // last[2] is not used
  CheckGradients(last[2], {x, z});
}

TEST_F(LoopGradients, AVariableThatForgetsWhereItBegan) {
  const Output x = Input(0.5), z = Input(1.5);
  const Output y = Repeat(InputInt(3), x, [&](Output, Output) { return z * z; });
  CheckGradients(y + x, {x, z});
  const Output w = Input(2.0);
  const Output kept = client::While(
      program_, {Int(0), w, z}, [&](const Outputs& v) { return Less(v[0], Int(3)); },
      [&](const Outputs& v) {
        return Outputs{v[0] + 1, v[2] * 2, v[2] * v[2]};
      })[1];
  CheckGradients(kept, {z});
}

TEST_F(LoopGradients, LoopInLoop) {
  const Output n = InputInt(3), x = Input({0.3, 0.4}), w = Input({0.9, 1.1});
  const Output y = Repeat(n, x, [&](Output i, Output v) {
    return Repeat(i + 1, v, [&](Output, Output u) { return Sin(u * w) * v + u; });
  });
  CheckGradients(y, {x, w});
  Feed(n, Tensor::Scalar<int32_t>(0));
  CheckGradients(y, {x, w});
}

TEST_F(LoopGradients, CondInLoop) {
  const Output x = Input(0.3), w = Input(1.2);
  const Output y = Repeat(InputInt(5), x, [&](Output i, Output v) {
    const Output even = Equal(Call("FloorMod", {i, Int(2)}), Int(0));
    return Cond(
        program_, even,
        [&] {
          const Output inside = v * w;
          return Outputs{inside * inside + v};
        },
        [&] { return Outputs{Sin(v)}; })[0];
  });
  CheckGradients(y, {x, w});
}

TEST_F(LoopGradients, CondsInCondsInALoop) {
  const Output x = Input(0.3), w = Input(1.2);
  const Output y = Repeat(InputInt(6), x, [&](Output i, Output v) {
    const auto rest = [&](int32_t by, int32_t is) {
      return Equal(Call("FloorMod", {i, Int(by)}), Int(is));
    };
    return Cond(
        program_, rest(2, 0),
        [&] {
          const Output inside = v * w;
          return Cond(
              program_, rest(3, 0), [&] { return Outputs{inside * inside + v}; },
              [&] { return Outputs{Exp(-inside)}; });
        },
        [&] { return Outputs{Sin(v)}; })[0];
  });
  CheckGradients(y, {x, w});
}

TEST_F(LoopGradients, LoopInCond) {
  const Output pred = InputBool(true), x = Input(0.3), w = Input(1.2);
  const Output y = Cond(
      program_, pred,
      [&] { return Outputs{Repeat(Int(3), x, [&](Output, Output v) { return Sin(v * w); })}; },
      [&] { return Outputs{x * x}; })[0];
  CheckGradients(y, {x, w});
  Feed(pred, Tensor::Scalar(false));
  CheckGradients(y, {x, w});
}

TEST_F(LoopGradients, LoopInCondInLoop) {
  const Output x = Input(0.3), w = Input(1.2);
  const Output y = Repeat(InputInt(4), x, [&](Output i, Output v) {
    return Cond(
        program_, Equal(Call("FloorMod", {i, Int(2)}), Int(1)),
        [&] { return Outputs{Repeat(i, v, [&](Output, Output u) { return Sin(u * w) + v; })}; },
        [&] { return Outputs{v * w}; })[0];
  });
  CheckGradients(y, {x, w});
}

TEST_F(LoopGradients, TripCountThatDependsOnData) {
  const Output x = Input(0.3);
  const Outputs last = client::While(
      program_, {x, Int(0)}, [&](const Outputs& v) { return Less(v[0], Double(v[0], 20)); },
      [&](const Outputs& v) {
        return Outputs{v[0] * 1.7 + x, v[1] + 1};
      });
  CheckGradients(last[0], {x});
}

TEST_F(LoopGradients, ShapesThatChange) {
  const Output x = Input({0.3, 0.4});
  const Output y = client::While(
      program_, {Int(0), x}, [&](const Outputs& v) { return Less(v[0], Int(2)); },
      [&](const Outputs& v) {
        return Outputs{v[0] + 1, ConcatV2({Sin(v[1]), v[1]}, Int(0))};
      },
      {.shape_invariants = {PartialShape::Scalar(), PartialShape({-1})}})[1];
  CheckGradients(y, {x});
}

TEST_F(LoopGradients, GatheredRowsStaySparse) {
  const Output table = Input(Tensor::Of<double>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
  const Output n = InputInt(3), x = Input({0.5, 0.25});
  const auto body = [&](Output i, Output v) {
    return Sin(v) * Gather(table, Pack({i, Int(1)}), Int(0));
  };
  const Output start = Gather(table, Constant(program_, Tensor::Vector<int32_t>({3, 3})), Int(0));
  const Output y = Total(Repeat(n, start * x, body));
  const auto gradients = Gradients(program_, {y}, {table, x});
  ASSERT_TRUE(program_.status().ok()) << program_.status();
  EXPECT_TRUE(gradients[0].sparse());
  CheckGradient(y, table, Dense(gradients[0]));
  CheckGradient(y, x, gradients[1].values);
  Feed(n, Tensor::Scalar<int32_t>(0));
  CheckGradient(y, table, Dense(gradients[0]));
}

TEST_F(LoopGradients, TensorArraysCarryGradients) {
  const Output x = Input({0.1, 0.2, 0.3, 0.4});
  const TensorArray in = TensorArray::Unstack(program_, x);
  const TensorArray out(program_, in.Size(), DType::kDouble, {.clear_after_read = false});
  const Outputs last = client::While(
      program_, {Int(0), out.flow()}, [&](const Outputs& v) { return Less(v[0], in.Size()); },
      [&](const Outputs& v) {
        const Output each = in.Read(v[0]);
        return Outputs{v[0] + 1, out.At(v[1]).Write(v[0], each * each * each).flow()};
      });
  const TensorArray full = out.At(last[1]);
  // Stack and Read use the same element, so its gradients must be summed.
  CheckGradients(Total(full.Stack()) + full.Read(Int(2)) * 5, {x});
}

TEST_F(LoopGradients, FoldsAndScans) {
  const Output x = Input({0.5, 0.6, 0.7}), a = Input(0.9);
  const FoldFunction step = [&](const Outputs& v, const Outputs& e) {
    return Outputs{Sin(v[0] * e[0]) + a};
  };
  CheckGradients(FoldL(program_, {x}, {a}, step)[0], {x, a});
  CheckGradients(Scan(program_, {x}, {a}, step)[0], {x, a});
  CheckGradients(Scan(program_, {x}, {a}, step, /*reverse=*/true)[0], {x, a});
  CheckGradients(MapFn(program_, {x}, {DType::kDouble},
                       [&](const Outputs& e) { return Outputs{Exp(e[0] * a)}; })[0],
                 {x, a});
}

TEST_F(LoopGradients, InsideOfABody) {
  // Newton's method for x^2 = c: each iteration computes a derivative.
  const Output c = Input(2.0);
  const Output root = Repeat(InputInt(6), Double(c, 1), [&](Output, Output x) {
    const Output f = x * x - c;
    const Output slope = Gradients(program_, {f}, {x})[0].values;
    return x - f / slope;
  });
  ASSERT_TRUE(program_.status().ok()) << program_.status();
  EXPECT_NEAR(Value(root).scalar<double>(), std::sqrt(2.0), 1e-12);
  CheckGradients(root, {c});
}

TEST_F(LoopGradients, InsideOfABranch) {
  const Output pred = InputBool(true), x = Input(2.0);
  const Output slope = Cond(
      program_, pred, [&] { return Outputs{Gradients(program_, {x * x * x}, {x})[0].values}; },
      [&] { return Outputs{Gradients(program_, {x * x}, {x})[0].values}; })[0];
  EXPECT_EQ(Text(slope), "double[] 12");
  CheckGradients(slope, {x});
  Feed(pred, Tensor::Scalar(false));
  EXPECT_EQ(Text(slope), "double[] 4");
  CheckGradients(slope, {x});
}

TEST_F(LoopGradients, InsideOfABodyByWhatIsOutside) {
  const Output c = Input(2.0);
  // Each iteration adds d(v^2 c)/dc = v^2.
  const Output y = Repeat(InputInt(3), Double(c, 1), [&](Output, Output v) {
    return v + Gradients(program_, {v * v * c}, {c})[0].values;
  });
  EXPECT_EQ(Text(y), "double[] 42");
}

TEST_F(LoopGradients, OfALoopInsideOfABody) {
  const Output c = Input(0.4);
  const Output y = Repeat(InputInt(2), c, [&](Output, Output x) {
    const Output inner = Repeat(Int(3), x, [&](Output, Output v) { return Sin(v) * x; });
    return x + Gradients(program_, {inner}, {x})[0].values;
  });
  // d/dx of sin(sin(sin(x)x)x)x at 0.4, by hand: s1 = sin(x)x, s2 = sin(s1)x, s3 = sin(s2)x.
  const auto derivative = [](double x) {
    double v = x, d = 1;
    for (int i = 0; i < 3; ++i) {
      d = std::cos(v) * d * x + std::sin(v);
      v = std::sin(v) * x;
    }
    return d;
  };
  ASSERT_TRUE(program_.status().ok()) << program_.status();
  double x = 0.4;
  for (int i = 0; i < 2; ++i) x += derivative(x);
  EXPECT_NEAR(Value(y).scalar<double>(), x, 1e-12);
}

TEST_F(LoopGradients, Variables) {
  const Variable w(program_, "w", {2}, Filled(0.5), {.dtype = DType::kDouble});
  const Output x = Input({0.3, 0.7});
  // The variable is read inside the loop, so its handle enters the loop.
  const Output y = Repeat(InputInt(3), x, [&](Output, Output v) { return v * w; });
  const auto gradients = Gradients(program_, {Total(y)}, {w.handle()});
  ASSERT_TRUE(program_.status().ok()) << program_.status();
  ASSERT_TRUE(Run({w.IsInitialized()}).ok());
  ASSERT_TRUE(session_->Execute(w.initializer()).ok());
  const Tensor dw = Value(gradients[0].values);
  EXPECT_NEAR(dw.data<double>()[0], 0.3 * 3 * 0.25, 1e-12);
  EXPECT_NEAR(dw.data<double>()[1], 0.7 * 3 * 0.25, 1e-12);
}

TEST_F(LoopGradients, VariablesThatAreReferences) {
  const Variable w(program_, "w", {2}, Filled(0.5), {.dtype = DType::kDouble, .ref = true});
  const Output x = Input({0.3, 0.7});
  const Output y = Repeat(InputInt(3), x, [&](Output, Output v) { return v * w; });
  const auto gradients = Gradients(program_, {Total(y)}, {w.handle()});
  ASSERT_TRUE(program_.status().ok()) << program_.status();
  ASSERT_TRUE(Run({w.IsInitialized()}).ok());
  ASSERT_TRUE(session_->Execute(w.initializer()).ok());
  const Tensor dw = Value(gradients[0].values);
  EXPECT_NEAR(dw.data<double>()[0], 0.3 * 3 * 0.25, 1e-12);
  EXPECT_NEAR(dw.data<double>()[1], 0.7 * 3 * 0.25, 1e-12);
}

TEST_F(LoopGradients, RowsOfAVariable) {
  const Variable w(program_, "w", {4, 2}, Filled(0.5), {.dtype = DType::kDouble});
  const Output n = InputInt(3), x = Input({0.3, 0.7});
  const Output y = Repeat(n, x, [&](Output i, Output v) {
    return v * Call("ResourceGather", {w.handle(), i}, {{"dtype", DType::kDouble}});
  });
  const auto gradients = Gradients(program_, {Total(y)}, {w.handle()});
  ASSERT_TRUE(program_.status().ok()) << program_.status();
  EXPECT_TRUE(gradients[0].sparse());
  const Output dense = Dense(gradients[0]);
  ASSERT_TRUE(Run({w.IsInitialized()}).ok());
  ASSERT_TRUE(session_->Execute(w.initializer()).ok());
  EXPECT_EQ(Text(dense), "double[4,2] 0.075 0.175 0.075 0.175 0.075 0.175 0 0");
  Feed(n, Tensor::Scalar<int32_t>(0));
  EXPECT_EQ(Text(dense), "double[4,2] 0 0 0 0 0 0 0 0");
}

TEST_F(LoopGradients, ManyIterations) {
  const Output x = Input(2.0), w = Input(0.9999);
  const Output y = Repeat(InputInt(20000), x, [&](Output, Output v) { return v * w; });
  const auto gradients = Gradients(program_, {y}, {x, w});
  ASSERT_TRUE(program_.status().ok()) << program_.status();
  EXPECT_NEAR(Value(gradients[0].values).scalar<double>(), std::pow(0.9999, 20000), 1e-12);
  EXPECT_NEAR(Value(gradients[1].values).scalar<double>(), 2 * 20000 * std::pow(0.9999, 19999),
              1e-6);
}

// testdata/nested_loops.pbtxt is TensorFlow's graph of nested loops and a conditional that write a
// TensorArray; the expected numbers come from tf.gradients.
TEST(LoopGradientsOfForeignGraphs, AreThoseOfTensorFlow) {
  auto read = ReadGraphFile(Env::Real(), "client/testdata/nested_loops.pbtxt", Registry::Global());
  ASSERT_TRUE(read.ok()) << read.status();
  Program program(*std::move(read));
  const auto output = [&](const char* name) {
    return program.OutputOf(program.graph().FindNode(name));
  };
  const Output x = output("x"), w = output("w"), y = output("y");
  const auto gradients = Gradients(program, {y}, {x, w});
  ASSERT_TRUE(program.status().ok()) << program.status();
  const auto session = *Session::New(program, "");
  const struct {
    int32_t n;
    double y, dx[2], dw[2];
  } golden[] = {
      {0, 0.7, {1, 1}, {0, 0}},
      {1, 1.3900000000000001, {1.8, 5.6}, {0, 0}},
      {4,
       32.740890685539526,
       {-9.119442052681102, -24.207320889583116},
       {13.591966837693631, 9.144753244834227}},
  };
  for (const auto& wanted : golden) {
    const auto values = session->Run({{x, Tensor::Vector<double>({.3, .4})},
                                      {w, Tensor::Vector<double>({.9, 1.1})},
                                      {"n", Tensor::Scalar(wanted.n)}},
                                     {y, gradients[0].values, gradients[1].values});
    ASSERT_TRUE(values.ok()) << values.status();
    EXPECT_NEAR((*values)[0].scalar<double>(), wanted.y, 1e-12);
    for (int i = 0; i < 2; ++i) {
      EXPECT_NEAR((*values)[1].data<double>()[i], wanted.dx[i], 1e-11) << wanted.n;
      EXPECT_NEAR((*values)[2].data<double>()[i], wanted.dw[i], 1e-11) << wanted.n;
    }
  }
}

// Compares second derivatives with differences of first derivatives, and with the second
// derivatives of the unrolled loop.
class HigherDerivatives : public LoopGradients {
 protected:
  Output Derivative(Output y, Output x) {
    const auto gradients = Gradients(program_, {Total(y)}, {x});
    return gradients.empty() ? Output() : Dense(gradients[0]);
  }
  void ExpectSame(Output a, Output b) {
    const auto values = Run({a, b});
    ASSERT_TRUE(values.ok()) << values.status();
    const Tensor &one = (*values)[0], &other = (*values)[1];
    ASSERT_EQ(one.shape(), other.shape());
    for (int64_t i = 0; i < one.num_elements(); ++i) {
      EXPECT_NEAR(one.data<double>()[i], other.data<double>()[i], 1e-12) << i;
    }
  }
};

TEST_F(HigherDerivatives, OfALoop) {
  const Output n = InputInt(3), x = Input({0.5, 0.9}), w = Input({1.1, 0.7});
  const auto body = [&](Output, Output v) { return Sin(v * w) * v; };
  const Output y = Repeat(n, x, body);
  Output unrolled = x;
  for (int i = 0; i < 3; ++i) unrolled = body(Output(), unrolled);
  const Output dx = Derivative(y, x), dw = Derivative(y, w);
  CheckGradients(dx, {x, w});
  CheckGradients(dw, {x, w});
  ExpectSame(Derivative(dx, w), Derivative(Derivative(unrolled, x), w));
  ExpectSame(Derivative(dw, w), Derivative(Derivative(unrolled, w), w));
  ExpectSame(Derivative(Derivative(dx, w), x),
             Derivative(Derivative(Derivative(unrolled, x), w), x));
  Feed(n, Tensor::Scalar<int32_t>(0));
  CheckGradients(dx, {x});
  Feed(n, Tensor::Scalar<int32_t>(1));
  CheckGradients(dx, {x, w});
}

TEST_F(HigherDerivatives, OfALoopWithABranch) {
  const Output n = InputInt(4), x = Input({0.5, 0.9}), w = Input(1.1);
  const Output y = Repeat(n, x, [&](Output i, Output v) {
    return Cond(
        program_, Less(i, Int(2)), [&] { return Outputs{Sin(v) * w}; },
        [&] { return Outputs{v * v}; })[0];
  });
  for (const Output& first : {Derivative(y, x), Derivative(y, w)}) CheckGradients(first, {x, w});
}

TEST_F(HigherDerivatives, OfOneLoopAfterTheOther) {
  const Output x = Input({0.5, 0.9});
  const Output middle = Repeat(InputInt(2), x, [](Output, Output v) { return Sin(v) * v; });
  const Output y = Repeat(InputInt(3), middle, [&](Output, Output v) { return v * middle; });
  CheckGradients(Derivative(y, x), {x});
}

// Differentiates a loss that depends on a gradient, as penalties on gradients do.
TEST_F(HigherDerivatives, OfALossOfADerivative) {
  const Output x = Input({0.5, 0.9}), w = Input({0.3, -0.4});
  const Output y = Repeat(InputInt(3), x, [&](Output, Output v) { return Tanh(v * w) + v; });
  const Output dx = Derivative(y, x);
  CheckGradients(y + dx * dx, {x, w});
}

TEST_F(HigherDerivatives, OfLoopsInLoopsAreRefused) {
  const Output x = Input(0.5);
  const Output y = Repeat(InputInt(3), x, [&](Output, Output v) {
    return Repeat(Int(2), v, [](Output, Output u) { return Sin(u) * u; });
  });
  const Output dy = Gradients(program_, {y}, {x})[0].values;
  const auto second = AddGradients(program_, {dy}, {x});
  EXPECT_EQ(second.status().code(), StatusCode::kUnimplemented) << second.status();
  EXPECT_NE(std::string(second.status().message()).find("second derivatives of loops in loops"),
            std::string::npos);
}

TEST_F(LoopGradients, WhatIsInsideIsNotSeenFromOutside) {
  const Output x = Input(0.5);
  Output inside;
  const Output y = Repeat(InputInt(3), x, [&](Output, Output v) { return inside = Sin(v); });
  EXPECT_NE(std::string(AddGradients(program_, {y}, {inside}).status().message())
                .find("is inside loop 'while/while_context'"),
            std::string::npos);
}

}  // namespace
}  // namespace penstock::client

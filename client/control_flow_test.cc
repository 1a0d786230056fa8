// SPDX-License-Identifier: Apache-2.0
#include "client/control_flow.h"

#include "client/testing/flow_test_program.h"

namespace penstock::client {
namespace {

class ControlFlow : public FlowTest {
 protected:
  Output Int(int32_t value) { return Constant(program_, Tensor::Scalar(value)); }
  void ExpectError(const std::string& words) {
    EXPECT_NE(std::string(program_.status().message()).find(words), std::string::npos)
        << program_.status();
  }
};

TEST_F(ControlFlow, CondRunsOneSide) {
  const Output pred = InputBool(true), x = Input(3.0);
  const Outputs y = Cond(
      program_, pred,
      [&] {
        return Outputs{x * 2, Double(x, 1)};
      },
      [&] {
        return Outputs{-x, Double(x, 0)};
      });
  ASSERT_EQ(y.size(), 2u);
  EXPECT_EQ(Text(y[0]), "double[] 6");
  EXPECT_EQ(Text(y[1]), "double[] 1");
  Feed(pred, Tensor::Scalar(false));
  EXPECT_EQ(Text(y[0]), "double[] -3");
  EXPECT_EQ(Text(y[1]), "double[] 0");
}

TEST_F(ControlFlow, TheOtherSideHasNoEffect) {
  const Output pred = InputBool(true);
  const Variable count(program_, "count", {}, Zeros(), {.dtype = DType::kDouble});
  const Output y = Cond(
      program_, pred, [&] { return Outputs{count.AssignAdd(Double(count.Read(), 1))}; },
      [&] { return Outputs{count.AssignAdd(Double(count.Read(), 10))}; })[0];
  ASSERT_TRUE(Run({count.IsInitialized()}).ok());
  ASSERT_TRUE(session_->Execute(count.initializer()).ok());
  EXPECT_EQ(Text(y), "bool[] true");
  Feed(pred, Tensor::Scalar(false));
  EXPECT_EQ(Text(y), "bool[] false");
  EXPECT_EQ((*session_->Run({count}))[0].ToString(), "double[] 11");
}

TEST_F(ControlFlow, NestedConds) {
  const Output a = InputBool(true), b = InputBool(true), x = Input(1.0);
  const Output y = Cond(
      program_, a,
      [&] {
        return Cond(
            program_, b, [&] { return Outputs{x + 1}; }, [&] { return Outputs{x + 2}; });
      },
      [&] {
        return Cond(
            program_, b, [&] { return Outputs{x + 3}; }, [&] { return Outputs{x + 4}; });
      })[0];
  for (const bool first : {true, false}) {
    for (const bool second : {true, false}) {
      Feed(a, Tensor::Scalar(first));
      Feed(b, Tensor::Scalar(second));
      EXPECT_EQ(Value(y).scalar<double>(), 2 + (first ? 0 : 2) + (second ? 0 : 1));
    }
  }
}

TEST_F(ControlFlow, CaseTakesTheFirstThatIsTrue) {
  const Output n = InputInt(0);
  const auto is = [&](int32_t i) { return Equal(n, Int(i)); };
  const auto give = [&](int32_t i) { return [this, i] { return Outputs{Int(i)}; }; };
  const Output y = Case(program_, {{is(1), give(10)}, {is(2), give(20)}}, give(30))[0];
  for (const auto& [value, wanted] : std::vector<std::pair<int, int>>{{1, 10}, {2, 20}, {3, 30}}) {
    Feed(n, Tensor::Scalar<int32_t>(value));
    EXPECT_EQ(Value(y).scalar<int32_t>(), wanted);
  }
}

TEST_F(ControlFlow, WhileCounts) {
  const Output limit = InputInt(1000);
  const Outputs last = While(
      program_, {Int(0), Int(1)}, [&](const Outputs& v) { return Less(v[1], limit); },
      [](const Outputs& v) {
        return Outputs{v[0] + 1, v[1] * 2};
      });
  EXPECT_EQ(Text(last[0]), "int32[] 10");
  EXPECT_EQ(Text(last[1]), "int32[] 1024");
  Feed(limit, Tensor::Scalar<int32_t>(1));
  EXPECT_EQ(Text(last[0]), "int32[] 0");
}

TEST_F(ControlFlow, WhatIsFromOutsideIsSeenInside) {
  const Output x = Input({1, 2});
  const Output y = While(
      program_, {Int(0), ZerosLike(x)}, [&](const Outputs& v) { return Less(v[0], Int(3)); },
      [&](const Outputs& v) {
        return Outputs{v[0] + 1, v[1] + x};
      })[1];
  EXPECT_EQ(y.shape().ToString(), "[2]");
  EXPECT_EQ(Text(y), "double[2] 3 6");
}

TEST_F(ControlFlow, LoopsInLoops) {
  const Output rows = InputInt(3);
  // sum over i < rows of i * (number of j < i)
  const Output y = While(
      program_, {Int(0), Int(0)}, [&](const Outputs& v) { return Less(v[0], rows); },
      [&](const Outputs& outer) {
        const Outputs inner = While(
            program_, {Int(0), outer[1]}, [&](const Outputs& v) { return Less(v[0], outer[0]); },
            [&](const Outputs& v) {
              return Outputs{v[0] + 1, v[1] + outer[0]};
            });
        return Outputs{outer[0] + 1, inner[1]};
      })[1];
  EXPECT_EQ(Text(y), "int32[] 5");
  Feed(rows, Tensor::Scalar<int32_t>(10));
  EXPECT_EQ(Text(y), "int32[] 285");
}

TEST_F(ControlFlow, CondsInLoopsAndLoopsInConds) {
  const Output pred = InputBool(true);
  // Collatz: counts the steps from 27 to 1.
  const auto collatz = [&] {
    const Output two = Int(2);
    return Outputs{While(
        program_, {Int(27), Int(0)},
        [&](const Outputs& v) {
          return Call("NotEqual", {v[0], Int(1)});
        },
        [&](const Outputs& v) {
          const Output even = Equal(Call("FloorMod", {v[0], two}), Int(0));
          const Output next = Cond(
              program_, even, [&] { return Outputs{v[0] / two}; },
              [&] { return Outputs{v[0] * 3 + 1}; })[0];
          return Outputs{next, v[1] + 1};
        })[1]};
  };
  const Output y = Cond(program_, pred, collatz, [&] { return Outputs{Int(-1)}; })[0];
  EXPECT_EQ(Text(y), "int32[] 111");
  Feed(pred, Tensor::Scalar(false));
  EXPECT_EQ(Text(y), "int32[] -1");
}

TEST_F(ControlFlow, EffectsHappenOncePerIteration) {
  const Variable count(program_, "count", {}, Zeros(), {.dtype = DType::kDouble});
  const Output one = Constant(program_, Tensor::Scalar(1.0));
  const Output y = While(
      program_, {Int(0)}, [&](const Outputs& v) { return Less(v[0], Int(5)); },
      [&](const Outputs& v) {
        const auto after = program_.ControlDependencies({count.AssignAdd(one)});
        return Outputs{v[0] + 1};
      })[0];
  ASSERT_TRUE(Run({count.IsInitialized()}).ok());
  ASSERT_TRUE(session_->Execute(count.initializer()).ok());
  EXPECT_EQ(Text(y), "int32[] 5");
  EXPECT_EQ((*session_->Run({count}))[0].ToString(), "double[] 5");
}

TEST_F(ControlFlow, ControlDependenciesReachIntoBodies) {
  const Variable count(program_, "count", {}, Zeros(), {.dtype = DType::kDouble});
  const Output one = Constant(program_, Tensor::Scalar(1.0));
  const Output add = count.AssignAdd(one);
  const Output y = While(
      program_, {Int(0)}, [&](const Outputs& v) { return Less(v[0], Int(3)); },
      [&](const Outputs& v) {
        const auto after = program_.ControlDependencies({add});
        return Outputs{v[0] + 1};
      })[0];
  ASSERT_TRUE(Run({count.IsInitialized()}).ok());
  ASSERT_TRUE(session_->Execute(count.initializer()).ok());
  EXPECT_EQ(Text(y), "int32[] 3");
  EXPECT_EQ((*session_->Run({count}))[0].ToString(), "double[] 1");
}

TEST_F(ControlFlow, ShapesMayChangeWhereThatIsSaid) {
  const Output x = Input({1, 2});
  const auto grow = [&](const Outputs& v) {
    return Outputs{v[0] + 1, ConcatV2({v[1], v[1]}, Int(0))};
  };
  const auto cond = [&](const Outputs& v) { return Less(v[0], Int(2)); };
  const Output y = While(program_, {Int(0), x}, cond, grow,
                         {.shape_invariants = {PartialShape::Scalar(), PartialShape({-1})}})[1];
  EXPECT_EQ(y.shape().ToString(), "[?]");
  EXPECT_EQ(Text(y), "double[8] 1 2 1 2 1 2 1 2");
  While(program_, {Int(0), x}, cond, grow);
  ExpectError("variable 1 has shape [2], but the body returns [4] for it; say in shape_invariants");
}

TEST_F(ControlFlow, MaximumIterations) {
  const auto forever = [&](const Outputs&) { return Constant(program_, Tensor::Scalar(true)); };
  const Output y =
      While(program_, {Int(0)}, forever, [](const Outputs& v) { return Outputs{v[0] + 1}; },
            {.parallel_iterations = 1, .maximum_iterations = 7})[0];
  EXPECT_EQ(Text(y), "int32[] 7");
}

TEST_F(ControlFlow, Mistakes) {
  const auto once = [&](const Outputs& v) { return Less(v[0], Int(1)); };
  const auto same = [](const Outputs& v) { return v; };
  const auto fails = [&](const std::function<void(Program&)>& build, const std::string& words) {
    Program program;
    build(program);
    EXPECT_NE(std::string(program.status().message()).find(words), std::string::npos)
        << program.status();
  };
  const auto zero = [](Program& p) { return Constant(p, Tensor::Scalar<int32_t>(0)); };
  fails([&](Program& p) { While(p, {}, once, same); }, "nothing that could change");
  fails(
      [&](Program& p) {
        While(
            p, {zero(p)}, [](const Outputs& v) { return v[0]; }, same);
      },
      "loop 'while/': the condition must be a bool, is int32[]");
  fails(
      [&](Program& p) {
        While(
            p, {zero(p)}, [&](const Outputs& v) { return Less(v[0], zero(p)); },
            [](const Outputs& v) { return Outputs{Cast(v[0], DType::kFloat)}; });
      },
      "variable 0 is int32, but the body returns float for it");
  fails(
      [&](Program& p) {
        While(
            p, {zero(p)}, [&](const Outputs& v) { return Less(v[0], zero(p)); },
            [](const Outputs& v) {
              return Outputs{v[0], v[0]};
            });
      },
      "the body gives 2 tensors for 1 variables");
  fails(
      [&](Program& p) {
        Cond(
            p, zero(p), [&] { return Outputs{}; }, [&] { return Outputs{}; });
      },
      "conditional 'cond/': the predicate must be a bool, is int32[]");
  fails(
      [&](Program& p) {
        const Output yes = Constant(p, Tensor::Scalar(true));
        Cond(
            p, yes, [&] { return Outputs{zero(p)}; }, [&] { return Outputs{yes}; });
      },
      "result 0 is int32 on one side and bool on the other");
  fails(
      [&](Program& p) {
        While(
            p, {zero(p)}, [&](const Outputs& v) { return Less(v[0], zero(p)); },
            [&](const Outputs& v) {
              Variable inside(p, "w", {}, Zeros());
              return v;
            });
      },
      "variable 'while/w' is made inside of a branch or a loop");
}

TEST_F(ControlFlow, FoldsAndScans) {
  const Output x = Input({1, 2, 3, 4});
  const Output zero = Constant(program_, Tensor::Scalar(0.0));
  const FoldFunction step = [](const Outputs& a, const Outputs& x) {
    return Outputs{a[0] * 2 + x[0]};
  };
  EXPECT_EQ(Text(FoldL(program_, {x}, {zero}, step)[0]), "double[] 26");
  EXPECT_EQ(Text(FoldR(program_, {x}, {zero}, step)[0]), "double[] 49");
  EXPECT_EQ(Text(Scan(program_, {x}, {zero}, step)[0]), "double[4] 1 4 11 26");
  EXPECT_EQ(Text(Scan(program_, {x}, {zero}, step, /*reverse=*/true)[0]), "double[4] 49 24 11 4");
  const Outputs mapped =
      MapFn(program_, {x}, {DType::kDouble, DType::kDouble}, [](const Outputs& x) {
        return Outputs{x[0] * 2, -x[0]};
      });
  EXPECT_EQ(Text(mapped[0]), "double[4] 2 4 6 8");
  EXPECT_EQ(Text(mapped[1]), "double[4] -1 -2 -3 -4");
  Output none = Input(Tensor(DType::kDouble, {0}));
  EXPECT_EQ(Text(Scan(program_, {none}, {zero}, step)[0]), "double[0]");
}

TEST_F(ControlFlow, ManyIterations) {
  const Output y = While(
      program_, {Int(0)}, [&](const Outputs& v) { return Less(v[0], Int(100000)); },
      [](const Outputs& v) { return Outputs{v[0] + 1}; })[0];
  EXPECT_EQ(Text(y), "int32[] 100000");
}

}  // namespace
}  // namespace penstock::client

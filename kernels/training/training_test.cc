// SPDX-License-Identifier: Apache-2.0
//
// Tests the update rules: compares them with TensorFlow, for every type and form, and for large
// variables.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/env.h"
#include "kernels/state/testing/test_variables.h"

namespace penstock {
namespace {

// One run of an op by TensorFlow 2.21 in double precision.
struct Case {
  std::string op;
  std::string flag;  // a flag that is set, or empty
  bool flag_value = false;
  std::vector<std::vector<double>> inputs;
  std::vector<std::vector<double>> state;  // the variable and its slots, after the update
};

std::vector<std::vector<double>> ParseNumbers(const std::string& line) {
  std::vector<std::vector<double>> numbers;
  for (const string_view list : absl::StrSplit(line, "; ")) {
    numbers.emplace_back();
    for (const string_view text : absl::StrSplit(list, ' ')) {
      double number = 0;
      CHECK(absl::SimpleAtod(text, &number), text);
      numbers.back().push_back(number);
    }
  }
  return numbers;
}

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = [] {
    const auto text = Env::Real().ReadFile("kernels/training/testdata/tensorflow_updates.txt");
    CHECK_OK(text.status());
    const std::vector<std::string> lines = absl::StrSplit(*text, '\n', absl::SkipEmpty());
    std::vector<Case> result;
    for (size_t i = 0; i + 2 < lines.size(); i += 3) {
      const std::vector<std::string> head = absl::StrSplit(lines[i], ' ');
      const std::vector<std::string> flag = absl::StrSplit(head[1], '=');
      result.push_back({.op = head[0],
                        .flag = flag.size() == 2 ? flag[0] : "",
                        .flag_value = flag.back() == "1",
                        .inputs = ParseNumbers(lines[i + 1]),
                        .state = ParseNumbers(lines[i + 2])});
    }
    return result;
  }();
  return cases;
}

template <class T>
Tensor TensorOf(const std::vector<double>& numbers, const Shape& shape) {
  Tensor tensor(kDTypeOf<T>, shape);
  CHECK(static_cast<size_t>(tensor.num_elements()) == numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i)
    tensor.mutable_flat<T>()[i] = static_cast<T>(numbers[i]);
  return tensor;
}

template <class T>
std::vector<double> NumbersOf(const Tensor& tensor) {
  std::vector<double> numbers;
  for (const T x : tensor.flat<T>()) numbers.push_back(static_cast<double>(x));
  return numbers;
}

// Runs `c`, with its numbers as T in rows of two, and returns the state afterwards.
template <class T, class Index = int64_t>
StatusOr<std::vector<std::vector<double>>> RunCase(const Case& c, const std::string& op_name) {
  TestVariables variables;
  ASSIGN_OR_RETURN(const OpDef* op, Registry::Global().GetOp(op_name));
  OpRunner run = variables.Op(op_name);
  if (!c.flag.empty()) run.Attr(c.flag, c.flag_value);
  if (!op->types.empty() && op->inputs[0].type.type == "resource") run.Attr("T", kDTypeOf<T>);
  std::vector<Tensor> handles;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const std::vector<double>& numbers = c.inputs[i];
    const auto count = static_cast<int64_t>(numbers.size());
    const ArgDef& input = op->inputs[i];
    if (i < c.state.size()) {
      handles.push_back(variables.New(TensorOf<T>(numbers, {count / 2, 2}), input.type.ref));
      run.In(handles.back());
    } else if (input.name == "indices") {
      run.In(TensorOf<Index>(numbers, {count}));
    } else if (input.type.type == "int64") {
      run.In(TensorOf<int64_t>(numbers, {}));
    } else {
      run.In(TensorOf<T>(numbers, count == 1 ? Shape() : Shape({count / 2, 2})));
    }
  }
  ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, run.Run());
  if (!outputs.empty()) {  // the op's output is the ref edge
    EXPECT_EQ(&TestVariables::Get(outputs[0]), &TestVariables::Get(handles[0]));
  }
  std::vector<std::vector<double>> state;
  for (const Tensor& handle : handles) {
    EXPECT_EQ(TestVariables::Get(handle).version(), 2);  // version 2: one assignment and one update
    state.push_back(NumbersOf<T>(TestVariables::Value(handle)));
  }
  return state;
}

void ExpectNear(const std::vector<std::vector<double>>& state,
                const std::vector<std::vector<double>>& expected, double tolerance,
                const std::string& what) {
  ASSERT_EQ(state.size(), expected.size());
  for (size_t i = 0; i < state.size(); ++i) {
    for (size_t k = 0; k < state[i].size(); ++k) {
      EXPECT_NEAR(state[i][k], expected[i][k], tolerance * (1 + std::abs(expected[i][k])))
          << what << ", state " << i << " element " << k;
    }
  }
}

TEST(Updates, AreTensorFlows) {
  ASSERT_EQ(Cases().size(), 76);
  for (const Case& c : Cases()) {
    const auto state = RunCase<double>(c, c.op);
    ASSERT_EQ(state.status(), OkStatus()) << c.op;
    ExpectNear(*state, c.state, 1e-13, c.op);
  }
}

TEST(Updates, AreTheSameOnReferences) {
  int found = 0;
  for (const Case& c : Cases()) {
    const std::string name = c.op.substr(strlen("Resource"));
    if (Registry::Global().FindOp(name) == nullptr) continue;  // Keras's rules have no ref form
    ++found;
    const auto state = RunCase<double, int32_t>(c, name);
    ASSERT_EQ(state.status(), OkStatus()) << name;
    ExpectNear(*state, c.state, 1e-13, name);
  }
  EXPECT_EQ(found, 70);
}

// Returns the numbers of a case rounded to T.
template <class T>
Case Rounded(Case c) {
  for (auto& numbers : c.inputs) {
    for (double& number : numbers) number = static_cast<double>(static_cast<T>(number));
  }
  return c;
}

template <class T>
class TypedUpdates : public testing::Test {};
using FloatTypes = testing::Types<float, half, bfloat16>;
TYPED_TEST_SUITE(TypedUpdates, FloatTypes);

TYPED_TEST(TypedUpdates, DifferFromDoublesByRounding) {
  const double epsilon = std::is_same_v<TypeParam, float>  ? 0x1p-23
                         : std::is_same_v<TypeParam, half> ? 0x1p-10
                                                           : 0x1p-7;
  for (const Case& original : Cases()) {
    const Case c = Rounded<TypeParam>(original);
    const auto expected = RunCase<double>(c, c.op);
    const auto state = RunCase<TypeParam>(c, c.op);
    ASSERT_EQ(state.status(), OkStatus()) << c.op;
    ASSERT_EQ(expected.status(), OkStatus());
    // A row is updated up to three times, and subtracting square roots loses some digits.
    ExpectNear(*state, *expected, 16 * epsilon, c.op);
  }
}

// A complex number without an imaginary part is updated like the real number.
TEST(Updates, OfComplexNumbers) {
  using Complex = std::complex<double>;
  TestVariables variables;
  const auto scalar = [](double x) { return Tensor::Scalar(Complex(x)); };
  const Tensor var = variables.New(Tensor::Vector<Complex>({{1, 2}}));
  const Tensor accum = variables.New(Tensor::Vector<Complex>({{0.5, 1}}));
  const Tensor grad = Tensor::Vector<Complex>({{2, -2}});
  ASSERT_EQ(variables.Op("ResourceApplyMomentum")
                .Attr("T", DType::kComplex128)
                .In(var)
                .In(accum)
                .In(scalar(0.5))
                .In(grad)
                .In(scalar(2))
                .Run()
                .status(),
            OkStatus());
  EXPECT_EQ(TestVariables::Value(accum).flat<Complex>()[0], Complex(3, 0));
  EXPECT_EQ(TestVariables::Value(var).flat<Complex>()[0], Complex(-0.5, 2));
}

TEST(Updates, OfLargeVariablesAreThoseOfTheirElements) {
  constexpr int64_t kRows = 50'000, kColumns = 20;  // a million elements, for several threads
  TestVariables variables;
  Tensor value(DType::kFloat, {kRows, kColumns}), grad(DType::kFloat, {kRows, kColumns});
  for (int64_t i = 0; i < value.num_elements(); ++i) {
    value.mutable_flat<float>()[i] = static_cast<float>(i % 1000);
    grad.mutable_flat<float>()[i] = static_cast<float>(i % 7);
  }
  const Tensor dense = variables.New(value, true);
  ASSERT_EQ(variables.Op("ApplyGradientDescent")
                .In(dense)
                .In(Tensor::Scalar(2.0f))
                .In(grad)
                .Run()
                .status(),
            OkStatus());
  // Every row occurs twice, in descending and in ascending order.
  std::vector<int32_t> rows;
  for (int64_t row = 0; row < kRows; ++row) rows.push_back(static_cast<int32_t>(kRows - 1 - row));
  for (int64_t row = 0; row < kRows; ++row) rows.push_back(static_cast<int32_t>(row));
  Tensor twice(DType::kFloat, {2 * kRows, kColumns});
  for (int64_t k = 0; k < 2 * kRows; ++k) {
    for (int64_t c = 0; c < kColumns; ++c) {
      twice.mutable_flat<float>()[k * kColumns + c] = grad.flat<float>()[rows[k] * kColumns + c];
    }
  }
  const Tensor sparse = variables.New(value);
  const Tensor accum = variables.New(Tensor(DType::kFloat, {kRows, kColumns}));
  const auto zero = [&](Tensor handle) {
    Tensor zeros(DType::kFloat, {kRows, kColumns});
    std::fill_n(zeros.mutable_data<float>(), zeros.num_elements(), 0.0f);
    CHECK_OK(variables.Op("AssignVariableOp").In(handle).In(zeros).Run().status());
  };
  zero(accum);
  ASSERT_EQ(variables.Op("ResourceSparseApplyMomentum")
                .Attr("T", DType::kFloat)
                .In(sparse)
                .In(accum)
                .In(Tensor::Scalar(1.0f))
                .In(twice)
                .In(Tensor::Vector(rows))
                .In(Tensor::Scalar(0.0f))
                .Run()
                .status(),
            OkStatus());
  const Tensor a = TestVariables::Value(dense), b = TestVariables::Value(sparse);
  for (int64_t i = 0; i < value.num_elements(); ++i) {
    const float expected = value.flat<float>()[i] - 2 * grad.flat<float>()[i];
    ASSERT_EQ(a.flat<float>()[i], expected) << i;
    ASSERT_EQ(b.flat<float>()[i], expected) << i;
  }
}

// If a reader, such as a save, holds the values of some of the state, the update writes new
// buffers.
TEST(Updates, OfSharedValuesAreThoseOfOwnValues) {
  constexpr int64_t kElements = 100'003;  // for several threads; not a multiple of a block
  Tensor value(DType::kFloat, {kElements}), grad(DType::kFloat, {kElements});
  for (int64_t i = 0; i < kElements; ++i) {
    value.mutable_flat<float>()[i] = static_cast<float>(i % 1000 + 1);
    grad.mutable_flat<float>()[i] = static_cast<float>(i % 7);
  }
  TestVariables variables;
  std::vector<std::vector<double>> results;
  for (int shared = 0; shared < 8; ++shared) {  // a bit for each of var, m and v
    std::vector<Tensor> handles, before;
    OpRunner op = variables.Op("ResourceApplyAdam");
    for (int i = 0; i < 3; ++i) {
      handles.push_back(variables.New(value));
      op.In(handles[i]);
      // The first update makes the variable the only owner of its value.
      CHECK_OK(variables.Op("AssignAddVariableOp").In(handles[i]).In(grad).Run().status());
      if ((shared >> i & 1) != 0) before.push_back(TestVariables::Value(handles[i]));
    }
    for (const float h : {0.5f, 0.25f, 0.1f, 0.9f, 0.999f, 1e-8f}) op.In(Tensor::Scalar(h));
    ASSERT_EQ(op.In(grad).Run().status(), OkStatus());
    results.emplace_back();
    for (const Tensor& handle : handles) {
      const std::vector<double> numbers = NumbersOf<float>(TestVariables::Value(handle));
      results.back().insert(results.back().end(), numbers.begin(), numbers.end());
    }
    EXPECT_EQ(results.back(), results.front()) << shared;
    for (const Tensor& old : before) {
      for (int64_t i = 0; i < kElements; ++i) {
        ASSERT_EQ(old.flat<float>()[i], value.flat<float>()[i] + grad.flat<float>()[i]);
      }
    }
  }
}

// Each call has one error, and must fail without changing the variable.
TEST(Updates, ValidateBeforeTheyWrite) {
  const struct {
    const char* error;
    Tensor lr = Tensor::Scalar(1.0f);
    Tensor grad = Tensor::Of<float>({2, 2}, {1, 1, 1, 1});
    Tensor indices = Tensor::Vector<int32_t>({0, 1});
    Shape accum = Shape({3, 2});
  } cases[] = {
      {.error = "lr is not a scalar", .lr = Tensor::Vector<float>({1})},
      {.error = "a row for each index", .grad = Tensor::Of<float>({2, 1}, {1, 1})},
      {.error = "a row for each index", .grad = Tensor::Of<float>({1, 2}, {1, 1})},
      {.error = "a row for each index", .grad = Tensor::Scalar(1.0f)},
      {.error = "indices[1] = 3 is not in [0, 3)", .indices = Tensor::Vector<int32_t>({0, 3})},
      {.error = "indices[0] = -1 is not in [0, 3)", .indices = Tensor::Vector<int32_t>({-1, 3})},
      {.error = "one-dimensional", .indices = Tensor::Of<int32_t>({1, 2}, {0, 1})},
      {.error = "var and accum do not have the same shape: [3,2] [2,3]", .accum = {2, 3}},
  };
  for (const auto& c : cases) {
    TestVariables variables;
    const Tensor var = variables.New(Tensor::Of<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
    // The declared shape is unknown, so that the kernel has to find the errors.
    const Tensor handle = variables.Handle("unknown", DType::kFloat, PartialShape());
    ASSERT_EQ(
        variables.Op("AssignVariableOp").In(handle).In(TestVariables::Value(var)).Run().status(),
        OkStatus());
    Tensor zeros(DType::kFloat, c.accum);
    std::fill_n(zeros.mutable_data<float>(), 6, 0.0f);
    const Tensor accum = variables.Handle("accum", DType::kFloat, PartialShape());
    ASSERT_EQ(variables.Op("AssignVariableOp").In(accum).In(zeros).Run().status(), OkStatus());
    const auto status = variables.Op("ResourceSparseApplyMomentum")
                            .Attr("T", DType::kFloat)
                            .In(handle)
                            .In(accum)
                            .In(c.lr)
                            .In(c.grad)
                            .In(c.indices)
                            .In(Tensor::Scalar(0.0f))
                            .Run()
                            .status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << c.error;
    if (c.lr.rank() == 0 && c.indices.rank() == 1) {
      EXPECT_NE(std::string(status.message()).find(c.error), std::string::npos) << status;
    }
    EXPECT_EQ(TestVariables::Get(handle).version(), 1);
    EXPECT_EQ(TestVariables::Value(handle).flat<float>(),
              absl::Span<const float>({1, 2, 3, 4, 5, 6}));
  }
}

TEST(Updates, NeedEverySlotInitialized) {
  TestVariables variables;
  const Tensor var = variables.New(Tensor::Vector<float>({1}));
  const Tensor accum = variables.Handle("momentum_slot", DType::kFloat, {1});
  const auto status = variables.Op("ResourceApplyMomentum")
                          .Attr("T", DType::kFloat)
                          .In(var)
                          .In(accum)
                          .In(Tensor::Scalar(1.0f))
                          .In(Tensor::Vector<float>({1}))
                          .In(Tensor::Scalar(1.0f))
                          .Run()
                          .status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(std::string(status.message()).find("uninitialized value momentum_slot"),
            std::string::npos)
      << status;
  EXPECT_EQ(TestVariables::Value(var).flat<float>()[0], 1);
}

TEST(Updates, RatesAreChecked) {
  TestVariables variables;
  const auto run = [&](float lr, float l1, float lr_power) {
    const Tensor one = Tensor::Vector<float>({1});
    return variables.Op("SparseApplyFtrl")
        .In(variables.New(one, true))
        .In(variables.New(one, true))
        .In(variables.New(one, true))
        .In(one)
        .In(Tensor::Vector<int32_t>({0}))
        .In(Tensor::Scalar(lr))
        .In(Tensor::Scalar(l1))
        .In(Tensor::Scalar(0.0f))
        .In(Tensor::Scalar(lr_power))
        .Run()
        .status()
        .code();
  };
  EXPECT_EQ(run(1, 0, -0.5), StatusCode::kOk);
  EXPECT_EQ(run(0, 0, -0.5), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(1, -1, -0.5), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(1, 0, 0.5), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(NAN, 0, -0.5), StatusCode::kInvalidArgument);
}

// As in TensorFlow, updates of dense variables accept negative rates.
TEST(Updates, GoOnWithOddRates) {
  TestVariables variables;
  const auto three = [](float a, float b, float c) { return Tensor::Vector<float>({a, b, c}); };
  const auto rate = [](float x) { return Tensor::Scalar(x); };
  const Tensor grad = three(1, -2, .5);
  const auto expect = [&](OpRunner& op, const Tensor& var, std::vector<float> expected) {
    ASSERT_EQ(op.Run().status(), OkStatus());
    const Tensor value = TestVariables::Value(var);
    for (int i = 0; i < 3; ++i) EXPECT_NEAR(value.flat<float>()[i], expected[i], 1e-6) << i;
  };
  const auto start = [&](const Tensor& var, std::initializer_list<Tensor> slots, const char* op) {
    OpRunner runner = variables.Op(op);
    runner.In(var);
    for (const Tensor& slot : slots) runner.In(variables.New(slot, true));
    return runner;
  };
  const Tensor a = variables.New(three(1, 2, -3), true);
  expect(start(a, {three(1, 1, 4), three(.5, -1, 2)}, "ApplyFtrl")
             .In(grad)
             .In(rate(-.5))
             .In(rate(-1))
             .In(rate(.25))
             .In(rate(-.5)),
         a, {1.4294745f, .74123144f, .8640884f});
  const Tensor b = variables.New(three(1, 2, -3), true);
  expect(start(b, {}, "ApplyProximalGradientDescent")
             .In(rate(-.5))
             .In(rate(.5))
             .In(rate(.25))
             .In(grad),
         b, {2, 1.4285715f, -3.4285715f});
  const Tensor c = variables.New(three(1, 2, -3), true);
  expect(start(c, {three(.5, 1, -1), three(1, 4, 1)}, "ApplyAdagradDA")
             .In(grad)
             .In(rate(.5))
             .In(rate(.5))
             .In(rate(.25))
             .In(Tensor::Scalar<int64_t>(-1)),
         c, {-.7756667f, .27742565f, .50350744f});
}

// Checks that readers see the variable before or after an update, never a part of an update, and
// that no update is lost.
TEST(Updates, AreAtomicAmongThreads) {
  constexpr int kThreads = 4, kUpdates = 200;
  constexpr int64_t kElements = 10'000;
  TestVariables variables;
  Tensor zeros(DType::kFloat, {kElements}), minus_ones(DType::kFloat, {kElements});
  std::fill_n(zeros.mutable_data<float>(), kElements, 0.0f);
  std::fill_n(minus_ones.mutable_data<float>(), kElements, -1.0f);
  const Tensor var = variables.New(zeros, true);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < kUpdates; ++k) {
        ASSERT_EQ(OpRunner("ApplyGradientDescent", variables.store())
                      .In(var)
                      .In(Tensor::Scalar(1.0f))
                      .In(minus_ones)
                      .Run()
                      .status(),
                  OkStatus());
        const Tensor seen = TestVariables::Value(var);
        const auto flat = seen.flat<float>();
        ASSERT_TRUE(std::all_of(flat.begin(), flat.end(), [&](float x) { return x == flat[0]; }));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(TestVariables::Value(var).flat<float>()[0], kThreads * kUpdates);
  EXPECT_EQ(TestVariables::Get(var).version(), 1 + kThreads * kUpdates);
}

}  // namespace
}  // namespace penstock

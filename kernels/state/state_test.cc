// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <thread>

#include "kernels/state/testing/test_variables.h"

namespace penstock {
namespace {

Tensor Floats(const std::vector<float>& values) { return Tensor::Vector(values); }
Tensor Ints(const std::vector<int32_t>& values) { return Tensor::Vector(values); }

std::vector<float> FloatsOf(const Tensor& tensor) {
  return {tensor.flat<float>().begin(), tensor.flat<float>().end()};
}

// Expects a status with this code whose message contains `text`.
#define EXPECT_ERROR(expression, status_code, text)                                   \
  do {                                                                                \
    const Status status = (expression);                                               \
    EXPECT_EQ(status.code(), StatusCode::status_code) << status;                      \
    EXPECT_NE(std::string(status.message()).find(text), std::string::npos) << status; \
  } while (false)

// Runs each test with both forms of variables: ref edges and resource handles.
class StateTest : public testing::TestWithParam<bool> {
 protected:
  bool ref() const { return GetParam(); }
  Tensor Handle(const std::string& name, PartialShape shape, DType dtype = DType::kFloat) {
    return variables_.Handle(name, dtype, std::move(shape), ref());
  }
  Tensor New(const Tensor& value) { return variables_.New(value, ref()); }
  // Runs an op of two inputs in the form that the test uses: "Assign" + "Add", or "AssignAdd" +
  // "VariableOp".
  Status Run(const std::string& op, const Tensor& handle, const Tensor& value) {
    return variables_.Op(ref() ? op : op + "VariableOp").In(handle).In(value).Run().status();
  }
  Status Scatter(const std::string& op, const Tensor& handle, const Tensor& indices,
                 const Tensor& updates, const Attrs& attrs = {}) {
    OpRunner runner = variables_.Op(ref() ? op : "Resource" + op);
    for (const auto& [name, value] : attrs) runner.Attr(name, value);
    return runner.In(handle).In(indices).In(updates).Run().status();
  }
  bool Initialized(const Tensor& handle) {
    return variables_.Op(ref() ? "IsVariableInitialized" : "VarIsInitializedOp")
        .In(handle)
        .Run1()
        ->scalar<bool>();
  }
  Tensor Value(const Tensor& handle) { return TestVariables::Value(handle); }

  TestVariables variables_;
};
INSTANTIATE_TEST_SUITE_P(Forms, StateTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Reference" : "Resource"; });

TEST_P(StateTest, ValuesOutliveTheirNodes) {
  const Tensor handle = Handle("w", {2});
  EXPECT_FALSE(Initialized(handle));
  ASSERT_EQ(Run("Assign", handle, Floats({1, 2})), OkStatus());
  EXPECT_TRUE(Initialized(handle));
  EXPECT_EQ(FloatsOf(Value(Handle("w", {2}))), FloatsOf(Floats({1, 2})));
  EXPECT_EQ(&TestVariables::Get(Handle("w", {2})), &TestVariables::Get(handle));
  EXPECT_NE(&TestVariables::Get(Handle("other", {2})), &TestVariables::Get(handle));
}

TEST_P(StateTest, ANameBelongsToOneTypeOfVariable) {
  Handle("w", {2});
  EXPECT_ERROR(variables_.Op("VarHandleOp")
                   .Attr("dtype", DType::kInt32)
                   .Attr("shape", Shape({2}))
                   .Attr("shared_name", "w")
                   .Run()
                   .status(),
               kInvalidArgument, "exists already, as float");
}

TEST_P(StateTest, ContainersKeepVariablesApart) {
  const auto make = [&](const char* container) {
    return *variables_.Op(ref() ? "VariableV2" : "VarHandleOp")
                .Attr("dtype", DType::kFloat)
                .Attr("shape", Shape({1}))
                .Attr("container", container)
                .NodeName("w")
                .Run1();
  };
  const Tensor here = make(""), there = make("there");
  EXPECT_EQ(here.scalar<ResourceHandle>().container, "localhost");
  EXPECT_NE(&TestVariables::Get(here), &TestVariables::Get(there));
  ASSERT_EQ(Run("Assign", here, Floats({1})), OkStatus());
  ASSERT_EQ(Run("Assign", there, Floats({2})), OkStatus());
  variables_.store()->ClearContainer("there");
  EXPECT_TRUE(Initialized(make("")));
  EXPECT_FALSE(Initialized(make("there")));
  EXPECT_FALSE(Initialized(there));  // an old handle does not keep the value alive
}

TEST_P(StateTest, UninitializedVariablesAreNamed) {
  const Tensor handle = Handle("lonely", {2});
  EXPECT_ERROR(Run("AssignAdd", handle, Floats({1, 2})), kFailedPrecondition,
               "Attempting to use uninitialized value lonely");
}

TEST_P(StateTest, AssignKeepsSnapshotsAsTheyWere) {
  const Tensor handle = New(Floats({1, 2}));
  const Tensor before = Value(handle);
  ASSERT_EQ(Run("AssignAdd", handle, Floats({10, 20})), OkStatus());
  ASSERT_EQ(Run("AssignSub", handle, Floats({1, 1})), OkStatus());
  EXPECT_EQ(FloatsOf(before), FloatsOf(Floats({1, 2})));
  EXPECT_EQ(FloatsOf(Value(handle)), FloatsOf(Floats({10, 21})));
  EXPECT_EQ(TestVariables::Get(handle).version(), 3);
}

TEST_P(StateTest, AssignedValuesMayBeSharedWithOthers) {
  const Tensor value = Floats({1, 2});
  const Tensor a = Handle("a", {2}), b = Handle("b", {2});
  ASSERT_EQ(Run("Assign", a, value), OkStatus());
  ASSERT_EQ(Run("Assign", b, value), OkStatus());
  ASSERT_EQ(Run("AssignAdd", a, value), OkStatus());
  EXPECT_EQ(FloatsOf(Value(a)), FloatsOf(Floats({2, 4})));
  EXPECT_EQ(FloatsOf(Value(b)), FloatsOf(Floats({1, 2})));
  EXPECT_EQ(FloatsOf(value), FloatsOf(Floats({1, 2})));
}

TEST_P(StateTest, AddingNeedsEqualShapes) {
  const Tensor handle = Handle("w", PartialShape());
  ASSERT_EQ(Run("Assign", handle, Floats({1, 2})), OkStatus());
  EXPECT_ERROR(Run("AssignAdd", handle, Floats({1, 2, 3})), kInvalidArgument, "[2]");
  EXPECT_ERROR(Run("AssignAdd", handle, Tensor::Scalar(1.0f)), kInvalidArgument, "must be equal");
  EXPECT_EQ(FloatsOf(Value(handle)), FloatsOf(Floats({1, 2})));
}

TEST_P(StateTest, IntegersWrapAround) {
  const Tensor handle = New(Ints({std::numeric_limits<int32_t>::max()}));
  ASSERT_EQ(Run("AssignAdd", handle, Ints({1})), OkStatus());
  EXPECT_EQ(Value(handle).flat<int32_t>()[0], std::numeric_limits<int32_t>::min());
  ASSERT_EQ(Scatter("ScatterDiv", handle, Ints({0}), Ints({-1})), OkStatus());
  EXPECT_EQ(Value(handle).flat<int32_t>()[0], std::numeric_limits<int32_t>::min());
}

TEST_P(StateTest, ScatterOps) {
  const struct {
    const char* op;
    std::vector<float> expected;
  } cases[] = {
      {"ScatterAdd", {1, 2, 6, 8, 35, 54}},      {"ScatterSub", {1, 2, 0, 0, -25, -42}},
      {"ScatterMul", {1, 2, 9, 16, 1000, 3456}}, {"ScatterDiv", {1, 2, 1, 1, 0.025, 6.0 / 576}},
      {"ScatterMin", {1, 2, 3, 4, 5, 6}},        {"ScatterMax", {1, 2, 3, 4, 20, 24}},
      {"ScatterUpdate", {1, 2, 3, 4, 20, 24}},
  };
  for (const auto& c : cases) {
    const Tensor handle = New(Tensor::Of<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
    // Updates row 2 twice, in this order, and row 1 once.
    ASSERT_EQ(
        Scatter(c.op, handle, Ints({2, 1, 2}), Tensor::Of<float>({3, 2}, {10, 24, 3, 4, 20, 24})),
        OkStatus());
    const auto expected = c.expected;
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_FLOAT_EQ(FloatsOf(Value(handle))[i], expected[i]) << c.op << " " << i;
    }
  }
}

TEST_P(StateTest, ScatterTakesScalarsAndIndicesOfAnyRank) {
  const Tensor handle = New(Floats({1, 2, 3}));
  ASSERT_EQ(Scatter("ScatterAdd", handle, Tensor::Scalar<int64_t>(1), Tensor::Scalar(10.0f)),
            OkStatus());
  ASSERT_EQ(
      Scatter("ScatterMul", handle, Tensor::Of<int64_t>({2, 1}, {0, 2}), Tensor::Scalar(2.0f)),
      OkStatus());
  ASSERT_EQ(Scatter("ScatterSub", handle, Tensor::Of<int32_t>({1, 2}, {0, 0}),
                    Tensor::Of<float>({1, 2}, {1, 1})),
            OkStatus());
  ASSERT_EQ(Scatter("ScatterAdd", handle, Tensor(DType::kInt32, {0}), Tensor(DType::kFloat, {0})),
            OkStatus());
  EXPECT_EQ(FloatsOf(Value(handle)), FloatsOf(Floats({0, 12, 6})));
}

TEST_P(StateTest, ScatterMovesStrings) {
  const Tensor handle = New(Tensor::Vector<std::string>({"a", "b"}));
  ASSERT_EQ(Scatter("ScatterUpdate", handle, Ints({1}), Tensor::Vector<std::string>({"c"})),
            OkStatus());
  EXPECT_EQ(Value(handle).flat<std::string>()[1], "c");
}

TEST_P(StateTest, ScatterValidatesBeforeItWrites) {
  const Tensor handle = Handle("table", PartialShape());
  ASSERT_EQ(Run("Assign", handle, Floats({1, 2, 3})), OkStatus());
  EXPECT_ERROR(Scatter("ScatterAdd", handle, Ints({0, 3}), Floats({1, 1})), kInvalidArgument,
               "indices[1] = 3 is not in [0, 3)");
  EXPECT_ERROR(Scatter("ScatterAdd", handle, Tensor::Of<int32_t>({1, 2}, {0, -1}),
                       Tensor::Of<float>({1, 2}, {1, 1})),
               kInvalidArgument, "indices[0,1] = -1 is not in [0, 3)");
  EXPECT_ERROR(Scatter("ScatterAdd", handle, Ints({0, 1}), Floats({1})), kInvalidArgument,
               "updates");
  EXPECT_ERROR(Scatter("ScatterAdd", handle, Ints({0}), Tensor::Of<float>({1, 1}, {1})),
               kInvalidArgument, "updates");
  EXPECT_EQ(FloatsOf(Value(handle)), FloatsOf(Floats({1, 2, 3})));
  EXPECT_EQ(TestVariables::Get(handle).version(), 1);

  const Tensor ints = New(Ints({1, 2}));
  EXPECT_ERROR(Scatter("ScatterDiv", ints, Ints({0, 1}), Ints({1, 0})), kInvalidArgument,
               "division by zero");
  const Tensor scalar = Handle("scalar", PartialShape());
  ASSERT_EQ(Run("Assign", scalar, Tensor::Scalar(1.0f)), OkStatus());
  EXPECT_ERROR(Scatter("ScatterAdd", scalar, Ints({0}), Floats({1})), kInvalidArgument,
               "at least 1 dimensional");
}

TEST_P(StateTest, ScatterNdOps) {
  const Tensor handle = New(Tensor::Of<float>({2, 2}, {1, 2, 3, 4}));
  ASSERT_EQ(Scatter("ScatterNdAdd", handle, Tensor::Of<int32_t>({3, 2}, {0, 1, 1, 0, 0, 1}),
                    Floats({10, 20, 30})),
            OkStatus());
  EXPECT_EQ(FloatsOf(Value(handle)), FloatsOf(Floats({1, 42, 23, 4})));
  ASSERT_EQ(Scatter("ScatterNdUpdate", handle, Tensor::Of<int64_t>({1, 1}, {1}),
                    Tensor::Of<float>({1, 2}, {7, 8})),
            OkStatus());
  ASSERT_EQ(Scatter("ScatterNdSub", handle, Tensor(DType::kInt32, {2, 0}),
                    Tensor::Of<float>({2, 2, 2}, {1, 1, 1, 1, 1, 1, 1, 1})),
            OkStatus());
  EXPECT_EQ(FloatsOf(Value(handle)), FloatsOf(Floats({-1, 40, 5, 6})));
  EXPECT_ERROR(Scatter("ScatterNdAdd", handle, Tensor::Of<int32_t>({1, 2}, {0, 2}), Floats({1})),
               kInvalidArgument, "indices[0] = [0, 2] does not index into shape [2,2]");
  EXPECT_ERROR(Scatter("ScatterNdAdd", handle, Tensor::Of<int32_t>({1, 2}, {0, 1}), Floats({1, 2})),
               kInvalidArgument, "updates");
}

TEST_P(StateTest, ScatterNdIgnoresBadIndicesIfAsked) {
  const Tensor handle = New(Floats({1, 2, 3}));
  ASSERT_EQ(Scatter("ScatterNdAdd", handle, Tensor::Of<int32_t>({4, 1}, {3, 0, -1, 2}),
                    Floats({10, 20, 30, 40}), {{"bad_indices_policy", "IGNORE"}}),
            OkStatus());
  EXPECT_EQ(FloatsOf(Value(handle)), FloatsOf(Floats({21, 2, 43})));
}

TEST_P(StateTest, CountUpTo) {
  const Tensor handle = New(Tensor::Scalar<int64_t>(0));
  const auto count = [&] {
    return variables_.Op(ref() ? "CountUpTo" : "ResourceCountUpTo")
        .In(handle)
        .Attr("T", DType::kInt64)
        .Attr("limit", 2)
        .Run1();
  };
  EXPECT_EQ(count()->scalar<int64_t>(), 0);
  EXPECT_EQ(count()->scalar<int64_t>(), 1);
  EXPECT_ERROR(count().status(), kOutOfRange, "Reached limit of 2");
  EXPECT_EQ(Value(handle).scalar<int64_t>(), 2);
}

// Checks that no update is lost, and that no reader sees half of an update.
TEST_P(StateTest, ThreadsUpdateOneVariable) {
  constexpr int kThreads = 4, kUpdates = 250;
  const Tensor handle = New(Tensor::Vector(std::vector<float>(1000, 0)));
  const Tensor ones = Tensor::Vector(std::vector<float>(1000, 1));
  std::vector<int32_t> all(1000);
  for (int i = 0; i < 1000; ++i) all[i] = i;
  const Tensor indices = Tensor::Vector(all);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kUpdates; ++i) {
        const Status updated = t % 2 == 0 ? Run("AssignAdd", handle, ones)
                                          : Scatter("ScatterAdd", handle, indices, ones);
        ASSERT_EQ(updated, OkStatus());
        const std::vector<float> seen = FloatsOf(Value(handle));
        ASSERT_EQ(std::count(seen.begin(), seen.end(), seen[0]), 1000);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(FloatsOf(Value(handle)), std::vector<float>(1000, kThreads * kUpdates));
}

TEST(Assign, ChecksShapesWhereAsked) {
  TestVariables variables;
  const Tensor handle = variables.Handle("w", DType::kFloat, {2}, true);
  const auto assign = [&](const Tensor& value, bool validate) {
    return variables.Op("Assign").In(handle).In(value).Attr("validate_shape", validate).Run();
  };
  EXPECT_FALSE(assign(Floats({1, 2, 3}), true).ok());
  const auto outputs = assign(Floats({1, 2, 3}), false);
  ASSERT_EQ(outputs.status(), OkStatus());
  EXPECT_EQ(&TestVariables::Get((*outputs)[0]), &TestVariables::Get(handle));
  EXPECT_EQ(TestVariables::Value(handle).shape(), Shape({3}));
  // Hides the shape, so that the kernel itself has to check.
  Tensor vague = handle.Clone();
  vague.mutable_data<ResourceHandle>()->elements[0].shape = PartialShape();
  EXPECT_ERROR(variables.Op("Assign").In(vague).In(Floats({1})).Run().status(), kInvalidArgument,
               "Assign requires shapes of both tensors to match");
}

// Expected values are those of TensorFlow 2.21.
TEST(Assign, AResourceIsComparedWithTheValueItHas) {
  TestVariables variables;
  const Tensor handle = variables.Handle("w", DType::kFloat, {2}, false);
  const auto assign = [&](const Tensor& value, bool validate) {
    return variables.Op("AssignVariableOp")
        .SetKnownInputs(OpRunner::Known::kNothing)
        .In(handle)
        .In(value)
        .Attr("validate_shape", validate)
        .Run()
        .status();
  };
  EXPECT_EQ(assign(Floats({1, 2, 3}), true), OkStatus()) << "the first value";
  EXPECT_EQ(assign(Floats({1, 2, 3}), true), OkStatus());
  EXPECT_ERROR(assign(Floats({1, 2}), true), kInvalidArgument,
               "Trying to assign to variable with tensor with wrong shape. Expected [3] got [2]");
  EXPECT_EQ(assign(Floats({1, 2}), false), OkStatus());
  EXPECT_EQ(TestVariables::Value(handle).shape(), Shape({2}));
}

TEST(Variable, LegacyScalarShapeMeansUnknown) {
  TestVariables variables;
  const auto handle =
      variables.Op("Variable").Attr("dtype", DType::kFloat).Attr("shape", Shape()).Run1();
  ASSERT_EQ(handle.status(), OkStatus());
  EXPECT_EQ(variables.Op("Assign").In(*handle).In(Floats({1, 2})).Run().status(), OkStatus());
}

TEST(ReadVariableOp, ReadsWhatItSays) {
  TestVariables variables;
  const Tensor handle = variables.New(Floats({1, 2}));
  EXPECT_EQ(
      FloatsOf(*variables.Op("ReadVariableOp").Attr("dtype", DType::kFloat).In(handle).Run1()),
      FloatsOf(Floats({1, 2})));
  EXPECT_ERROR(
      variables.Op("ReadVariableOp").Attr("dtype", DType::kInt32).In(handle).Run1().status(),
      kInvalidArgument, "float");
  EXPECT_ERROR(variables.Op("ReadVariableOp")
                   .Attr("dtype", DType::kFloat)
                   .In(variables.Handle("empty", DType::kFloat, {2}))
                   .Run1()
                   .status(),
               kFailedPrecondition, "uninitialized value empty");
}

TEST(ReadVariableOp, HandlesFromElsewhereAreResolvedByName) {
  TestVariables variables;
  Tensor handle = variables.New(Floats({1, 2})).Clone();
  handle.mutable_data<ResourceHandle>()->resource = nullptr;
  const auto read = [&] {
    return variables.Op("ReadVariableOp").Attr("dtype", DType::kFloat).In(handle).Run1();
  };
  EXPECT_EQ(FloatsOf(*read()), FloatsOf(Floats({1, 2})));
  handle.mutable_data<ResourceHandle>()->name = "nobody";
  EXPECT_ERROR(read().status(), kNotFound, "nobody");
}

TEST(VariableShape, IsThatOfTheValue) {
  TestVariables variables;
  const Tensor handle = variables.New(Tensor(DType::kFloat, {3, 0, 5}));
  EXPECT_EQ(variables.Op("VariableShape").In(handle).Run1()->flat<int32_t>(),
            absl::Span<const int32_t>({3, 0, 5}));
  EXPECT_EQ(variables.Op("VariableShape")
                .In(handle)
                .Attr("out_type", DType::kInt64)
                .Run1()
                ->flat<int64_t>(),
            absl::Span<const int64_t>({3, 0, 5}));
}

TEST(ResourceGather, CopiesRows) {
  TestVariables variables;
  const auto gather = [&](const Tensor& handle, const Tensor& indices) {
    return variables.Op("ResourceGather")
        .Attr("dtype", handle.scalar<ResourceHandle>().elements[0].dtype)
        .In(handle)
        .In(indices)
        .Run1();
  };
  const Tensor handle = variables.New(Tensor::Of<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
  const auto rows = gather(handle, Tensor::Of<int64_t>({2, 2}, {2, 0, 1, 2}));
  ASSERT_EQ(rows.status(), OkStatus());
  EXPECT_EQ(rows->shape(), Shape({2, 2, 2}));
  EXPECT_EQ(FloatsOf(*rows), FloatsOf(Floats({5, 6, 1, 2, 3, 4, 5, 6})));
  EXPECT_ERROR(gather(handle, Ints({0, 3})).status(), kInvalidArgument,
               "indices[1] = 3 is not in [0, 3)");
  const Tensor names = variables.New(Tensor::Vector<std::string>({"a", "b"}));
  EXPECT_EQ(gather(names, Ints({1}))->flat<std::string>()[0], "b");
  EXPECT_ERROR(variables.Op("ResourceGather")
                   .Attr("dtype", DType::kFloat)
                   .Attr("batch_dims", 1)
                   .In(handle)
                   .In(Ints({0}))
                   .Run1()
                   .status(),
               kUnimplemented, "batch_dims");
}

TEST(ResourceGatherNd, CopiesSlices) {
  TestVariables variables;
  const Tensor handle = variables.New(Tensor::Of<float>({2, 2}, {1, 2, 3, 4}));
  const auto gather = [&](const Tensor& indices) {
    return variables.Op("ResourceGatherNd")
        .Attr("dtype", DType::kFloat)
        .In(handle)
        .In(indices)
        .Run1();
  };
  EXPECT_EQ(FloatsOf(*gather(Tensor::Of<int32_t>({2, 2}, {1, 0, 0, 1}))), FloatsOf(Floats({3, 2})));
  EXPECT_EQ(FloatsOf(*gather(Tensor::Of<int32_t>({1, 1}, {1}))), FloatsOf(Floats({3, 4})));
  EXPECT_FALSE(gather(Tensor::Of<int32_t>({1, 1}, {2})).ok());
}

TEST(DestroyResourceOp, DropsTheVariable) {
  TestVariables variables;
  const Tensor handle = variables.New(Floats({1}));
  const auto destroy = [&](bool ignore) {
    return variables.Op("DestroyResourceOp").In(handle).Attr("ignore_lookup_error", ignore).Run();
  };
  ASSERT_EQ(destroy(false).status(), OkStatus());
  EXPECT_FALSE(variables.Op("VarIsInitializedOp").In(handle).Run1()->scalar<bool>());
  EXPECT_EQ(destroy(true).status(), OkStatus());
  EXPECT_ERROR(destroy(false).status(), kNotFound, "v0");
  EXPECT_EQ(variables.store()->List().size(), 0);
}

TEST(TemporaryVariable, StartsAsZeros) {
  TestVariables variables;
  const auto handle = variables.Op("TemporaryVariable")
                          .Attr("dtype", DType::kFloat)
                          .Attr("shape", Shape({2}))
                          .Attr("var_name", "t")
                          .Run1();
  ASSERT_EQ(handle.status(), OkStatus());
  EXPECT_EQ(FloatsOf(TestVariables::Value(*handle)), FloatsOf(Floats({0, 0})));
  EXPECT_EQ(variables.store()->List().size(), 0);  // the end of the step has deleted the variable
}

TEST(Kernels, WantHandles) {
  TestVariables variables;
  EXPECT_ERROR(variables.Op("VarIsInitializedOp").In(Tensor(DType::kResource, {2})).Run1().status(),
               kInvalidArgument, "must be the handle of a variable");
}

}  // namespace
}  // namespace penstock

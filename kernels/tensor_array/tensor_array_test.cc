// SPDX-License-Identifier: Apache-2.0
//
// Tests arrays and stacks with resource handles, op by op. Expected values and error texts are
// TensorFlow's. (The other two forms of handles need a step of several ops: see
// client/tensor_array_test.cc.)
#include <gtest/gtest.h>

#include <limits>
#include <thread>
#include <vector>

#include "core/op/testing/op_runner.h"

namespace penstock {
namespace {

const Tensor kFlow = Tensor::Scalar(0.0f);

Tensor Floats(const std::vector<float>& values) { return Tensor::Vector(values); }
Tensor Index(int32_t i) { return Tensor::Scalar(i); }
Tensor Indices(const std::vector<int32_t>& values) { return Tensor::Vector(values); }

struct Array {
  explicit Array(int32_t size, Attrs attrs = {}, DType dtype = DType::kFloat) : dtype(dtype) {
    OpRunner run("TensorArrayV3");
    run.In(Index(size)).Attr("dtype", dtype);
    for (const auto& [name, value] : attrs) run.Attr(name, value);
    handle = (*run.Run())[0];
  }
  Array(Tensor handle, DType dtype) : handle(std::move(handle)), dtype(dtype) {}

  // Hides shapes from the shape function, so that the kernel has to check them.
  Status Write(int32_t i, Tensor value) {
    return OpRunner("TensorArrayWriteV3")
        .SetKnownInputs(OpRunner::Known::kNothing)
        .In(handle)
        .In(Index(i))
        .In(value)
        .In(kFlow)
        .Run()
        .status();
  }
  StatusOr<Tensor> Read(int32_t i) {
    return OpRunner("TensorArrayReadV3")
        .Attr("dtype", dtype)
        .In(handle)
        .In(Index(i))
        .In(kFlow)
        .Run1();
  }
  StatusOr<Tensor> Gather(const std::vector<int32_t>& indices, PartialShape each = {}) {
    return OpRunner("TensorArrayGatherV3")
        .Attr("dtype", dtype)
        .Attr("element_shape", each)
        .In(handle)
        .In(Indices(indices))
        .In(kFlow)
        .Run1();
  }
  Status Scatter(const std::vector<int32_t>& indices, Tensor value) {
    return OpRunner("TensorArrayScatterV3")
        .In(handle)
        .In(Indices(indices))
        .In(value)
        .In(kFlow)
        .Run()
        .status();
  }
  StatusOr<std::vector<Tensor>> Concat(PartialShape rest = {}) {
    return OpRunner("TensorArrayConcatV3")
        .Attr("dtype", dtype)
        .Attr("element_shape_except0", rest)
        .In(handle)
        .In(kFlow)
        .Run();
  }
  Status Split(Tensor value, const std::vector<int64_t>& lengths) {
    return OpRunner("TensorArraySplitV3")
        .In(handle)
        .In(value)
        .In(Tensor::Vector(lengths))
        .In(kFlow)
        .Run()
        .status();
  }
  int32_t Size() {
    return OpRunner("TensorArraySizeV3").In(handle).In(kFlow).Run1()->scalar<int32_t>();
  }
  Array Gradient(const std::string& source = "g") {
    return Array(
        (*OpRunner("TensorArrayGradV3").Attr("source", source).In(handle).In(kFlow).Run())[0],
        dtype);
  }

  Tensor handle;
  DType dtype;
};

void ExpectText(const StatusOr<Tensor>& tensor, const std::string& text) {
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->ToString(), text);
}

void ExpectError(const Status& status, const std::string& words) {
  EXPECT_FALSE(status.ok());
  EXPECT_NE(std::string(status.message()).find(words), std::string::npos) << status;
}

TEST(TensorArray, SizesAreBoundedAndTakeNoMemory) {
  EXPECT_EQ(OpRunner("TensorArrayV3")
                .In(Index(std::numeric_limits<int32_t>::max()))
                .Attr("dtype", DType::kFloat)
                .Run()
                .status()
                .code(),
            StatusCode::kResourceExhausted);
  Array large(1 << 24, {{"element_shape", PartialShape({2})}});
  EXPECT_TRUE(large.Write((1 << 24) - 1, Floats({1, 2})).ok());
  EXPECT_TRUE(large.Read(5).ok());
  Array grows(0, {{"dynamic_size", true}});
  EXPECT_EQ(grows.Write(1 << 24, Floats({1})).code(), StatusCode::kResourceExhausted);
}

TEST(TensorArray, EachPlaceIsWrittenAndReadOnce) {
  Array a(3);
  EXPECT_TRUE(a.Write(0, Floats({1, 2})).ok());
  ExpectError(a.Write(0, Floats({1, 2})),
              "Could not write to TensorArray index 0 because it has already been written to.");
  ExpectText(a.Read(0), "float[2] 1 2");
  ExpectError(a.Read(0).status(), "Could not read index 0 twice because it was cleared");
  ExpectError(a.Write(0, Floats({1})),
              "Could not write to TensorArray index 0 because it has already been read.");
  ExpectError(a.Read(1).status(), "Could not read from TensorArray index 1");
  ExpectError(a.Read(3).status(), "Tried to read from index 3 but array size is: 3");
  ExpectError(a.Write(3, Floats({1})),
              "Tried to write to index 3 but array is not resizeable and of size: 3");
  ExpectError(a.Write(-1, Floats({1})), "Tried to write to index -1");
  ExpectError(a.Write(1, Tensor::Scalar<int32_t>(1)), "dtype is float but Op is trying to write");
  ExpectError(OpRunner("TensorArrayV3").In(Index(-1)).Attr("dtype", DType::kFloat).Run().status(),
              "Size should be >= 0");
}

TEST(TensorArray, KeepsWhatWasReadWhereItIsToldSo) {
  Array a(1, {{"clear_after_read", false}});
  EXPECT_TRUE(a.Write(0, Floats({1, 2})).ok());
  ExpectText(a.Read(0), "float[2] 1 2");
  ExpectText(a.Read(0), "float[2] 1 2");
  ExpectError(a.Write(0, Floats({1})), "because it has already been read.");
}

TEST(TensorArray, ReadsZerosWhereTheShapeIsKnown) {
  Array a(2, {{"element_shape", PartialShape({2})}});
  ExpectText(a.Read(0), "float[2] 0 0");
  ExpectError(a.Write(1, Floats({1})), "incompatible with the TensorArray's element shape: [2]");
  Array strings(1, {{"element_shape", PartialShape({1})}}, DType::kString);
  ExpectText(strings.Read(0), "string[1] \"\"");
}

TEST(TensorArray, IdenticalShapesAreThoseOfTheFirst) {
  Array a(2, {{"identical_element_shapes", true}});
  EXPECT_TRUE(a.Write(0, Floats({1})).ok());
  ExpectError(a.Write(1, Floats({1, 2})), "inferred element shape: [1]");
  ExpectText(a.Read(1), "float[1] 0");
}

TEST(TensorArray, GrowsWhereItIsDynamic) {
  Array a(2, {{"dynamic_size", true}});
  EXPECT_TRUE(a.Write(3, Floats({1})).ok());
  EXPECT_EQ(a.Size(), 4);
  ExpectError(a.Write(-1, Floats({1})), "Tried to write to index -1");
}

TEST(TensorArray, GatherAndScatter) {
  Array a(4);
  EXPECT_TRUE(a.Scatter({3, 0, 1}, Tensor::Of<float>({3, 2}, {1, 2, 3, 4, 5, 6})).ok());
  ExpectText(a.Gather({0, 3}), "float[2,2] 3 4 1 2");
  ExpectError(a.Gather({1, 2}).status(), "Could not read from TensorArray index 2");
  ExpectError(a.Gather({}).status(), "TensorArray has size zero, but element shape ?");
  ExpectText(a.Gather({}, PartialShape({4})), "float[0,4]");
  ExpectError(a.Scatter({2}, Tensor::Of<float>({2, 1}, {1, 2})), "");
  ExpectError(a.Scatter({2, 2}, Floats({1, 2})), "index 2 because it has already been written to");
  Array uneven(2);
  EXPECT_TRUE(uneven.Write(0, Floats({1})).ok());
  EXPECT_TRUE(uneven.Write(1, Floats({1, 2})).ok());
  ExpectError(uneven.Gather({0, 1}).status(), "Index 0 has shape: [1] but index 1 has shape: [2]");
}

TEST(TensorArray, StringsMoveToo) {
  Array a(2, {}, DType::kString);
  EXPECT_TRUE(a.Scatter({0, 1}, Tensor::Vector<std::string>({"x", "y"})).ok());
  ExpectText(a.Gather({1, 0}), "string[2] \"y\" \"x\"");
}

TEST(TensorArray, ConcatAndSplit) {
  Array a(2);
  EXPECT_TRUE(a.Split(Floats({1, 2, 3}), {3, 0}).ok());
  const auto joined = a.Concat();
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ((*joined)[0].ToString(), "float[3] 1 2 3");
  EXPECT_EQ((*joined)[1].ToString(), "int64[2] 3 0");
  Array b(2);
  ExpectError(b.Split(Floats({1, 2, 3}), {2, 2}), "Expected sum of lengths to be equal");
  ExpectError(b.Split(Floats({1, 2, 3}), {4, -1}), "Expected sum of lengths to be equal");
  ExpectError(b.Split(Floats({1, 2, 3}), {3}), "size of lengths (2 vs. 1)");
  EXPECT_TRUE(b.Write(0, Tensor::Of<float>({1, 2}, {1, 2})).ok());
  EXPECT_TRUE(b.Write(1, Tensor::Of<float>({1, 1}, {1})).ok());
  ExpectError(b.Concat().status(), "has (excepting dimension 0) shape: [2]");
  Array scalars(1);
  EXPECT_TRUE(scalars.Write(0, Tensor::Scalar(1.0f)).ok());
  ExpectError(scalars.Concat().status(), "Did you mean to call pack?");
  ExpectError(Array(0).Concat().status(), "element_shape_except0");
  EXPECT_EQ((*Array(0).Concat(PartialShape({3})))[0].ToString(), "float[0,3]");
}

TEST(TensorArray, GradientsAddUp) {
  Array a(2);
  EXPECT_TRUE(a.Write(0, Floats({1, 2})).ok());
  Array g = a.Gradient();
  EXPECT_TRUE(g.Write(0, Floats({5, 6})).ok());
  EXPECT_TRUE(g.Write(0, Floats({1, 1})).ok());
  EXPECT_EQ(g.Size(), 2);
  ExpectError(g.Write(0, Floats({1})), "the existing shape is [2] but the new input shape is [1]");
  ExpectText(g.Read(0), "float[2] 6 7");
  ExpectError(g.Read(0).status(), "twice");
  ExpectError(g.Read(1).status(), "the element shape is not fully defined");
  ExpectText(a.Gradient("other").Read(0), "float[2] 0 0");
}

// Expected values are those of TensorFlow 2.21.
TEST(TensorArray, TheGradientOfASplitIsOfItsPartsAlone) {
  Array a(3, {{"dynamic_size", true}});
  ASSERT_TRUE(a.Split(Floats({1, 2, 3}), {1, 0, 2}).ok());
  ASSERT_TRUE(a.Write(3, Floats({4})).ok());
  EXPECT_EQ((*a.Concat())[0].ToString(), "float[4] 1 2 3 4");
  Array g = a.Gradient();
  ASSERT_TRUE(g.Split(Floats({5, 6, 7, 8}), {1, 0, 2, 1}).ok());
  ExpectText(g.Read(3), "float[1] 8");
  EXPECT_EQ((*g.Concat())[0].ToString(), "float[3] 5 6 7");
}

TEST(TensorArray, SumsOfEveryKindOfNumber) {
  for (const auto& [one, text] : std::vector<std::pair<Tensor, std::string>>{
           {Tensor::Vector<half>({half(1.5f)}), "half[1] 3"},
           {Tensor::Vector<double>({1.5}), "double[1] 3"},
           {Tensor::Vector<int8_t>({100}), "int8[1] -56"}}) {
    Array g = Array(1, {}, one.dtype()).Gradient();
    EXPECT_TRUE(g.Write(0, one).ok());
    EXPECT_TRUE(g.Write(0, one).ok());
    ExpectText(g.Read(0), text);
  }
  Array strings = Array(1, {}, DType::kString).Gradient();
  EXPECT_TRUE(strings.Write(0, Tensor::Scalar<std::string>("x")).ok());
  ExpectError(strings.Write(0, Tensor::Scalar<std::string>("x")), "no sum");
}

TEST(TensorArray, DoesNotGrowOnceItHasAGradient) {
  Array a(1, {{"dynamic_size", true}});
  EXPECT_TRUE(a.Write(0, Floats({1, 2})).ok());
  a.Gradient();
  ExpectError(a.Write(1, Floats({1, 2})), "array is not resizeable and of size: 1");
}

TEST(TensorArray, GradientWithShape) {
  Array a(1);
  EXPECT_TRUE(a.Write(0, Floats({1, 2})).ok());
  const auto handle = OpRunner("TensorArrayGradWithShape")
                          .Attr("source", "g")
                          .In(a.handle)
                          .In(kFlow)
                          .In(Indices({2}))
                          .Run();
  ASSERT_TRUE(handle.ok()) << handle.status();
  ExpectText(Array((*handle)[0], DType::kFloat).Read(0), "float[2,2] 0 0 0 0");
}

TEST(TensorArray, ClosedIsClosed) {
  Array a(2);
  ASSERT_TRUE(OpRunner("TensorArrayCloseV3").In(a.handle).Run().ok());
  ExpectError(a.Write(0, Floats({1})), "has already been closed.");
  ExpectError(a.Read(0).status(), "has already been closed.");
}

TEST(TensorArray, ManyThreads) {
  Array a(64), sum = Array(1).Gradient();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = t; i < 64; i += 4) {
        EXPECT_TRUE(a.Write(i, Floats({static_cast<float>(i)})).ok());
        EXPECT_TRUE(sum.Write(0, Floats({1})).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ExpectText(sum.Read(0), "float[1] 64");
  ExpectText(a.Read(63), "float[1] 63");
}

struct Stacked {
  explicit Stacked(int32_t max_size) {
    handle = *OpRunner("StackV2")
                  .In(Index(max_size))
                  .Attr("elem_type", DType::kFloat)
                  .Attr("stack_name", "s")
                  .Run1();
  }
  Status Push(Tensor value) { return OpRunner("StackPushV2").In(handle).In(value).Run().status(); }
  StatusOr<Tensor> Pop(DType dtype = DType::kFloat) {
    return OpRunner("StackPopV2").In(handle).Attr("elem_type", dtype).Run1();
  }
  Tensor handle;
};

TEST(Stack, LastInFirstOut) {
  Stacked s(-1);
  EXPECT_TRUE(s.Push(Floats({1})).ok());
  EXPECT_TRUE(s.Push(Floats({2, 3})).ok());
  ExpectText(s.Pop(), "float[2] 2 3");
  ExpectText(s.Pop(), "float[1] 1");
  ExpectError(s.Pop().status(), "is empty when calling Pop().");
}

TEST(Stack, Limits) {
  Stacked s(1);
  EXPECT_TRUE(s.Push(Floats({1})).ok());
  ExpectError(s.Push(Floats({1})), "overflowed its max_size (1)");
  ExpectError(s.Push(Index(1)), "holds float, not int32");
  ExpectError(s.Pop(DType::kInt32).status(), "holds float, not int32");
  ASSERT_TRUE(OpRunner("StackCloseV2").In(s.handle).Run().ok());
  ExpectError(s.Push(Floats({1})), "has already been closed.");
  ExpectError(OpRunner("StackPushV2").In(Array(1).handle).In(Index(1)).Run().status(),
              "the handle leads to a TensorArray");
}

}  // namespace
}  // namespace penstock

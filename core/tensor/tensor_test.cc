// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/tensor.h"

#include <new>
#include <thread>

#include "core/tensor/resource_handle.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(Tensor, InvalidByDefault) {
  const Tensor tensor;
  EXPECT_FALSE(tensor.valid());
  EXPECT_FALSE(tensor.unique());
  EXPECT_EQ(tensor.bytes(), 0);
  EXPECT_EQ(tensor.ToString(), "invalid tensor");
  EXPECT_FALSE(tensor.Clone().valid());
}

TEST(Tensor, HoldsItsElements) {
  const Tensor matrix = Tensor::Of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(matrix.dtype(), DType::kFloat);
  EXPECT_EQ(matrix.shape(), (Shape{2, 3}));
  EXPECT_EQ(matrix.num_elements(), 6);
  EXPECT_EQ(matrix.bytes(), 24);
  EXPECT_EQ(matrix.flat<float>()[4], 5);
  EXPECT_EQ(Tensor::Scalar<int64_t>(7).scalar<int64_t>(), 7);
  EXPECT_EQ(Tensor::Vector<std::string>({"a", "b"}).flat<std::string>()[1], "b");
  EXPECT_EQ(Tensor(DType::kFloat, {0, 3}).num_elements(), 0);
}

TEST(Tensor, CopiesShareAndAreCounted) {
  Tensor a = Tensor::Vector<int32_t>({1, 2, 3});
  EXPECT_TRUE(a.unique());
  Tensor b = a;
  EXPECT_TRUE(a.SharesBufferWith(b));
  EXPECT_FALSE(a.unique());
  Tensor c = std::move(b);
  EXPECT_FALSE(b.valid());  // NOLINT: moved from, on purpose
  EXPECT_EQ(c.flat<int32_t>()[2], 3);
  c = Tensor();
  EXPECT_TRUE(a.unique());
  a = *&a;  // self-assignment
  EXPECT_TRUE(a.unique());
  a = std::move(*&a);
  EXPECT_EQ(a.flat<int32_t>()[0], 1);
}

TEST(Tensor, SlicesShare) {
  const Tensor matrix = Tensor::Of<int32_t>({3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor middle = matrix.Slice(1, 2);
  EXPECT_EQ(middle.ToString(), "int32[1,2] 3 4");
  EXPECT_TRUE(middle.SharesBufferWith(matrix));
  EXPECT_EQ(matrix.Slice(1, 3).Slice(1, 2).ToString(), "int32[1,2] 5 6");
  EXPECT_EQ(matrix.Slice(3, 3).num_elements(), 0);
  EXPECT_EQ(Tensor(DType::kFloat, {0, 2}).Slice(0, 0).num_elements(), 0);
  EXPECT_EQ(Tensor::Vector<std::string>({"a", "b"}).Slice(1, 2).ToString(), "string[1] \"b\"");
  // The slice outlives the tensor that it is from.
  Tensor slice;
  {
    const Tensor whole = Tensor::Vector<std::string>({"x", "a string too long to be kept inline"});
    slice = whole.Slice(1, 2);
  }
  EXPECT_EQ(slice.flat<std::string>()[0], "a string too long to be kept inline");
  EXPECT_TRUE(slice.unique());
}

TEST(Tensor, OtherViews) {
  const Tensor flat = Tensor::Vector<float>({0, 1, 2, 3});
  const Tensor square = flat.Reshaped({2, 2});
  EXPECT_EQ(square.ToString(), "float[2,2] 0 1 2 3");
  EXPECT_TRUE(square.SharesBufferWith(flat));
  EXPECT_EQ(flat.Reinterpreted(DType::kInt32, {4}).flat<int32_t>()[1], 0x3f800000);
  EXPECT_EQ(flat.Reinterpreted(DType::kUint8, {16}).bytes(), 16);
}

TEST(Tensor, ClonesAreIndependent) {
  const Tensor slice = Tensor::Of<std::string>({2, 1}, {"a", "b"}).Slice(1, 2);
  Tensor copy = slice.Clone();
  EXPECT_FALSE(copy.SharesBufferWith(slice));
  copy.mutable_flat<std::string>()[0] = "c";
  EXPECT_EQ(slice.flat<std::string>()[0], "b");
  EXPECT_EQ(Tensor::Vector<half>({half(1.5f)}).Clone().ToString(), "half[1] 1.5");
  Tensor handles(DType::kResource, {2});
  handles.mutable_flat<ResourceHandle>()[1].name = "w";
  EXPECT_EQ(handles.Clone().flat<ResourceHandle>()[1].name, "w");
}

TEST(Tensor, SmallAndLargeAreAligned) {
  for (int64_t count : {1, 4, 5, 100, 1023, 1024, 1025, 100'000}) {
    const Tensor tensor(DType::kFloat, {count});
    const size_t alignment = count <= 4 ? 16 : Allocator::kAlignment;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.raw_data()) % alignment, 0) << count;
    EXPECT_EQ(tensor.buffer()->bytes(), tensor.bytes());
    EXPECT_EQ(tensor.buffer()->allocator(), &CpuAllocator());
  }
}

TEST(Tensor, MemoryReturns) {
  const int64_t before = CpuAllocator().stats().bytes_in_use;
  for (DType dtype : kAllTypes) {
    for (int64_t count : {0, 1, 3, 1000, 100'000}) {
      const StatusOr<Tensor> tensor = Tensor::Make(CpuAllocator(), dtype, {count});
      ASSERT_TRUE(tensor.ok()) << tensor.status();
      EXPECT_GT(CpuAllocator().stats().bytes_in_use, before);
    }
  }
  EXPECT_EQ(CpuAllocator().stats().bytes_in_use, before);
}

TEST(Tensor, TooLargeIsAnError) {
  const StatusOr<Tensor> tensor =
      Tensor::Make(CpuAllocator(), DType::kFloat, {int64_t{1} << 40, int64_t{1} << 20});
  EXPECT_EQ(tensor.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(tensor.status().message(),
            "no memory for a tensor float[1099511627776,1048576] of 4611686018427387904 bytes on "
            "CPU memory: the system has no more");
  // Guarded turns exceptions of constructors into ResourceExhausted.
  EXPECT_THROW(Tensor(DType::kFloat, {int64_t{1} << 40}), std::bad_alloc);
  // The number of bytes does not fit in 64 bits.
  EXPECT_EQ(Tensor::Make(CpuAllocator(), DType::kComplex128, {INT64_MAX}).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_EQ(Tensor::Make(CpuAllocator(), DType::kInvalid, {}).status().code(),
            StatusCode::kUnimplemented);
}

// Memory that tensors must treat as inaccessible to the CPU.
class DeviceMemory : public Allocator {
 public:
  const std::string& name() const override { return name_; }
  void* Allocate(size_t bytes) override { return CpuAllocator().Allocate(bytes); }
  void Deallocate(void* pointer, size_t bytes) override {
    CpuAllocator().Deallocate(pointer, bytes);
  }
  AllocatorStats stats() const override { return {}; }
  bool host_accessible() const override { return false; }

 private:
  const std::string name_ = "device memory";
};

TEST(Tensor, OnADevice) {
  DeviceMemory memory;
  const StatusOr<Tensor> tensor = Tensor::Make(memory, DType::kFloat, {2});
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(tensor->ToString(), "float[2] on device memory");
  EXPECT_EQ(tensor->buffer()->allocator(), &memory);
  EXPECT_EQ(Tensor::Make(memory, DType::kString, {2}).status().message(),
            "a tensor of type string cannot live in device memory");
}

TEST(Tensor, CopiesInItsMemory) {
  class CopyingMemory final : public DeviceMemory {
   public:
    Status Copy(const void* from, void* to, size_t bytes) override {
      copied += bytes;
      return OkStatus();
    }
    size_t copied = 0;
  } memory;
  const Tensor far = *Tensor::Make(memory, DType::kFloat, {2});
  const StatusOr<Tensor> copy = far.TryCloneInItsMemory();
  ASSERT_TRUE(copy.ok());
  EXPECT_EQ(copy->ToString(), "float[2] on device memory");
  EXPECT_FALSE(copy->SharesBufferWith(far));
  EXPECT_EQ(memory.copied, 8);

  DeviceMemory fixed;
  EXPECT_EQ(Tensor::Make(fixed, DType::kFloat, {2})->TryCloneInItsMemory().status(),
            Unimplemented("copying within device memory"));
  const Tensor words = Tensor::Vector<std::string>({"a", "b"});
  EXPECT_EQ(words.TryCloneInItsMemory()->ToString(), words.ToString());
  EXPECT_FALSE(Tensor().TryCloneInItsMemory()->valid());
}

// Foreign memory, for instance a message's.
class ForeignBuffer : public Buffer {
 public:
  ForeignBuffer(void* data, size_t bytes, bool* gone) : Buffer(data, bytes), gone_(gone) {}
  ~ForeignBuffer() override { *gone_ = true; }

 private:
  bool* gone_;
};

TEST(Tensor, WrapsForeignMemory) {
  int32_t memory[] = {1, 2, 3, 4};
  bool gone = false;
  {
    const Tensor tensor =
        Tensor::FromBuffer(DType::kInt32, {2, 2}, new ForeignBuffer(memory, sizeof memory, &gone));
    EXPECT_EQ(tensor.ToString(), "int32[2,2] 1 2 3 4");
    EXPECT_EQ(tensor.buffer()->allocator(), nullptr);
    const Tensor slice = tensor.Slice(1, 2);
    EXPECT_EQ(slice.raw_data(), &memory[2]);
  }
  EXPECT_TRUE(gone);
}

TEST(Tensor, PrintsEveryType) {
  const std::pair<Tensor, const char*> cases[] = {
      {Tensor::Scalar<float>(1.5f), "float[] 1.5"},
      {Tensor::Vector<double>({-1, 0.1}), "double[2] -1 0.1"},
      {Tensor::Vector<uint8_t>({0, 255}), "uint8[2] 0 255"},
      {Tensor::Vector<int8_t>({-128, 65}), "int8[2] -128 65"},
      {Tensor::Vector<int16_t>({-7}), "int16[1] -7"},
      {Tensor::Vector<uint16_t>({7}), "uint16[1] 7"},
      {Tensor::Vector<uint32_t>({7}), "uint32[1] 7"},
      {Tensor::Vector<uint64_t>({UINT64_MAX}), "uint64[1] 18446744073709551615"},
      {Tensor::Vector<int64_t>({INT64_MIN}), "int64[1] -9223372036854775808"},
      {Tensor::Vector<bool>({true, false}), "bool[2] true false"},
      {Tensor::Vector<std::string>({"a\n\"", ""}), "string[2] \"a\\n\\\"\" \"\""},
      {Tensor::Vector<std::complex<float>>({{1, -2}}), "complex64[1] (1,-2)"},
      {Tensor::Vector<std::complex<double>>({{1, -2}}), "complex128[1] (1,-2)"},
      {Tensor::Vector<half>({half(0.5f)}), "half[1] 0.5"},
      {Tensor::Vector<bfloat16>({bfloat16(-2.0f)}), "bfloat16[1] -2"},
      {Tensor::Vector<qint8>({{-3}}), "qint8[1] -3"},
      {Tensor::Vector<quint8>({{200}}), "quint8[1] 200"},
      {Tensor::Vector<qint16>({{-3}}), "qint16[1] -3"},
      {Tensor::Vector<quint16>({{3}}), "quint16[1] 3"},
      {Tensor::Vector<qint32>({{-3}}), "qint32[1] -3"},
      {Tensor::Scalar<ResourceHandle>(
           {.device = "/cpu", .container = "c", .name = "w", .type = "Variable"}),
       "resource[] <Variable c/w on /cpu>"},
      {Tensor(DType::kFloat, {2, 0}), "float[2,0]"},
  };
  for (const auto& [tensor, text] : cases) EXPECT_EQ(tensor.ToString(), text);
  EXPECT_EQ(Tensor::Vector<int32_t>({1, 2, 3}).ToString(2), "int32[3] 1 2 ...");
}

TEST(Tensor, SharedAcrossThreads) {
  Tensor shared = Tensor::Vector<int64_t>({1, 2, 3});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([shared] {
      for (int i = 0; i < 10'000; ++i) {
        const Tensor copy = shared;
        const Tensor slice = copy.Slice(1, 2);
        ASSERT_EQ(slice.data<int64_t>()[0], 2);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  threads.clear();
  // No other reference is left, so the tensor may be written.
  ASSERT_TRUE(shared.unique());
  shared.mutable_flat<int64_t>()[0] = 9;
}

TEST(TensorDeathTest, OurOwnMistakes) {
  const Tensor tensor = Tensor::Vector<float>({1, 2});
  EXPECT_DEATH(tensor.data<int32_t>(), "tensor is float, accessed as int32");
  EXPECT_DEATH(tensor.scalar<float>(), "num_elements");
  EXPECT_DEATH(tensor.Slice(1, 3), "rows \\[1,3\\) of \\[2\\]");
  EXPECT_DEATH(tensor.Reshaped({3}), "\\[2\\] as \\[3\\]");
  EXPECT_DEATH(tensor.Reinterpreted(DType::kDouble, {2}), "float\\[2\\] as double\\[2\\]");
}

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// The tensors in the checkpoints of testdata/, which were written by TensorFlow 2.21; for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/checkpoint/checkpoint_reader.h"
#include "core/checkpoint/checkpoint_writer.h"
#include "core/checkpoint/testing/test_tensors.h"

namespace penstock {

struct Saved {
  std::string name;
  Tensor tensor;
  std::string slice;  // "5 3 0,2:-", or empty
};

template <class T>
Saved Dense(const std::string& dtype) {
  Tensor tensor = Counting<T>({2, 3});
  if (std::is_signed_v<T>) {
    for (T& x : tensor.mutable_flat<T>()) x = static_cast<T>(-x);  // -0.0 instead of 0.0
  }
  return {"dense/" + dtype, std::move(tensor), ""};
}

// Returns the tensors in the order in which they were saved.
inline std::vector<Saved> GoldenTensors() {
  std::string bytes;
  for (int i = 0; i < 100; ++i) bytes += std::string("\0\xff", 2);
  std::vector<Saved> saved = {
      Dense<float>("float32"),
      Dense<double>("float64"),
      Dense<int32_t>("int32"),
      Dense<uint8_t>("uint8"),
      Dense<int16_t>("int16"),
      Dense<int8_t>("int8"),
      Dense<int64_t>("int64"),
      Dense<uint16_t>("uint16"),
      Dense<uint32_t>("uint32"),
      Dense<uint64_t>("uint64"),
      {"dense/bool", Tensor::Vector<uint8_t>({1, 0, 1}).Reinterpreted(DType::kBool, {3}), ""},
      {"dense/half", Tensor::Vector<half>({half(1.5f), half(-2.0f)}), ""},
      {"dense/bfloat16", Tensor::Vector<bfloat16>({bfloat16(1.5f), bfloat16(-2.0f)}), ""},
      {"dense/complex64", Tensor::Vector<std::complex<float>>({{1, 2}}), ""},
      {"dense/complex128", Tensor::Vector<std::complex<double>>({{1, -2}}), ""},
      {"scalar", Tensor::Scalar<int64_t>(42), ""},
      {"empty", Tensor(DType::kFloat, {0, 3}), ""},
      {"strings", Tensor::Of<std::string>({2, 2}, {"", "a", "hello", bytes}), ""},
      {"string_scalar", Tensor::Scalar<std::string>("x"), ""},
      {"no_strings", Tensor(DType::kString, {0}), ""},
      {"part", Counting<float>({2, 3}), "5 3 0,2:-"},
      {"part", Counting<float>({3, 3}, 6), "5 3 2,3:-"},
      {"grid", Tensor::Of<int32_t>({2, 2}, {0, 1, 10, 11}), "2 200 0,2:0,2"},
      {"grid", Counting<int32_t>({2, 198}, 100), "2 200 0,2:2,198"},
      {"whole_as_slice", Counting<float>({2}, 1), "2 0,2"},
  };
  for (int i = 0; i < 30; ++i) {
    saved.push_back({absl::StrFormat("layer_%02d/weights", i),
                     Tensor::Vector<float>({static_cast<float>(i)}), ""});
  }
  return saved;
}

inline Status SaveAll(CheckpointWriter& writer, const std::vector<Saved>& tensors) {
  for (const Saved& saved : tensors) {
    RETURN_IF_ERROR(writer.AddAs(saved.name, saved.slice, saved.tensor));
  }
  return writer.Finish();
}

inline void ExpectHolds(const CheckpointReader& reader, const std::vector<Saved>& tensors) {
  for (const Saved& saved : tensors) {
    const auto read = reader.ReadAs(saved.tensor.dtype(), saved.name, saved.slice, CpuAllocator());
    ASSERT_EQ(read.status(), OkStatus());
    EXPECT_TRUE(SameTensor(*read, saved.tensor)) << saved.name << " is " << read->ToString();
  }
}

inline void ExpectSameFile(const std::string& ours, const std::string& golden) {
  const auto a = Env::Real().ReadFile(ours);
  const auto b = Env::Real().ReadFile(golden);
  ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
  EXPECT_TRUE(*a == *b) << ours << " differs from " << golden;
}

}  // namespace penstock

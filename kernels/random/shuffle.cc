// SPDX-License-Identifier: Apache-2.0
//
// RandomShuffle: the rows of a tensor in random order.
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/random/generator.h"

namespace penstock {
namespace {

class ShuffleKernel final : public Kernel {
  Status Init(const KernelInit& node) override { return generator_.Init(node); }
  Status Compute(KernelContext& ctx) override {
    const Tensor value = ctx.TakeInput(0);
    if (value.rank() == 0 || value.dim(0) <= 1 || value.num_elements() == 0) {
      ctx.SetOutput(0, value);
      return OkStatus();
    }
    const int64_t rows = value.dim(0);
    std::vector<int64_t> order(rows);
    std::iota(order.begin(), order.end(), 0);
    // Fisher and Yates: each row changes places with one that is not before it.
    WordStream words(generator_.ReserveForSamples(rows));
    for (int64_t i = 0; i + 1 < rows; ++i) {
      const uint64_t left = static_cast<uint64_t>(rows - i);
      const uint64_t word = left >> 32 == 0 ? words.Next() : words.Next64();
      std::swap(order[i], order[i + static_cast<int64_t>(word % left)]);
    }
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, value.shape(), &out));
    if (value.dtype() == DType::kString) {
      CopyRows<std::string>(value, order, out);
    } else {
      const size_t row = value.bytes() / rows;
      const char* from = static_cast<const char*>(value.raw_data());
      char* to = static_cast<char*>(out->mutable_raw_data());
      for (int64_t i = 0; i < rows; ++i) std::memcpy(to + i * row, from + order[i] * row, row);
    }
    return OkStatus();
  }

  template <class T>
  static void CopyRows(const Tensor& value, const std::vector<int64_t>& order, Tensor* out) {
    const int64_t row = value.num_elements() / value.dim(0);
    for (size_t i = 0; i < order.size(); ++i) {
      std::copy_n(value.data<T>() + order[i] * row, row, out->mutable_data<T>() + i * row);
    }
  }
  Generator generator_;
};

DTypes Movable() {
  DTypes types;
  for (DType dtype : kAllTypes) {
    if (IsPlain(dtype) || dtype == DType::kString) types.push_back(dtype);
  }
  return types;
}

}  // namespace

OP(RandomShuffle, {
                      .doc = "The rows of `value` (along dimension 0) in random order.",
                      .inputs = {{"value", "T"}},
                      .outputs = {{"output", "T"}},
                      .types = {{"T", Movable()}},
                      .attrs = {{"seed", 0}, {"seed2", 0}},
                      .shape = SameShape,
                      .gradient = NoGradient,
                      .stateful = true,
                  });
KERNEL_ANY_TYPE(RandomShuffle, ShuffleKernel);

}  // namespace penstock

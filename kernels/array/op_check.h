// SPDX-License-Identifier: Apache-2.0
//
// For tests of ops that move elements: data in which no two neighbours look alike, of any dtype;
// one call of an op, run with more and with less knowledge in its shape function; and the
// comparison with a rule that says where each element comes from.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/op/testing/op_runner.h"
#include "core/tensor/tensor.h"

namespace penstock {

// One dtype of each way in which elements are moved.
extern const std::vector<DType> kMovedTypes;

// Elements that differ from their neighbours.
Tensor Sample(DType dtype, const Shape& shape, int first = 0);
// An int32 or int64 vector, matrix or scalar.
Tensor Ints(const std::vector<int32_t>& values);
Tensor Longs(const std::vector<int64_t>& values);
Tensor Pairs(const std::vector<int32_t>& values);  // two columns

// Same dtype, shape and elements; plain ones byte by byte.
testing::AssertionResult SameTensor(const Tensor& actual, const Tensor& expected);

// One call of an op.
struct OpCall {
  struct Arg {
    Arg(Tensor t) : tensors{std::move(t)} {}                             // NOLINT
    Arg(std::vector<Tensor> ts) : tensors(std::move(ts)), list(true) {}  // NOLINT
    std::vector<Tensor> tensors;
    bool list = false;
  };
  std::string op;
  std::vector<Arg> args;
  Attrs attrs = {};

  // The outputs. They must not depend on what the shape function knew.
  std::vector<Tensor> Run() const;
  Tensor Run1() const;
  // The call fails, and where the shape function knows nothing the kernel says `words`.
  void ExpectError(const std::string& words) const;

 private:
  StatusOr<std::vector<Tensor>> RunWith(OpRunner::Known known) const;
};

// Calls `visit` for every place of a shape, in row-major order.
void ForEachPlace(const Shape& shape, const std::function<void(const Dims& place)>& visit);
// The flat index of a place.
int64_t FlatIndex(const Shape& shape, const Dims& place);

// Expects shape `shape`, and at each place of y the element of x that `source` says; nullopt stands
// for `filler`, by default zero.
void ExpectMoved(const Tensor& y, const Shape& shape, const Tensor& x,
                 const std::function<std::optional<Dims>(const Dims& place)>& source,
                 const Tensor& filler = Tensor());

}  // namespace penstock

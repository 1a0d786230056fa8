// SPDX-License-Identifier: Apache-2.0
//
// Helpers for tests of ops that move elements. They make sample tensors of any dtype in which
// neighbours differ, run one call of an op several times with different knowledge in its shape
// function, and compare its output with a function that maps each output element to its source.
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

// Dtypes that together use every code path that moves elements.
extern const std::vector<DType> kMovedTypes;

// Returns a tensor whose elements differ from their neighbours.
Tensor Sample(DType dtype, const Shape& shape, int first = 0);
// Return an int32 or int64 vector, matrix or scalar.
Tensor Ints(const std::vector<int32_t>& values);
Tensor Longs(const std::vector<int64_t>& values);
Tensor Pairs(const std::vector<int32_t>& values);  // returns a matrix of two columns

// Compares dtype, shape and elements; plain elements byte by byte.
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

  // Runs the op and returns the outputs. Checks that the outputs do not depend on the knowledge of
  // the shape function.
  std::vector<Tensor> Run() const;
  Tensor Run1() const;
  // Expects the call to fail: with an error of the kernel that contains `words` if the shape
  // function knows nothing, and with any error if the shape function knows the inputs' values.
  void ExpectError(const std::string& words) const;

 private:
  StatusOr<std::vector<Tensor>> RunWith(OpRunner::Known known) const;
};

// Calls `visit` for every position in a tensor of shape `shape`, in row-major order.
void ForEachPlace(const Shape& shape, const std::function<void(const Dims& place)>& visit);
// Returns the flat index of a position.
int64_t FlatIndex(const Shape& shape, const Dims& place);

// Expects y to have shape `shape` and each of its elements to equal the element of x that `source`
// returns. If `source` returns nullopt, the element must equal `filler`, by default zero.
void ExpectMoved(const Tensor& y, const Shape& shape, const Tensor& x,
                 const std::function<std::optional<Dims>(const Dims& place)>& source,
                 const Tensor& filler = Tensor());

}  // namespace penstock

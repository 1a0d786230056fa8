// SPDX-License-Identifier: Apache-2.0
//
// Tests DataFormatVecPermute and DataFormatDimMap. Expected results and error texts are TensorFlow
// 2.21's.
#include "kernels/array/testing/golden.h"

namespace penstock {
namespace {

using namespace golden;  // NOLINT: the tables below use its names

Attrs Formats(const char* from, const char* to) {
  return {{"src_format", from}, {"dst_format", to}};
}

TEST(DataFormatVecPermute, OneNumberOrTwoForEachDimension) {
  const auto expect = [](const Tensor& x, const Attrs& formats, const Tensor& y) {
    ExpectOutputs({"DataFormatVecPermute", {x}, formats}, {y});
  };
  expect(I({4}, {1, 2, 3, 4}), {}, I({4}, {1, 4, 2, 3}));
  expect(L({4}, {1, 2, 3, 4}), Formats("NCHW", "NHWC"), L({4}, {1, 3, 4, 2}));
  expect(I({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), {}, I({4, 2}, {1, 2, 7, 8, 3, 4, 5, 6}));
  expect(I({5}, {1, 2, 3, 4, 5}), Formats("NDHWC", "NCDHW"), I({5}, {1, 5, 2, 3, 4}));
  expect(I({2}, {1, 2}), {}, I({2}, {1, 2}));
  expect(I({2, 2}, {1, 2, 3, 4}), Formats("NHWC", "WCHN"), I({2, 2}, {3, 4, 1, 2}));
}

TEST(DataFormatVecPermute, Mistakes) {
  const auto expect = [](const Tensor& x, const Attrs& formats, const char* words) {
    OpCall{"DataFormatVecPermute", {x}, formats}.ExpectError(words);
  };
  const Tensor four = I({4}, {1, 2, 3, 4});
  expect(I({3}, {1, 2, 3}), {}, "1D input must be of size 2 or 4, but got shape [3]");
  expect(I({3, 2}, {1, 2, 3, 4, 5, 6}), {}, "First dimension of 2D input must be of size 2 or 4");
  expect(I({2, 1}, {1, 2}), {}, "Second dimension of 2D input must be of size 2, but got");
  expect(I({}, {5}), {}, "input must be a vector or 2D tensor, but got shape []");
  expect(four, Formats("NHW", "NCH"), "Source format must be of length 4 or 5");
  expect(four, Formats("NHWC", "NHW"), "Destination format must be of length 4 or 5");
  for (const char* to : {"NHWD", "NNHW", "NCHWD"}) {
    expect(four, Formats("NHWC", to), "must determine a permutation, got NHWC and ");
  }
  expect(four, Formats("NNHW", "NNHW"), "must determine a permutation");
}

TEST(DataFormatDimMap, AxesAreTakenModuloTheRank) {
  const auto expect = [](const Tensor& x, const Attrs& formats, const Tensor& y) {
    ExpectOutputs({"DataFormatDimMap", {x}, formats}, {y});
  };
  expect(I({4}, {0, 1, 2, 3}), {}, I({4}, {0, 2, 3, 1}));
  expect(I({5}, {-1, -4, 3, 4, -5}), {}, I({5}, {1, 0, 1, 0, 1}));
  expect(I({}, {3}), {}, I({}, {1}));
  expect(L({3}, {0, 4, -5}), Formats("NDHWC", "NCDHW"), L({3}, {0, 1, 0}));
  OpCall{"DataFormatDimMap", {I({1}, {0})}, Formats("NHWC", "NHWD")}.ExpectError(
      "must determine a permutation, got NHWC and NHWD");
}

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Tests sums, products, pooling, joining and normalisation of quantized tensors. The expected
// numbers are those of TensorFlow 2.21.
#include <vector>

#include "kernels/array/testing/golden.h"

namespace penstock {
namespace {

using namespace golden;  // NOLINT: the tests below use its names
using Ints = std::vector<int>;

template <class Q>
Tensor QuantizedOf(const Shape& shape, const Ints& integers) {
  Tensor t(kDTypeOf<Q>, shape);
  for (size_t i = 0; i < integers.size(); ++i) {
    t.mutable_data<Q>()[i].value = static_cast<decltype(Q::value)>(integers[i]);
  }
  return t;
}
Tensor Q8(const Shape& shape, const Ints& integers) { return QuantizedOf<quint8>(shape, integers); }
Tensor Q32(const Shape& shape, const Ints& integers) {
  return QuantizedOf<qint32>(shape, integers);
}

const Tensor kMatrix = Q8({2, 4}, {0, 3, 250, 255, 17, 128, 64, 1});
const Tensor kRow = Q8({4}, {5, 0, 255, 77});

OpCall BinaryCall(const char* op, const Tensor& x, const Tensor& y) {
  return {op, {x, y, F({}, {-1.5}), F({}, {2.5}), F({}, {-.3f}), F({}, {.7f})}};
}

TEST(QuantizedArithmetic, SumsAreTensorFlows) {
  const Tensor low = F({}, {-40960}), high = F({}, {40960});
  ExpectOutputs(
      BinaryCall("QuantizedAdd", kMatrix, kRow),
      {Q32({2, 4}, {-93758, -92314, 163242, 130867, -79767, 10561, 10164, -78175}), low, high});
  ExpectOutputs(
      BinaryCall("QuantizedAdd", kRow, kMatrix),
      {Q32({2, 4}, {-90668, -94168, 166332, 20863, -87183, -68543, 128202, -31207}), low, high});
  ExpectOutputs(
      BinaryCall("QuantizedAdd", kMatrix, Q8({}, {77})),
      {Q32({2, 4}, {-78952, -76483, 126798, 130913, -64961, 26392, -26280, -78129}), low, high});
}

TEST(QuantizedArithmetic, ProductsAreTensorFlows) {
  const Tensor low = F({}, {-132102.046875f}), high = F({}, {132102.046875f});
  ExpectOutputs(BinaryCall("QuantizedMul", kMatrix, kRow),
                {Q32({2, 4}, {6912, 7161, 27412, 0, 5688, -2464, -5696, 0}), low, high});
  // TensorFlow broadcasts columns wrongly: as if they were rows.
  ExpectOutputs(BinaryCall("QuantizedMul", kMatrix, Q8({2, 1}, {7, 8})),
                {Q32({2, 4}, {6720, 6510, -10780, -11130, 5451, -2208, 2208, 6555}), low, high});
  BinaryCall("QuantizedMul", kMatrix, Q8({3}, {1, 2, 3})).ExpectError("");
}

TEST(QuantizedArithmetic, EmptyTensorsWithTooLargeShapesAreRefused) {
  const int64_t large = int64_t{1} << 40;
  const Tensor x(DType::kQuint8, Shape({large, 1, 0})), y(DType::kQuint8, Shape({1, large, 0}));
  for (const char* op : {"QuantizedAdd", "QuantizedMul"}) BinaryCall(op, x, y).ExpectError("shape");
}

TEST(QuantizedArithmetic, BiasesAreTensorFlows) {
  const Tensor low = F({}, {-327680}), high = F({}, {327680});
  const auto call = [](const Tensor& x, const Tensor& bias) {
    OpCall call = BinaryCall("QuantizedBiasAdd", x, bias);
    call.attrs = {{"out_type", DType::kQint32}};
    return call;
  };
  ExpectOutputs(call(kMatrix, kRow),
                {Q32({2, 4}, {-11719, -11540, 20406, 16345, -9971, 1311, 1285, -9766}), low, high});
  ExpectOutputs(call(QuantizedOf<qint8>({2, 4}, {0, 3, -128, 127, 17, -100, 64, 1}),
                     QuantizedOf<qint8>({4}, {5, 0, -128, 77})),
                {Q32({2, 4}, {4729, 4909, -11848, 19635, 6476, -5680, 7890, 6682}), low, high});
  call(kMatrix, Q8({3}, {1, 2, 3})).ExpectError("as many biases");
}

TEST(QuantizedPool, WindowsAreTensorFlows) {
  const Shape image({1, 3, 3, 1}), pooled({1, 2, 2, 1});
  const Tensor x = Q8(image, {1, 200, 3, 40, 50, 61, 7, 8, 255});
  const Tensor signs = QuantizedOf<qint8>(image, {1, -20, 3, 40, -50, 61, -7, -8, -128});
  const Tensor low = F({}, {-1}), high = F({}, {2});
  const auto call = [&](const char* op, const Tensor& input, const char* padding) {
    const std::vector<int64_t> window = {1, 2, 2, 1};
    return OpCall{
        op, {input, low, high}, {{"ksize", window}, {"strides", window}, {"padding", padding}}};
  };
  ExpectOutputs(call("QuantizedAvgPool", x, "SAME"), {Q8(pooled, {72, 32, 7, 255}), low, high});
  ExpectOutputs(call("QuantizedMaxPool", x, "SAME"), {Q8(pooled, {200, 61, 8, 255}), low, high});
  ExpectOutputs(call("QuantizedAvgPool", x, "VALID"), {Q8({1, 1, 1, 1}, {72}), low, high});
  ExpectOutputs(call("QuantizedAvgPool", signs, "SAME"),
                {QuantizedOf<qint8>(pooled, {-7, 32, -7, -128}), low, high});
  ExpectOutputs(call("QuantizedMaxPool", signs, "SAME"),
                {QuantizedOf<qint8>(pooled, {40, 61, -7, -128}), low, high});
}

TEST(QuantizedConcat, RangesAreJoined) {
  const auto call = [](int dim, const Tensor& a, const Tensor& b, std::vector<float> mins,
                       std::vector<float> maxes) {
    const auto scalars = [](const std::vector<float>& v) {
      return std::vector<Tensor>{F({}, {v[0]}), F({}, {v[1]})};
    };
    return OpCall{"QuantizedConcat",
                  {I({}, {dim}), std::vector<Tensor>{a, b}, scalars(mins), scalars(maxes)}};
  };
  ExpectOutputs(call(1, kMatrix, Q8({2, 1}, {9, 200}), {-1.5, 0}, {2.5, 4}),
                {Q8({2, 5}, {0, 2, 182, 186, 77, 13, 93, 47, 1, 215}), F({}, {-1.5}), F({}, {4})});
  ExpectOutputs(call(0, Q8({1}, {7}), Q8({2}, {8, 9}), {-1, -1}, {2, 2}),
                {Q8({3}, {7, 8, 9}), F({}, {-1}), F({}, {2})});
  ExpectOutputs(
      call(0, Q32({3}, {1, -70000, 2000000000}), Q32({2}, {5, 2147483647}), {-1.5, -3}, {2.5, 4}),
      {Q32({5}, {268435456, 268400448, 1268435456, 268435456, 2147483520}), F({}, {-4}),
       F({}, {4})});
  call(-1, kMatrix, kMatrix, {-1, -1}, {2, 2}).ExpectError("in the range [0, 2)");
  call(1, kMatrix, Q8({3, 1}, {1, 2, 3}), {-1, -1}, {2, 2}).ExpectError("should match");
}

TEST(QuantizedBatchNorm, FixedPointIsTensorFlows) {
  const auto call = [](bool scale) {
    const auto pair = [](int a, int b) { return Q8({2}, {a, b}); };
    return OpCall{"QuantizedBatchNormWithGlobalNormalization",
                  {Q8({1, 2, 2, 2}, {0, 10, 250, 255, 17, 128, 64, 1}), F({}, {-1}), F({}, {3}),
                   pair(20, 30), F({}, {-1}), F({}, {1}), pair(100, 200), F({}, {0}), F({}, {4}),
                   pair(5, 6), F({}, {-1}), F({}, {2}), pair(70, 80), F({}, {-2}), F({}, {2})},
                  {{"out_type", DType::kQint32},
                   {"variance_epsilon", 0.001f},
                   {"scale_after_normalization", scale}}};
  };
  const Tensor low = F({}, {-1048576}), high = F({}, {1048576});
  ExpectOutputs(
      call(true),
      {Q32({1, 2, 2, 2}, {-1687, -1831, -7419, -5104, -2077, -3407, -3154, -1710}), low, high});
  ExpectOutputs(
      call(false),
      {Q32({1, 2, 2, 2}, {-2197, -2003, 4214, 2439, -1761, 136, -556, -2166}), low, high});
}

}  // namespace
}  // namespace penstock

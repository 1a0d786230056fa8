// SPDX-License-Identifier: Apache-2.0
#include "kernels/array/testing/op_check.h"

#include <cstring>

#include "kernels/array/elements.h"

namespace penstock {

const std::vector<DType> kMovedTypes = {DType::kInt8,  DType::kBool,  DType::kBfloat16,
                                        DType::kFloat, DType::kInt64, DType::kComplex128,
                                        DType::kString};

Tensor Sample(DType dtype, const Shape& shape, int first) {
  Tensor t(dtype, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    const uint64_t number = static_cast<uint64_t>(first + i + 1);
    void* element = ElementAt(t.mutable_raw_data(), dtype, i);
    if (dtype == DType::kString) {
      *static_cast<std::string*>(element) = StrCat("a string of some length ", number);
    } else if (dtype == DType::kBool) {
      *static_cast<bool*>(element) = (number * 0x9E3779B97F4A7C15u >> 60 & 1) != 0;
    } else {
      const uint64_t halves[2] = {number * 0x9E3779B97F4A7C15u >> 3 | 1, ~number};
      std::memcpy(element, halves, SizeOf(dtype));
    }
  }
  return t;
}

Tensor Ints(const std::vector<int32_t>& values) { return Tensor::Vector<int32_t>(values); }
Tensor Longs(const std::vector<int64_t>& values) { return Tensor::Vector<int64_t>(values); }
Tensor Pairs(const std::vector<int32_t>& values) {
  return Tensor::Of<int32_t>({static_cast<int64_t>(values.size() / 2), 2}, values);
}

namespace {

bool SameElement(const Tensor& a, int64_t i, const Tensor& b, int64_t j) {
  if (a.dtype() == DType::kString) return a.flat<std::string>()[i] == b.flat<std::string>()[j];
  return std::memcmp(ElementAt(a.raw_data(), a.dtype(), i), ElementAt(b.raw_data(), b.dtype(), j),
                     SizeOf(a.dtype())) == 0;
}

}  // namespace

testing::AssertionResult SameTensor(const Tensor& actual, const Tensor& expected) {
  bool same = actual.dtype() == expected.dtype() && actual.shape() == expected.shape();
  for (int64_t i = 0; same && i < actual.num_elements(); ++i) {
    same = SameElement(actual, i, expected, i);
  }
  if (same) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << "got " << actual.ToString(50) << ", expected " << expected.ToString(50);
}

StatusOr<std::vector<Tensor>> OpCall::RunWith(OpRunner::Known known) const {
  OpRunner runner(op);
  for (const Arg& arg : args) {
    if (arg.list) {
      runner.InList(arg.tensors);
    } else {
      runner.In(arg.tensors[0]);
    }
  }
  for (const auto& [name, value] : attrs) runner.Attr(name, value);
  return runner.SetKnownInputs(known).Run();
}

std::vector<Tensor> OpCall::Run() const {
  std::vector<Tensor> result;
  for (const auto known :
       {OpRunner::Known::kNothing, OpRunner::Known::kShapes, OpRunner::Known::kValues}) {
    auto outputs = RunWith(known);
    EXPECT_TRUE(outputs.ok()) << op << ": " << outputs.status();
    CHECK_OK(outputs.status());
    for (size_t i = 0; i < result.size(); ++i) {
      EXPECT_TRUE(SameTensor((*outputs)[i], result[i])) << op << " output " << i;
    }
    result = *std::move(outputs);
  }
  return result;
}

Tensor OpCall::Run1() const {
  std::vector<Tensor> outputs = Run();
  CHECK(outputs.size() == 1);
  return outputs[0];
}

void OpCall::ExpectError(const std::string& words) const {
  const Status bare = RunWith(OpRunner::Known::kNothing).status();
  EXPECT_FALSE(bare.ok()) << op << " should say: " << words;
  EXPECT_NE(std::string(bare.message()).find(words), std::string::npos)
      << op << " says: " << bare << "\nexpected: " << words;
  EXPECT_FALSE(RunWith(OpRunner::Known::kValues).ok()) << op << ": " << words;
}

void ForEachPlace(const Shape& shape, const std::function<void(const Dims& place)>& visit) {
  if (shape.num_elements() == 0) return;
  Dims place(shape.rank(), 0);
  while (true) {
    visit(place);
    int d = shape.rank() - 1;
    for (; d >= 0 && ++place[d] == shape.dim(d); --d) place[d] = 0;
    if (d < 0) return;
  }
}

int64_t FlatIndex(const Shape& shape, const Dims& place) {
  CHECK(static_cast<int>(place.size()) == shape.rank());
  int64_t index = 0;
  for (int d = 0; d < shape.rank(); ++d) {
    CHECK(place[d] >= 0 && place[d] < shape.dim(d), "place ", place[d], " in ", shape.dim(d));
    index = index * shape.dim(d) + place[d];
  }
  return index;
}

void ExpectMoved(const Tensor& y, const Shape& shape, const Tensor& x,
                 const std::function<std::optional<Dims>(const Dims& place)>& source,
                 const Tensor& filler) {
  ASSERT_EQ(y.shape().ToString(), shape.ToString());
  ASSERT_EQ(y.dtype(), x.dtype());
  Tensor zero(x.dtype(), Shape());
  ZeroElements(x.dtype(), zero.mutable_raw_data(), 1);
  const Tensor& empty = filler.valid() ? filler : zero;
  int64_t wrong = 0;
  ForEachPlace(shape, [&](const Dims& place) {
    const std::optional<Dims> from = source(place);
    const bool same = from.has_value()
                          ? SameElement(y, FlatIndex(shape, place), x, FlatIndex(x.shape(), *from))
                          : SameElement(y, FlatIndex(shape, place), empty, 0);
    if (!same && ++wrong == 1) ADD_FAILURE() << "at " << Shape(place).ToString();
  });
  EXPECT_EQ(wrong, 0) << "of " << shape.num_elements() << " elements of " << Name(x.dtype());
}

}  // namespace penstock

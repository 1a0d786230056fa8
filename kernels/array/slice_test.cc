// SPDX-License-Identifier: Apache-2.0
//
// Tests Slice, StridedSlice and the ops that write to slices.
#include <gtest/gtest.h>

#include "core/op/variable.h"
#include "core/tensor/resource_handle.h"
#include "kernels/array/testing/op_check.h"

namespace penstock {
namespace {

TEST(Slice, Boxes) {
  struct Case {
    Shape shape;
    std::vector<int64_t> begin, size;
    Shape result;
  };
  const Case cases[] = {
      {{5}, {1}, {3}, {3}},
      {{5}, {1}, {-1}, {4}},
      {{5}, {5}, {-1}, {0}},
      {{4, 6}, {1, 2}, {2, 3}, {2, 3}},
      {{4, 6}, {0, 0}, {-1, -1}, {4, 6}},
      {{64, 6}, {16, 0}, {32, -1}, {32, 6}},
      {{3, 4, 5}, {2, 0, 4}, {1, 4, 1}, {1, 4, 1}},
      {{3, 0, 5}, {2, 0, 4}, {1, 0, 1}, {1, 0, 1}},
      {{}, {}, {}, {}},
      {{200, 300, 3}, {10, 20, 1}, {150, 200, 2}, {150, 200, 2}},
  };
  for (const Case& c : cases) {
    for (const DType dtype : kMovedTypes) {
      const Tensor x = Sample(dtype, c.shape);
      const Tensor y = OpCall{"Slice", {x, Longs(c.begin), Longs(c.size)}}.Run1();
      ExpectMoved(y, c.result, x, [&](const Dims& place) {
        Dims from = place;
        for (size_t i = 0; i < from.size(); ++i) from[i] += c.begin[i];
        return from;
      });
    }
  }
}

TEST(Slice, SharesLargeAlignedRuns) {
  const Tensor x = Sample(DType::kFloat, {64, 16});
  const auto slice = [&](int begin, int rows) {
    return OpCall{"Slice", {x, Ints({begin, 0}), Ints({rows, 16})}}.Run1();
  };
  EXPECT_TRUE(slice(1, 63).SharesBufferWith(x));
  EXPECT_FALSE(slice(1, 2).SharesBufferWith(x)) << "a small part must not keep the whole alive";
}

TEST(Slice, Mistakes) {
  const Tensor x = Sample(DType::kFloat, {4, 6});
  const auto expect = [&](std::vector<int32_t> begin, std::vector<int32_t> size,
                          const char* words) {
    OpCall{"Slice", {x, Ints(begin), Ints(size)}}.ExpectError(words);
  };
  expect({-1, 0}, {1, 1}, "Expected begin[0] in [0, 4], but got -1");
  expect({0, 7}, {1, 0}, "Expected begin[1] in [0, 6], but got 7");
  expect({0, 3}, {1, 4}, "Expected size[1] in [0, 3], but got 4");
  expect({0, 3}, {-2, 1}, "Expected size[0] in [0, 4], but got -2");
  expect({0}, {1, 1}, "begin must have 2 elements, has 1");
  expect({0, 0}, {1}, "size must have 2 elements, has 1");
}

// An element of a Python slice expression. kNone stands for an omitted bound.
constexpr int32_t kNone = INT32_MAX;
struct Term {
  enum Kind { kRange, kIndex, kEllipsis, kNewAxis } kind = kRange;
  int32_t begin = kNone, end = kNone, stride = 1;
};
Term Index(int32_t i) { return {Term::kIndex, i, i + 1, 1}; }
Term Range(int32_t begin, int32_t end, int32_t stride = 1) {
  return {Term::kRange, begin, end, stride};
}
const Term kDots = {Term::kEllipsis};
const Term kNew = {Term::kNewAxis};
const Term kAll = {};

struct Expression {
  Tensor begin, end, strides;
  Attrs masks;

  explicit Expression(const std::vector<Term>& terms) {
    std::vector<int32_t> b, e, s;
    int begin_mask = 0, end_mask = 0, ellipsis = 0, new_axis = 0, shrink = 0;
    for (size_t i = 0; i < terms.size(); ++i) {
      const Term& t = terms[i];
      b.push_back(t.begin == kNone ? 0 : t.begin);
      e.push_back(t.end == kNone ? 0 : t.end);
      s.push_back(t.stride);
      begin_mask |= (t.begin == kNone) << i;
      end_mask |= (t.end == kNone) << i;
      ellipsis |= (t.kind == Term::kEllipsis) << i;
      new_axis |= (t.kind == Term::kNewAxis) << i;
      shrink |= (t.kind == Term::kIndex) << i;
    }
    begin = Ints(b);
    end = Ints(e);
    strides = Ints(s);
    masks = {{"begin_mask", begin_mask},
             {"end_mask", end_mask},
             {"ellipsis_mask", ellipsis},
             {"new_axis_mask", new_axis},
             {"shrink_axis_mask", shrink}};
  }
};

// Returns the indices that Python's begin:end:stride selects from a sequence of `size` elements.
std::vector<int64_t> PythonRange(const Term& t, int64_t size) {
  std::vector<int64_t> indices;
  const int64_t step = t.stride;
  const auto place = [&](int32_t x) {
    int64_t at = x < 0 ? x + size : x;
    if (step > 0) return std::min(std::max<int64_t>(at, 0), size);
    return std::min(std::max<int64_t>(at, -1), size - 1);
  };
  int64_t i = t.begin == kNone ? (step > 0 ? 0 : size - 1) : place(t.begin);
  const int64_t end = t.end == kNone ? (step > 0 ? size : -1) : place(t.end);
  for (; step > 0 ? i < end : i > end; i += step) indices.push_back(i);
  return indices;
}

// The elements that an expression selects: the shape of the result and, for each element of the
// result, the position of its source in the input.
struct Selection {
  Shape shape;
  std::vector<std::vector<int64_t>> indices;  // per dimension of the input
  // Per dimension of the result: a dimension of the input, or -1 for a new axis.
  std::vector<int> layout;

  Selection(const Shape& input, std::vector<Term> terms) {
    int named = 0;
    bool dots = false;
    for (const Term& t : terms) {
      named += t.kind == Term::kRange || t.kind == Term::kIndex;
      dots = dots || t.kind == Term::kEllipsis;
    }
    if (!dots) terms.push_back(kDots);
    for (const Term& t : terms) {
      if (t.kind == Term::kNewAxis) {
        Lay(-1, 1);
      } else if (t.kind == Term::kEllipsis) {
        for (int i = named; i < input.rank(); ++i) Take(PythonRange(kAll, Next(input)), true);
      } else if (t.kind == Term::kIndex) {
        const int64_t size = Next(input);
        Take({t.begin < 0 ? t.begin + size : t.begin}, false);
      } else {
        Take(PythonRange(t, Next(input)), true);
      }
    }
  }

  std::optional<Dims> Source(const Dims& place) const {
    Dims from(indices.size(), 0);
    for (size_t d = 0; d < indices.size(); ++d) {
      if (!indices[d].empty()) from[d] = indices[d][0];
    }
    for (size_t i = 0; i < layout.size(); ++i) {
      if (layout[i] >= 0) from[layout[i]] = indices[layout[i]][place[i]];
    }
    return from;
  }

 private:
  int64_t Next(const Shape& input) const { return input.dim(static_cast<int>(indices.size())); }
  void Lay(int dimension, int64_t size) {
    layout.push_back(dimension);
    shape.AddDim(size);
  }
  void Take(std::vector<int64_t> chosen, bool kept) {
    if (kept) Lay(static_cast<int>(indices.size()), static_cast<int64_t>(chosen.size()));
    indices.push_back(std::move(chosen));
  }
};

struct Case {
  Shape shape;
  std::vector<Term> terms;
};

const Case kCases[] = {
    {{7}, {Range(1, 5)}},
    {{7}, {Range(5, 1, -1)}},
    {{7}, {Range(kNone, kNone, -1)}},
    {{7}, {Range(kNone, kNone, 3)}},
    {{7}, {Range(-100, 100, 2)}},
    {{7}, {Range(100, -100, -3)}},
    {{7}, {Range(3, 3)}},
    {{7}, {Range(5, 2)}},
    {{7}, {Index(-1)}},
    {{7}, {Index(3), kNew}},
    {{0}, {Range(kNone, kNone, -1)}},
    {{4, 5}, {}},
    {{4, 5}, {kDots}},
    {{4, 5}, {Index(2)}},
    {{4, 5}, {kAll, Index(2)}},
    {{4, 5}, {kDots, Index(-2)}},
    {{4, 5}, {kNew, kDots, kNew}},
    {{4, 5}, {Range(kNone, kNone, -2), Range(4, kNone, -1)}},
    {{64, 5}, {Range(16, kNone)}},
    {{64, 16}, {Index(3)}},
    {{3, 4, 5}, {Index(1), kDots, Range(1, 4, 2)}},
    {{3, 4, 5}, {kDots, kNew, Index(0), kNew}},
    {{3, 4, 5}, {Index(0), Index(1), Index(2)}},
    {{3, 4, 5}, {kNew, Range(0, 2), kDots, Range(kNone, kNone, -1), kNew}},
    {{3, 4, 5}, {kAll, Range(3, 0, -2)}},
    {{3, 4, 5}, {Range(2, 2), kDots}},
    {{2, 3, 2, 3}, {Range(1, kNone), Range(kNone, -1), Index(-1), Range(kNone, kNone, 2)}},
    {{}, {kNew, kDots}},
    {{}, {}},
};

TEST(StridedSlice, SelectsAsPythonDoes) {
  for (const Case& c : kCases) {
    const Expression e(c.terms);
    const Selection selection(c.shape, c.terms);
    for (const DType dtype : kMovedTypes) {
      const Tensor x = Sample(dtype, c.shape);
      const Tensor y = OpCall{"StridedSlice", {x, e.begin, e.end, e.strides}, e.masks}.Run1();
      ExpectMoved(y, selection.shape, x,
                  [&](const Dims& place) { return selection.Source(place); });
    }
  }
}

// Returns `whole` with `value` written to the places that the expression selects.
Tensor Stored(const Selection& selection, const Tensor& value, const Tensor& whole) {
  std::vector<int64_t> source(whole.num_elements(), -1);
  ForEachPlace(selection.shape, [&](const Dims& place) {
    source[FlatIndex(whole.shape(), *selection.Source(place))] = FlatIndex(selection.shape, place);
  });
  Tensor result = whole.Clone();
  float* data = result.mutable_data<float>();
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] >= 0) data[i] = value.data<float>()[source[i]];
  }
  return result;
}

TEST(StridedSliceGrad, PutsBack) {
  for (const Case& c : kCases) {
    const Expression e(c.terms);
    const Selection selection(c.shape, c.terms);
    const Tensor dy = Sample(DType::kFloat, selection.shape);
    Tensor zeros(DType::kFloat, c.shape);
    for (float& x : zeros.mutable_flat<float>()) x = 0;
    const std::vector<int32_t> dims(c.shape.dims().begin(), c.shape.dims().end());
    const Tensor dx =
        OpCall{"StridedSliceGrad", {Ints(dims), e.begin, e.end, e.strides, dy}, e.masks}.Run1();
    EXPECT_TRUE(SameTensor(dx, Stored(selection, dy, zeros)));
  }
}

TEST(StridedSliceAssign, WritesInPlace) {
  for (const Case& c : kCases) {
    for (const char* op : {"StridedSliceAssign", "ResourceStridedSliceAssign"}) {
      const Expression e(c.terms);
      const Selection selection(c.shape, c.terms);
      const Tensor value = Sample(DType::kFloat, selection.shape, 1000);
      const Tensor before = Sample(DType::kFloat, c.shape);
      auto variable = std::make_shared<Variable>("v", DType::kFloat, c.shape);
      CHECK_OK(variable->Assign(before, true, {}));
      const Tensor handle = Tensor::Scalar<ResourceHandle>(
          {.name = "v", .elements = {{DType::kFloat, c.shape}}, .resource = variable});
      OpRunner run(op);
      run.In(handle).In(e.begin).In(e.end).In(e.strides).In(value);
      for (const auto& [name, mask] : e.masks) run.Attr(name, mask);
      ASSERT_TRUE(run.Run().ok());
      EXPECT_TRUE(SameTensor(*variable->Read(), Stored(selection, value, before)));
      EXPECT_TRUE(SameTensor(before, Sample(DType::kFloat, c.shape))) << "a reader saw the update";
    }
  }
}

TEST(TensorStridedSliceUpdate, WritesIntoACopy) {
  for (const Case& c : kCases) {
    const Expression e(c.terms);
    const Selection selection(c.shape, c.terms);
    const Tensor value = Sample(DType::kFloat, selection.shape, 1000);
    const Tensor before = Sample(DType::kFloat, c.shape);
    const OpCall call{
        "TensorStridedSliceUpdate", {before, e.begin, e.end, e.strides, value}, e.masks};
    EXPECT_TRUE(SameTensor(call.Run1(), Stored(selection, value, before)));
  }
  const auto update = [](Tensor value) {
    return OpCall{"TensorStridedSliceUpdate",
                  {Pairs({1, 2, 3, 4}), Ints({0, 0}), Ints({2, 2}), Ints({1, 1}), value}};
  };
  EXPECT_TRUE(SameTensor(update(Ints({8, 9})).Run1(), Pairs({8, 9, 8, 9})));
  EXPECT_TRUE(SameTensor(update(Tensor::Scalar<int32_t>(7)).Run1(), Pairs({7, 7, 7, 7})));
  EXPECT_TRUE(SameTensor(update(Pairs({5, 6}).Reshaped({1, 1, 2})).Run1(), Pairs({5, 6, 5, 6})));
  update(Ints({1, 2, 3})).ExpectError("value must broadcast to shape [2,2], has [3]");
}

TEST(StridedSlice, Mistakes) {
  const Tensor x = Sample(DType::kFloat, {4, 5});
  const auto expect = [&](const std::vector<Term>& terms, const char* words) {
    const Expression e(terms);
    OpCall{"StridedSlice", {x, e.begin, e.end, e.strides}, e.masks}.ExpectError(words);
  };
  expect({Index(4)}, "slice index 4 of dimension 0 out of bounds.");
  expect({kDots, Index(-6)}, "slice index -6 of dimension 1 out of bounds.");
  expect({kAll, kAll, kAll}, "Index out of range using input dim 2; input has only 2 dims");
  expect({kDots, kDots}, "Multiple ellipses in slice spec not allowed");
  OpCall{"StridedSlice", {x, Ints({0}), Ints({1}), Ints({1})}, {{"ellipsis_mask", 6}}}.ExpectError(
      "Multiple ellipses in slice spec not allowed");
  expect({Range(0, 1, 0)}, "strides[0] must be non-zero");
  Term backwards = Index(1);
  backwards.stride = -1;
  expect({backwards}, "only stride 1 allowed on non-range indexing.");
  expect(std::vector<Term>(32, kNew), "a slice of 32 elements; at most 31");
  OpCall{"StridedSlice", {x, Ints({0}), Ints({1, 1}), Ints({1})}}.ExpectError(
      "end must have 1 elements, has 2");
  OpCall{"StridedSlice", {x, Pairs({0, 0}), Ints({1}), Ints({1})}}.ExpectError(
      "begin must be a vector");
  OpCall{"StridedSliceGrad", {Ints({4, 5}), Ints({0}), Ints({1}), Ints({1}), x}}.ExpectError(
      "dy must have shape [1,5], has [4,5]");
}

}  // namespace
}  // namespace penstock

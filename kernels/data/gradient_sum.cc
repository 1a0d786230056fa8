// SPDX-License-Identifier: Apache-2.0
#include "kernels/data/gradient_sum.h"

#include <map>
#include <utility>

#include "core/base/check.h"
#include "kernels/array/elements.h"

namespace penstock {
namespace {

template <class T>
void AddValues(const void* from, void* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) static_cast<T*>(to)[i] += static_cast<const T*>(from)[i];
}
template <class T>
void DivideValues(void* values, int64_t count, int64_t by) {
  const T divisor = static_cast<T>(static_cast<float>(by));
  for (int64_t i = 0; i < count; ++i) static_cast<T*>(values)[i] /= divisor;
}

struct Arithmetic {
  void (*add)(const void* from, void* to, int64_t count);
  void (*divide)(void* values, int64_t count, int64_t by);
};
template <class T>
constexpr Arithmetic kArithmetic = {AddValues<T>, DivideValues<T>};

const Arithmetic& ArithmeticOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat:
      return kArithmetic<float>;
    case DType::kDouble:
      return kArithmetic<double>;
    case DType::kHalf:
      return kArithmetic<half>;
    default:
      CHECK(dtype == DType::kBfloat16, Name(dtype));
      return kArithmetic<bfloat16>;
  }
}

Status ShapeMismatch(const PartialShape& expected, const Shape& got) {
  return InvalidArgument("Shape mismatch: expected ", expected.ToString(), ", got ",
                         got.ToString());
}

class DenseSum final : public GradientSum {
 public:
  explicit DenseSum(const PartialShape& shape) : shape_(shape) {}

  Status Add(SummedGradient gradient) override {
    Tensor& values = gradient.values;
    if (!shape_.Compatible(values.shape())) return ShapeMismatch(shape_, values.shape());
    if (count_ == 0) {
      // Uses the buffer of `values` for the sum, unless another tensor shares the buffer or another
      // library owns it.
      if (values.unique() && values.buffer()->allocator() != nullptr) {
        sum_ = std::move(values);
      } else {
        ASSIGN_OR_RETURN(sum_, values.TryClone());
      }
      shape_ = sum_.shape();
    } else {
      ArithmeticOf(sum_.dtype())
          .add(values.raw_data(), sum_.mutable_raw_data(), sum_.num_elements());
    }
    ++count_;
    return OkStatus();
  }

  StatusOr<SummedGradient> Finish(bool mean) override {
    if (mean && count_ > 1) {
      ArithmeticOf(sum_.dtype()).divide(sum_.mutable_raw_data(), sum_.num_elements(), count_);
    }
    return SummedGradient{std::move(sum_)};
  }

 private:
  PartialShape shape_;
  Tensor sum_;
  int64_t count_ = 0;
};

class SparseSum final : public GradientSum {
 public:
  // A sparse gradient cannot be a scalar. TensorFlow's clients declare a scalar for an unknown
  // shape.
  explicit SparseSum(const PartialShape& shape)
      : shape_(shape.rank() == 0 ? PartialShape() : shape) {}

  Status Add(SummedGradient gradient) override {
    RETURN_IF_ERROR(Check(gradient));
    const Tensor& values = gradient.values;
    dtype_ = values.dtype();
    row_ = values.shape();
    row_.RemoveDim(0);
    ++gradients_;
    const auto indices = gradient.indices.flat<int64_t>();
    for (size_t i = 0; i < indices.size(); ++i) {
      const void* const from =
          ElementAt(values.raw_data(), dtype_, static_cast<int64_t>(i) * row_.num_elements());
      RETURN_IF_ERROR(AddRow(indices[i], from));
    }
    return OkStatus();
  }

  StatusOr<SummedGradient> Finish(bool mean) override {
    const int64_t count = static_cast<int64_t>(rows_.size());
    Shape shape = row_;
    shape.InsertDim(0, count);
    ASSIGN_OR_RETURN(Tensor indices, Tensor::Make(CpuAllocator(), DType::kInt64, {count}));
    ASSIGN_OR_RETURN(Tensor values, Tensor::Make(CpuAllocator(), dtype_, shape));
    int64_t i = 0;
    for (auto& [index, row] : rows_) {
      void* const to = ElementAt(values.mutable_raw_data(), dtype_, i * row_.num_elements());
      CopyElements(dtype_, row.sum.raw_data(), to, row_.num_elements());
      if (mean) ArithmeticOf(dtype_).divide(to, row_.num_elements(), row.gradients);
      indices.mutable_flat<int64_t>()[i++] = index;
    }
    Tensor whole(DType::kInt64, {shape.rank()});
    for (int d = 0; d < shape.rank(); ++d) whole.mutable_flat<int64_t>()[d] = shape.dim(d);
    whole.mutable_flat<int64_t>()[0] = shape_.known_rank() ? shape_.dim(0) : PartialShape::kUnknown;
    return SummedGradient{std::move(values), std::move(indices), std::move(whole)};
  }

 private:
  struct Row {
    Tensor sum;
    int64_t gradients = 0;      // the number of gradients that contain the row
    int64_t last_gradient = 0;  // the number of the last gradient that contains it
  };

  Status Check(const SummedGradient& g) const {
    const Tensor& values = g.values;
    if (g.indices.rank() != 1 || values.rank() < 1 || values.dim(0) != g.indices.dim(0)) {
      return InvalidArgument("a sparse gradient has one index per row; indices are of shape ",
                             g.indices.shape().ToString(), ", values of shape ",
                             values.shape().ToString());
    }
    Shape row = values.shape();
    row.RemoveDim(0);
    if (gradients_ > 0 && row != row_) return ShapeMismatch(row_, row);
    ASSIGN_OR_RETURN(const PartialShape whole, WholeShape(g));
    for (const int64_t index : g.indices.flat<int64_t>()) {
      if (index >= 0 && (whole.dim(0) < 0 || index < whole.dim(0))) continue;
      return InvalidArgument("index ", index, " of a sparse gradient of shape ", whole.ToString());
    }
    return OkStatus();
  }
  // Returns the shape of the full gradient, merged from its rows, from the accumulator, and from
  // the shape that the gradient states. InvalidArgument if they contradict each other.
  StatusOr<PartialShape> WholeShape(const SummedGradient& g) const {
    PartialShape whole = g.values.shape();
    whole.set_dim(0, PartialShape::kUnknown);
    if (!whole.Compatible(shape_)) return ShapeMismatch(shape_, g.values.shape());
    ASSIGN_OR_RETURN(whole, whole.Merge(shape_));
    if (!g.shape.valid()) return whole;
    ASSIGN_OR_RETURN(const PartialShape said, PartialShape::Make(g.shape.flat<int64_t>()));
    return whole.Merge(said);
  }
  Status AddRow(int64_t index, const void* from) {
    Row& row = rows_[index];
    if (row.gradients == 0) {
      ASSIGN_OR_RETURN(row.sum, Tensor::Make(CpuAllocator(), dtype_, row_));
      CopyElements(dtype_, from, row.sum.mutable_raw_data(), row_.num_elements());
    } else {
      ArithmeticOf(dtype_).add(from, row.sum.mutable_raw_data(), row_.num_elements());
    }
    if (row.last_gradient != gradients_) ++row.gradients;
    row.last_gradient = gradients_;
    return OkStatus();
  }

  const PartialShape shape_;
  DType dtype_ = DType::kInvalid;
  Shape row_;
  std::map<int64_t, Row> rows_;
  int64_t gradients_ = 0;
};

}  // namespace

std::unique_ptr<GradientSum> NewDenseSum(const PartialShape& shape) {
  return std::make_unique<DenseSum>(shape);
}
std::unique_ptr<GradientSum> NewSparseSum(const PartialShape& shape) {
  return std::make_unique<SparseSum>(shape);
}

}  // namespace penstock

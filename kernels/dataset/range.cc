// SPDX-License-Identifier: Apache-2.0
//
// RangeDataset: integers from start to stop by step.
#include <memory>
#include <utility>

#include "core/op/registry.h"
#include "kernels/dataset/counting_iterator.h"
#include "kernels/dataset/dataset_kernel.h"

namespace penstock {
namespace {

// Returns the number of elements of a range, at most INT64_MAX.
int64_t CountOf(int64_t start, int64_t stop, int64_t step) {
  const auto up = [](int64_t from, int64_t to, uint64_t by) {
    if (from >= to) return int64_t{0};
    const uint64_t distance = static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
    const uint64_t count = (distance - 1) / by + 1;
    return static_cast<int64_t>(std::min<uint64_t>(count, INT64_MAX));
  };
  const uint64_t by = step > 0 ? static_cast<uint64_t>(step) : -static_cast<uint64_t>(step);
  return step > 0 ? up(start, stop, by) : up(stop, start, by);
}

StatusOr<Tensor> NumberOf(DType dtype, int64_t value) {
  switch (dtype) {
    case DType::kInt32:
      return Tensor::Scalar(static_cast<int32_t>(value));
    case DType::kInt64:
      return Tensor::Scalar(value);
    case DType::kFloat:
      return Tensor::Scalar(static_cast<float>(value));
    case DType::kDouble:
      return Tensor::Scalar(static_cast<double>(value));
    case DType::kUint64:
      return Tensor::Scalar(static_cast<uint64_t>(value));
    default:
      return Unimplemented("a range of ", Name(dtype), ": must be int32, int64, uint64, float or ",
                           "double");
  }
}

class RangeDataset final : public Dataset {
 public:
  RangeDataset(ElementSpec spec, int64_t start, int64_t step, int64_t count)
      : Dataset(std::move(spec), {}), start_(start), step_(step), count_(count) {}
  const char* Name() const override { return "Range"; }
  int64_t Cardinality() const override { return count_; }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext&) const override {
    return std::make_unique<Iterator>(Self(this));
  }

 private:
  class Iterator final : public CountingIterator<RangeDataset> {
   public:
    using CountingIterator::CountingIterator;
    Status GetNext(const IteratorContext&, Element* element, bool* end) override {
      *end = next_ >= dataset_->count_;
      if (*end) return OkStatus();
      const uint64_t value = static_cast<uint64_t>(dataset_->start_) +
                             static_cast<uint64_t>(next_) * static_cast<uint64_t>(dataset_->step_);
      ASSIGN_OR_RETURN(Tensor number,
                       NumberOf(dataset_->spec().types[0], static_cast<int64_t>(value)));
      element->assign(1, std::move(number));
      ++next_;
      return OkStatus();
    }
  };

  const int64_t start_, step_, count_;
};

class RangeKernel final : public DatasetKernel {
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const int64_t start, ScalarInput<int64_t>(ctx, 0, "start"));
    ASSIGN_OR_RETURN(const int64_t stop, ScalarInput<int64_t>(ctx, 1, "stop"));
    ASSIGN_OR_RETURN(const int64_t step, ScalarInput<int64_t>(ctx, 2, "step"));
    if (step == 0) return InvalidArgument("step must be a non-zero integer.");
    if (spec().types.size() != 1) return InvalidArgument("a range has one component");
    RETURN_IF_ERROR(NumberOf(spec().types[0], 0).status());
    return std::make_shared<RangeDataset>(spec(), start, step, CountOf(start, stop, step));
  }
};

OP(RangeDataset) {
  return DatasetOp{
      .doc = "A dataset of the numbers from `start` to `stop` (excluded), in steps of `step`.",
      .inputs = {{"start", "int64"}, {"stop", "int64"}, {"step", "int64"}},
      .attrs = {TypesAttr("output_types", 1),
                {"output_shapes", ShapeList{}},
                {"metadata", ""},
                {"replicate_on_split", false}},
      .spec = false,
      .metadata = false,
      .stateful = true};
}
KERNEL_ANY_TYPE(RangeDataset, RangeKernel);

}  // namespace
}  // namespace penstock

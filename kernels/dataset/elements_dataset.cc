// SPDX-License-Identifier: Apache-2.0
#include "kernels/dataset/elements_dataset.h"

#include <memory>
#include <utility>

#include "kernels/dataset/counting_iterator.h"

namespace penstock {
namespace {

class ElementsDataset final : public Dataset {
 public:
  ElementsDataset(ElementSpec spec, std::vector<Element> elements)
      : Dataset(std::move(spec), {}), elements_(std::move(elements)) {}
  const char* Name() const override { return "Elements"; }
  int64_t Cardinality() const override { return static_cast<int64_t>(elements_.size()); }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext&) const override {
    return std::make_unique<Iterator>(Self(this));
  }

 private:
  class Iterator final : public CountingIterator<ElementsDataset> {
   public:
    using CountingIterator::CountingIterator;
    Status GetNext(const IteratorContext&, Element* element, bool* end) override {
      *end = next_ >= dataset_->Cardinality();
      if (!*end) *element = dataset_->elements_[next_++];
      return OkStatus();
    }
  };

  const std::vector<Element> elements_;
};

}  // namespace

DatasetPtr NewElementsDataset(ElementSpec spec, std::vector<Element> elements) {
  return std::make_shared<ElementsDataset>(std::move(spec), std::move(elements));
}

Tensor ElementsTensor(ElementSpec spec, std::vector<Element> elements) {
  return Tensor::Scalar(Variant{std::make_shared<DatasetValue>(
      NewElementsDataset(std::move(spec), std::move(elements)), /*height=*/1)});
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "kernels/dataset/elements_dataset.h"

#include <memory>
#include <utility>

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
  class Iterator final : public DatasetIterator {
   public:
    explicit Iterator(std::shared_ptr<const ElementsDataset> dataset)
        : dataset_(std::move(dataset)) {}
    bool NeverWaits() const override { return true; }
    Status GetNext(const IteratorContext&, Element* element, bool* end) override {
      *end = next_ >= dataset_->Cardinality();
      if (!*end) *element = dataset_->elements_[next_++];
      return OkStatus();
    }
    Status Save(const IteratorContext&, StateWriter* writer) override {
      writer->Label("Elements");
      writer->Int(next_);
      return OkStatus();
    }
    Status Restore(const IteratorContext&, StateReader* reader) override {
      RETURN_IF_ERROR(reader->Label("Elements"));
      ASSIGN_OR_RETURN(next_, reader->Int());
      return OkStatus();
    }

   private:
    const std::shared_ptr<const ElementsDataset> dataset_;
    int64_t next_ = 0;
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

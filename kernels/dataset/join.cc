// SPDX-License-Identifier: Apache-2.0
//
// ZipDataset: element i has the components of element i of each input; ConcatenateDataset: one
// input after the other.
#include <algorithm>
#include <memory>
#include <utility>

#include "core/op/registry.h"
#include "kernels/dataset/dataset_kernel.h"

namespace penstock {
namespace {

StatusOr<std::vector<IteratorPtr>> IteratorsOf(const Dataset& dataset, const IteratorContext& ctx) {
  std::vector<IteratorPtr> iterators;
  for (int i = 0; i < dataset.num_inputs(); ++i) {
    ASSIGN_OR_RETURN(IteratorPtr iterator, dataset.input(i).NewIterator(ctx));
    iterators.push_back(std::move(iterator));
  }
  return iterators;
}

// An iterator with several inputs.
class NaryIterator : public DatasetIterator {
 public:
  NaryIterator(const char* name, std::vector<IteratorPtr> inputs)
      : inputs_(std::move(inputs)), name_(name) {}
  bool NeverWaits() const override {
    return std::all_of(inputs_.begin(), inputs_.end(),
                       [](const IteratorPtr& input) { return input->NeverWaits(); });
  }
  Status Save(const IteratorContext& ctx, StateWriter* writer) override {
    writer->Label(name_);
    writer->Int(static_cast<int64_t>(current_));
    for (const IteratorPtr& input : inputs_) RETURN_IF_ERROR(input->Save(ctx, writer));
    return OkStatus();
  }
  Status Restore(const IteratorContext& ctx, StateReader* reader) override {
    RETURN_IF_ERROR(reader->Label(name_));
    ASSIGN_OR_RETURN(current_, reader->Int(0, static_cast<int64_t>(inputs_.size())));
    for (const IteratorPtr& input : inputs_) RETURN_IF_ERROR(input->Restore(ctx, reader));
    return OkStatus();
  }

 protected:
  const std::vector<IteratorPtr> inputs_;
  size_t current_ = 0;  // index of the input being read; inputs_.size(): the end

 private:
  const char* const name_;
};

class ZipDataset final : public Dataset {
 public:
  ZipDataset(ElementSpec spec, std::vector<DatasetPtr> inputs)
      : Dataset(std::move(spec), std::move(inputs)) {}
  const char* Name() const override { return "Zip"; }
  // Returns the cardinality of the shortest input. If the cardinality of an input is unknown, the
  // result is unknown, too, unless another input is empty.
  int64_t Cardinality() const override {
    int64_t least = kInfiniteCardinality;
    bool unknown = false;
    for (int i = 0; i < num_inputs(); ++i) {
      const int64_t count = input(i).Cardinality();
      unknown |= count == kUnknownCardinality;
      if (count >= 0) least = least < 0 ? count : std::min(least, count);
    }
    return unknown && least != 0 ? kUnknownCardinality : least;
  }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext& ctx) const override {
    ASSIGN_OR_RETURN(std::vector<IteratorPtr> inputs, IteratorsOf(*this, ctx));
    return std::make_unique<Iterator>(Name(), std::move(inputs));
  }

 private:
  class Iterator final : public NaryIterator {
   public:
    using NaryIterator::NaryIterator;
    Status GetNext(const IteratorContext& ctx, Element* element, bool* end) override {
      *end = current_ == inputs_.size();
      if (*end) return OkStatus();
      element->clear();
      for (const IteratorPtr& input : inputs_) {
        Element part;
        RETURN_IF_ERROR(input->GetNext(ctx, &part, end));
        if (*end) {
          current_ = inputs_.size();
          return OkStatus();
        }
        element->insert(element->end(), part.begin(), part.end());
      }
      return OkStatus();
    }
  };
};

class ConcatenateDataset final : public Dataset {
 public:
  ConcatenateDataset(ElementSpec spec, DatasetPtr first, DatasetPtr second)
      : Dataset(std::move(spec), {std::move(first), std::move(second)}) {}
  const char* Name() const override { return "Concatenate"; }
  int64_t Cardinality() const override {
    const int64_t first = input(0).Cardinality(), second = input(1).Cardinality();
    if (first == kInfiniteCardinality || second == kInfiniteCardinality) {
      return kInfiniteCardinality;
    }
    if (first < 0 || second < 0 || first > INT64_MAX - second) return kUnknownCardinality;
    return first + second;
  }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext& ctx) const override {
    ASSIGN_OR_RETURN(std::vector<IteratorPtr> inputs, IteratorsOf(*this, ctx));
    return std::make_unique<Iterator>(Name(), std::move(inputs));
  }

 private:
  class Iterator final : public NaryIterator {
   public:
    using NaryIterator::NaryIterator;
    Status GetNext(const IteratorContext& ctx, Element* element, bool* end) override {
      for (; current_ < inputs_.size(); ++current_) {
        RETURN_IF_ERROR(inputs_[current_]->GetNext(ctx, element, end));
        if (!*end) return OkStatus();
      }
      *end = true;
      return OkStatus();
    }
  };
};

class ZipKernel final : public DatasetKernel {
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    std::vector<DatasetPtr> inputs;
    ElementSpec made;
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx, i));
      const ElementSpec& spec = input->spec();
      made.types.insert(made.types.end(), spec.types.begin(), spec.types.end());
      made.shapes.insert(made.shapes.end(), spec.shapes.begin(), spec.shapes.end());
      inputs.push_back(std::move(input));
    }
    if (inputs.empty()) return InvalidArgument("there must be at least one dataset to zip");
    return std::make_shared<ZipDataset>(std::move(made), std::move(inputs));
  }
};

class ConcatenateKernel final : public DatasetKernel {
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(DatasetPtr first, DatasetInput(ctx, 0));
    ASSIGN_OR_RETURN(DatasetPtr second, DatasetInput(ctx, 1));
    if (first->spec().types != second->spec().types) {
      return InvalidArgument(
          "input dataset and dataset to concatenate have different output_types ",
          CheckTypes(first->spec(), second->spec()).message());
    }
    ElementSpec made{.types = first->spec().types};
    for (size_t i = 0; i < made.types.size(); ++i) {
      // Keeps only the dimensions that both inputs share.
      const PartialShape &a = first->spec().shapes[i], &b = second->spec().shapes[i];
      PartialShape shape;
      if (a.known_rank() && a.rank() == b.rank()) {
        shape = PartialShape::UnknownOfRank(a.rank());
        for (int d = 0; d < a.rank(); ++d) {
          if (a.dim(d) == b.dim(d)) shape.set_dim(d, a.dim(d));
        }
      }
      made.shapes.push_back(shape);
    }
    return std::make_shared<ConcatenateDataset>(std::move(made), std::move(first),
                                                std::move(second));
  }
};

OP(ZipDataset) {
  return DatasetOp{
      .doc =
          "Combines the elements of several datasets into tuples, until one of the datasets "
          "ends.",
      .inputs = {{"input_datasets", Repeat("N", "variant")}},
      .attrs = {TypesAttr("output_types", 1),
                {"output_shapes", ShapeList{}},
                {"N", Ints{.min = 1}}},
      .spec = false};
}

OP(ConcatenateDataset) {
  return DatasetOp{.doc = "Concatenates two datasets.",
                   .inputs = {{"input_dataset", "variant"}, {"another_dataset", "variant"}}};
}

KERNEL_ANY_TYPE(ZipDataset, ZipKernel);
KERNEL_ANY_TYPE(ConcatenateDataset, ConcatenateKernel);

}  // namespace
}  // namespace penstock

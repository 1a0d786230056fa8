// SPDX-License-Identifier: Apache-2.0
//
// RebatchDatasetV2: divides the rows of batches into batches of other sizes. RebatchDataset:
// divides each batch into parts for a number of replicas.
#include <algorithm>
#include <memory>
#include <utility>

#include "core/op/registry.h"
#include "kernels/dataset/dataset_kernel.h"
#include "kernels/dataset/rows.h"

namespace penstock {
namespace {

Element Slice(const Element& batch, int64_t begin, int64_t end) {
  Element slice;
  for (const Tensor& component : batch) slice.push_back(component.Slice(begin, end));
  return slice;
}

// The base of the iterators of RebatchDataset and RebatchDatasetV2. It takes rows from the batch
// that was read last.
class RowsIterator : public UnaryIterator {
 public:
  RowsIterator(DatasetPtr dataset, IteratorPtr input)
      : UnaryIterator(std::move(input)), dataset_(std::move(dataset)) {}
  Status Save(const IteratorContext& ctx, StateWriter* writer) override {
    writer->Label(dataset_->Name());
    writer->Int(turn_);
    writer->Int(next_);
    writer->Int(ended_);
    writer->Values(batch_);
    return UnaryIterator::Save(ctx, writer);
  }
  Status Restore(const IteratorContext& ctx, StateReader* reader) override {
    RETURN_IF_ERROR(reader->Label(dataset_->Name()));
    ASSIGN_OR_RETURN(turn_, reader->Int(0, turns() - 1));
    ASSIGN_OR_RETURN(next_, reader->Int());
    ASSIGN_OR_RETURN(ended_, reader->Int(0, 1));
    ASSIGN_OR_RETURN(batch_, reader->Values());
    if (!batch_.empty()) RETURN_IF_ERROR(CheckBatch(batch_, dataset_->input().spec()));
    if (next_ > rows()) {
      return InvalidArgument("the state's next row is ", next_, " of a batch of ", rows());
    }
    return UnaryIterator::Restore(ctx, reader);
  }

 protected:
  virtual int64_t turns() const = 0;  // the number of outputs after which the sizes repeat
  int64_t rows() const { return batch_.empty() ? 0 : batch_[0].dim(0); }
  // Reads the next batch, or sets ended_.
  Status Read(const IteratorContext& ctx) {
    Element batch;
    bool end = false;
    RETURN_IF_ERROR(input_->GetNext(ctx, &batch, &end));
    ended_ = end;
    if (end) return OkStatus();
    RETURN_IF_ERROR(CheckBatch(batch, dataset_->input().spec()));
    batch_ = std::move(batch);
    next_ = 0;
    return OkStatus();
  }
  void Advance() { turn_ = (turn_ + 1) % turns(); }

  const DatasetPtr dataset_;
  Element batch_;
  int64_t next_ = 0;  // the first row of batch_ not yet returned
  int64_t turn_ = 0;
  int64_t ended_ = 0;  // 1: the input has ended
};

class RebatchV2Dataset final : public Dataset {
 public:
  RebatchV2Dataset(ElementSpec spec, DatasetPtr input, std::vector<int64_t> sizes,
                   bool drop_remainder)
      : Dataset(std::move(spec), {std::move(input)}),
        sizes_(std::move(sizes)),
        drop_remainder_(drop_remainder) {}
  const char* Name() const override { return "RebatchV2"; }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext& ctx) const override {
    ASSIGN_OR_RETURN(IteratorPtr input, this->input().NewIterator(ctx));
    return std::make_unique<Iterator>(Self(this), std::move(input));
  }

 private:
  class Iterator final : public RowsIterator {
   public:
    Iterator(std::shared_ptr<const RebatchV2Dataset> dataset, IteratorPtr input)
        : RowsIterator(dataset, std::move(input)), rebatch_(*dataset) {}
    Status GetNext(const IteratorContext& ctx, Element* element, bool* end) override {
      const int64_t wanted = rebatch_.sizes_[turn_];
      int64_t found = 0;
      std::vector<Element> pieces;
      while (found < wanted && !ended_) {
        if (ctx.cancellation->cancelled()) return ctx.cancellation->status();
        if (next_ == rows()) {
          RETURN_IF_ERROR(Read(ctx));
          continue;
        }
        const int64_t count = std::min(wanted - found, rows() - next_);
        pieces.push_back(Slice(batch_, next_, next_ + count));
        next_ += count;
        found += count;
      }
      *end = ended_ && (found == 0 || (found < wanted && rebatch_.drop_remainder_));
      if (*end) return OkStatus();
      Advance();
      if (wanted == 0) return Empty(element);
      ASSIGN_OR_RETURN(*element, JoinBatches(std::move(pieces)));
      return OkStatus();
    }

   private:
    int64_t turns() const override { return static_cast<int64_t>(rebatch_.sizes_.size()); }

    // Makes a batch without rows. Sizes that are not known before the first batch are 0.
    // InvalidArgument if a component is a scalar.
    Status Empty(Element* element) const {
      element->clear();
      const ElementSpec& spec = rebatch_.input().spec();
      for (size_t i = 0; i < spec.types.size(); ++i) {
        Dims dims = {0};
        if (!batch_.empty()) {
          dims.assign(batch_[i].shape().dims().begin(), batch_[i].shape().dims().end());
        } else if (spec.shapes[i].known_rank()) {
          dims.assign(spec.shapes[i].dims().begin(), spec.shapes[i].dims().end());
        }
        if (dims.empty()) {
          return InvalidArgument("Input element must have a non-scalar value in each component.");
        }
        dims[0] = 0;
        for (int64_t& dim : dims) dim = std::max<int64_t>(dim, 0);
        ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
        ASSIGN_OR_RETURN(Tensor empty, NewTensor(spec.types[i], shape));
        element->push_back(std::move(empty));
      }
      return OkStatus();
    }

    const RebatchV2Dataset& rebatch_;  // RowsIterator holds it
  };

  const std::vector<int64_t> sizes_;
  const bool drop_remainder_;
};

class RebatchDataset final : public Dataset {
 public:
  RebatchDataset(ElementSpec spec, DatasetPtr input, int64_t replicas)
      : Dataset(std::move(spec), {std::move(input)}), replicas_(replicas) {}
  const char* Name() const override { return "Rebatch"; }
  int64_t Cardinality() const override {
    const int64_t batches = input().Cardinality();
    if (batches < 0) return batches;
    return batches > INT64_MAX / replicas_ ? kUnknownCardinality : batches * replicas_;
  }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext& ctx) const override {
    ASSIGN_OR_RETURN(IteratorPtr input, this->input().NewIterator(ctx));
    return std::make_unique<Iterator>(Self(this), std::move(input), replicas_);
  }

 private:
  class Iterator final : public RowsIterator {
   public:
    Iterator(DatasetPtr dataset, IteratorPtr input, int64_t replicas)
        : RowsIterator(std::move(dataset), std::move(input)), replicas_(replicas) {}
    Status GetNext(const IteratorContext& ctx, Element* element, bool* end) override {
      if (turn_ == 0) RETURN_IF_ERROR(Read(ctx));
      *end = ended_ || batch_.empty();
      if (*end) return OkStatus();
      const int64_t part = rows() / replicas_ + (rows() % replicas_ != 0);
      const int64_t stop = std::min(next_ + part, rows());
      *element = Slice(batch_, next_, stop);
      next_ = stop;
      Advance();
      return OkStatus();
    }

   private:
    int64_t turns() const override { return replicas_; }
    const int64_t replicas_;
  };

  const int64_t replicas_;
};

class RebatchV2Kernel final : public DatasetKernel {
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx));
    const Tensor& given = ctx.input(1);
    if (given.rank() > 1) {
      return InvalidArgument("batch_sizes must be a scalar or a vector, has shape ",
                             given.shape().ToString());
    }
    const auto values = given.flat<int64_t>();
    std::vector<int64_t> sizes(values.begin(), values.end());
    if (std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size < 0; }) ||
        std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size == 0; })) {
      return InvalidArgument("batch_sizes must be >= 0, and one of them > 0: ", given.ToString());
    }
    ASSIGN_OR_RETURN(const bool drop, ScalarInput<bool>(ctx, 2, "drop_remainder"));
    return std::make_shared<RebatchV2Dataset>(spec(), std::move(input), std::move(sizes), drop);
  }
};

class RebatchKernel final : public DatasetKernel {
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx));
    ASSIGN_OR_RETURN(const int64_t replicas, ScalarInput<int64_t>(ctx, 1, "num_replicas"));
    if (replicas <= 0) return InvalidArgument("num_replicas must be greater than zero.");
    return std::make_shared<RebatchDataset>(spec(), std::move(input), replicas);
  }
};

OP(RebatchDatasetV2) {
  return DatasetOp{
      .doc =
          "Divides the rows of a dataset's batches into batches of other sizes: batch_sizes, "
          "repeated cyclically. The last batch may be smaller; with drop_remainder, a smaller one "
          "is dropped.",
      .inputs = {{"input_dataset", "variant"},
                 {"batch_sizes", "int64"},
                 {"drop_remainder", "bool"}},
      .metadata = false};
}
DatasetOp RebatchOp() {
  return {.doc =
              "Divides each batch of a dataset into num_replicas batches of equal size. The last "
              "of them may be smaller or empty.",
          .inputs = {{"input_dataset", "variant"}, {"num_replicas", "int64"}},
          .attrs = {TypesAttr("output_types", 1),
                    {"output_shapes", ShapeList{}},
                    {"use_fallback", true}},
          .spec = false,
          .metadata = false};
}
OP(RebatchDataset) { return RebatchOp(); }
OP(ExperimentalRebatchDataset) { return RebatchOp(); }
KERNEL_ANY_TYPE(RebatchDatasetV2, RebatchV2Kernel);
KERNEL_ANY_TYPE(RebatchDataset, RebatchKernel);
KERNEL_ANY_TYPE(ExperimentalRebatchDataset, RebatchKernel);

}  // namespace
}  // namespace penstock

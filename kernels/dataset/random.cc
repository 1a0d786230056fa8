// SPDX-License-Identifier: Apache-2.0
//
// RandomDataset, RandomDatasetV2: an infinite sequence of random numbers.
#include <memory>
#include <utility>

#include "core/op/registry.h"
#include "kernels/dataset/dataset_kernel.h"
#include "kernels/dataset/seeds.h"

namespace penstock {
namespace {

class RandomDataset final : public Dataset {
 public:
  RandomDataset(ElementSpec spec, std::shared_ptr<SeedGenerator> seeds)
      : Dataset(std::move(spec), {}), seeds_(std::move(seeds)) {}
  const char* Name() const override { return "Random"; }
  int64_t Cardinality() const override { return kInfiniteCardinality; }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext& ctx) const override {
    return std::make_unique<Iterator>(seeds_, ctx.origin);
  }

 private:
  class Iterator final : public DatasetIterator {
   public:
    Iterator(std::shared_ptr<SeedGenerator> generator, const UpdateOrigin& origin)
        : generator_(std::move(generator)),
          seeds_(generator_->Next(origin)),
          numbers_(seeds_.Stream()) {}
    bool NeverWaits() const override { return true; }
    Status GetNext(const IteratorContext&, Element* element, bool* end) override {
      *end = false;
      element->assign(1, Tensor::Scalar(int64_t{numbers_()}));
      ++drawn_;
      return OkStatus();
    }
    Status Save(const IteratorContext&, StateWriter* writer) override {
      writer->Label("Random");
      generator_->Save(writer);
      writer->Int(seeds_.seed);
      writer->Int(seeds_.seed2);
      writer->Int(drawn_);
      return OkStatus();
    }
    Status Restore(const IteratorContext& ctx, StateReader* reader) override {
      RETURN_IF_ERROR(reader->Label("Random"));
      // The iterators after this one must get the seeds that they would have got.
      RETURN_IF_ERROR(generator_->Restore(reader, ctx.origin));
      ASSIGN_OR_RETURN(seeds_.seed, reader->AnyInt());
      ASSIGN_OR_RETURN(seeds_.seed2, reader->AnyInt());
      ASSIGN_OR_RETURN(drawn_, reader->Int());
      numbers_ = PhiloxNumbers(seeds_.Stream(), static_cast<uint64_t>(drawn_));
      return OkStatus();
    }

   private:
    const std::shared_ptr<SeedGenerator> generator_;
    Seeds seeds_;
    PhiloxNumbers numbers_;
    int64_t drawn_ = 0;
  };

  const std::shared_ptr<SeedGenerator> seeds_;
};

class RandomKernel final : public DatasetKernel {
 public:
  Status Init(const KernelInit& node) override {
    if (node.attrs.contains("rerandomize_each_iteration")) {
      RETURN_IF_ERROR(node.Attr("rerandomize_each_iteration", &rerandomizes_));
    }
    return DatasetKernel::Init(node);
  }

 private:
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    Seeds seeds{};
    ASSIGN_OR_RETURN(seeds.seed, ScalarInput<int64_t>(ctx, 0, "seed"));
    ASSIGN_OR_RETURN(seeds.seed2, ScalarInput<int64_t>(ctx, 1, "seed2"));
    auto generator = std::make_shared<SeedGenerator>(seeds, rerandomizes_, *ctx.step().env);
    if (ctx.num_inputs() > 2 && ctx.input(2).num_elements() == 1) {
      const auto& handle = ctx.input(2).scalar<ResourceHandle>();
      auto shared = std::dynamic_pointer_cast<SeedGenerator>(handle.resource);
      if (shared != nullptr) generator = std::move(shared);  // null: the input is a dummy resource
    }
    const ElementSpec made{.types = {DType::kInt64}, .shapes = {PartialShape::Scalar()}};
    RETURN_IF_ERROR(CheckTypes(spec(), made));
    return std::make_shared<RandomDataset>(made, std::move(generator));
  }

  bool rerandomizes_ = false;
};

DatasetOp RandomOp(bool metadata) {
  return {.doc = "An infinite dataset of random numbers in [0, 2^32).",
          .inputs = {{"seed", "int64"}, {"seed2", "int64"}},
          .metadata = metadata,
          .stateful = true};
}
OP(RandomDataset) { return RandomOp(true); }
OP(ExperimentalRandomDataset) { return RandomOp(false); }
OP(RandomDatasetV2) {
  DatasetOp op = RandomOp(true);
  op.inputs.push_back({"seed_generator", "resource"});
  op.attrs = {{"rerandomize_each_iteration", false}};
  return op;
}
KERNEL_ANY_TYPE(RandomDataset, RandomKernel);
KERNEL_ANY_TYPE(ExperimentalRandomDataset, RandomKernel);
KERNEL_ANY_TYPE(RandomDatasetV2, RandomKernel);

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// CacheDataset, CacheDatasetV2: keep the elements of the first complete iteration for later
// iterations, in memory or in a file (file_cache.h).
#include <memory>
#include <utility>

#include "core/base/mutex.h"
#include "core/op/registry.h"
#include "kernels/dataset/dataset_kernel.h"
#include "kernels/dataset/file_cache.h"
#include "kernels/dataset/shared_handle.h"

namespace penstock {
namespace {

using Elements = std::vector<Element>;

// The elements of one cached dataset. Thread-safe. A resource, because a graph may hold a handle to
// it. Action in a StateLog: "fill".
class MemoryCache final : public Resource {
 public:
  static constexpr char kType[] = "MemoryCache";

  // Returns null until an iteration has reached the end of the input.
  std::shared_ptr<const Elements> Get() const {
    MutexLock lock(mu_);
    return elements_;
  }
  // Stores the elements of a complete iteration; only the first call has an effect.
  void Set(Elements elements, const UpdateOrigin& origin) {
    MutexLock lock(mu_);
    if (elements_ != nullptr) return;
    elements_ = std::make_shared<const Elements>(std::move(elements));
    Changed(origin, "fill", [] { return std::vector<Tensor>(); });
  }
  const char* TypeName() const override { return kType; }
  std::string DebugString() const override { return "the cached elements of a dataset"; }
  const char* OpaqueReason() const override { return "its dataset may read files and functions"; }

 private:
  mutable Mutex mu_;
  std::shared_ptr<const Elements> elements_ ABSL_GUARDED_BY(mu_);
};

class CacheDataset final : public Dataset {
 public:
  CacheDataset(DatasetPtr input, std::shared_ptr<MemoryCache> cache)
      : Dataset(input->spec(), {input}), cache_(std::move(cache)) {}
  const char* Name() const override { return "Cache"; }
  int64_t Cardinality() const override { return input().Cardinality(); }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext& ctx) const override {
    auto cached = cache_->Get();
    IteratorPtr input;
    if (cached == nullptr) {
      ASSIGN_OR_RETURN(input, this->input().NewIterator(ctx));
    }
    return std::make_unique<Iterator>(Self(this), std::move(cached), std::move(input));
  }

 private:
  class Iterator final : public DatasetIterator {
   public:
    Iterator(std::shared_ptr<const CacheDataset> dataset, std::shared_ptr<const Elements> cached,
             IteratorPtr input)
        : dataset_(std::move(dataset)), cached_(std::move(cached)), input_(std::move(input)) {}
    bool NeverWaits() const override { return input_ == nullptr || input_->NeverWaits(); }

    Status GetNext(const IteratorContext& ctx, Element* element, bool* end) override {
      if (cached_ != nullptr) {
        *end = next_ >= static_cast<int64_t>(cached_->size());
        if (!*end) *element = (*cached_)[next_++];
        return OkStatus();
      }
      *end = ended_;
      if (ended_) return OkStatus();
      RETURN_IF_ERROR(input_->GetNext(ctx, element, end));
      if (!*end) {
        read_.push_back(*element);
        return OkStatus();
      }
      ended_ = true;
      dataset_->cache_->Set(std::move(read_), ctx.origin);
      return OkStatus();
    }

    // Also saves the elements that this iterator has read, because the process that restores the
    // iterator does not have the cache.
    Status Save(const IteratorContext& ctx, StateWriter* writer) override {
      const Elements& elements = cached_ != nullptr ? *cached_ : read_;
      writer->Label("Cache");
      writer->Int(cached_ != nullptr);
      writer->Int(next_);
      writer->Int(ended_);
      writer->Int(static_cast<int64_t>(elements.size()));
      for (const Element& element : elements) writer->Values(element);
      return input_ == nullptr ? OkStatus() : input_->Save(ctx, writer);
    }
    Status Restore(const IteratorContext& ctx, StateReader* reader) override {
      RETURN_IF_ERROR(reader->Label("Cache"));
      ASSIGN_OR_RETURN(const int64_t whole, reader->Int(0, 1));
      ASSIGN_OR_RETURN(next_, reader->Int());
      ASSIGN_OR_RETURN(ended_, reader->Int(0, 1));
      ASSIGN_OR_RETURN(const int64_t count, reader->Int());
      Elements elements;
      for (int64_t i = 0; i < count; ++i) {
        ASSIGN_OR_RETURN(Element element, reader->ElementOf(dataset_->spec()));
        elements.push_back(std::move(element));
      }
      if (whole == 1) {
        cached_ = std::make_shared<const Elements>(std::move(elements));
        input_ = nullptr;
        return OkStatus();
      }
      cached_ = nullptr;
      read_ = std::move(elements);
      if (input_ == nullptr) {
        ASSIGN_OR_RETURN(input_, dataset_->input().NewIterator(ctx));
      }
      return input_->Restore(ctx, reader);
    }

   private:
    const std::shared_ptr<const CacheDataset> dataset_;
    std::shared_ptr<const Elements> cached_;  // null if this iterator fills the cache
    IteratorPtr input_;                       // null if the input is not read
    Elements read_;
    int64_t next_ = 0;
    bool ended_ = false;
  };

  const std::shared_ptr<MemoryCache> cache_;
};

template <bool kResource>
class CacheKernel final : public DatasetKernel {
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx));
    ASSIGN_OR_RETURN(const std::string file, ScalarInput<std::string>(ctx, 1, "filename"));
    if (!file.empty()) return NewFileCacheDataset(std::move(input), file);
    auto cache = std::make_shared<MemoryCache>();
    if (kResource && ctx.input(2).num_elements() == 1) {
      const auto& handle = ctx.input(2).scalar<ResourceHandle>();
      auto shared = std::dynamic_pointer_cast<MemoryCache>(handle.resource);
      if (shared != nullptr) cache = std::move(shared);  // null: the input is a dummy resource
    }
    return std::make_shared<CacheDataset>(std::move(input), std::move(cache));
  }
};

template <bool kShared>
class MemoryCacheKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    auto cache = kShared ? std::make_shared<MemoryCache>() : nullptr;
    ctx.SetOutput(0, SharedHandle(ctx, "memory_cache", MemoryCache::kType, std::move(cache)));
    if (ctx.num_outputs() > 1) ctx.SetOutput(1, Tensor::Scalar(Variant()));
    return OkStatus();
  }
};

OP(CacheDataset) {
  return DatasetOp{
      .doc =
          "Keeps the elements of the first complete iteration for later iterations: in memory if "
          "filename is empty, else in the file FILENAME.cache. Only one iterator at a time writes "
          "the file; FILENAME.lockfile names its process meanwhile, and is taken over if that "
          "process of the same machine has been killed. If the iterator ends early, the file is "
          "dropped.",
      .inputs = {{"input_dataset", "variant"}, {"filename", "string"}},
      .acts_outside = true};
}
OP(CacheDatasetV2) {
  return DatasetOp{
      .doc =
          "Keeps the elements of the first complete iteration for later iterations: in `cache` if "
          "filename is empty, else in files as CacheDataset does.",
      .inputs = {{"input_dataset", "variant"}, {"filename", "string"}, {"cache", "resource"}},
      .stateful = true,
      .acts_outside = true};
}
OP(AnonymousMemoryCache) {
  return SharedHandleOp(
      "Makes a cache in memory, which all cached datasets with this handle share.", {},
      {{"handle", "resource"}, {"deleter", "variant"}});
}
OP(DummyMemoryCache) {
  return SharedHandleOp(
      "Returns a handle without a cache: a dataset with this handle makes a cache of its own.", {},
      {{"handle", "resource"}});
}
OP(DeleteMemoryCache) { return DeleteSharedOp("Declares that a cache is no longer used."); }
KERNEL_ANY_TYPE(CacheDataset, CacheKernel<false>);
KERNEL_ANY_TYPE(CacheDatasetV2, CacheKernel<true>);
KERNEL_ANY_TYPE(AnonymousMemoryCache, MemoryCacheKernel<true>);
KERNEL_ANY_TYPE(DummyMemoryCache, MemoryCacheKernel<false>);
KERNEL_ANY_TYPE(DeleteMemoryCache, DeleteSharedKernel);

}  // namespace
}  // namespace penstock

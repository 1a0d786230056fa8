// SPDX-License-Identifier: Apache-2.0
//
// PrefetchDataset: a thread of the iterator reads elements ahead of the calls.
#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

#include "core/base/mutex.h"
#include "core/op/registry.h"
#include "kernels/dataset/cancellable_wait.h"
#include "kernels/dataset/dataset_kernel.h"
#include "kernels/dataset/parallelism.h"

namespace penstock {
namespace {

// The number of elements to buffer if buffer_size is -1, and the maximum of buffer_size.
constexpr int64_t kAutotuned = 16;
constexpr int64_t kBufferMax = 100'000;

class PrefetchDataset final : public Dataset {
 public:
  PrefetchDataset(DatasetPtr input, int64_t buffer_size)
      : Dataset(input->spec(), {input}), buffer_size_(buffer_size) {}
  const char* Name() const override { return "Prefetch"; }
  int64_t Cardinality() const override { return input().Cardinality(); }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext& ctx) const override {
    ASSIGN_OR_RETURN(IteratorPtr input, this->input().NewIterator(ctx));
    if (buffer_size_ == 0) return input;
    return std::make_unique<Iterator>(ctx, Self(this), std::move(input));
  }

 private:
  // The result of a read: an element, or an error.
  struct Result {
    Status status;
    Element element;
  };

  class Iterator final : public DatasetIterator {
   public:
    Iterator(const IteratorContext& ctx, std::shared_ptr<const PrefetchDataset> dataset,
             IteratorPtr input)
        : dataset_(std::move(dataset)),
          background_(ctx.With(&stop_)),
          input_(std::move(input)),
          changed_(*ctx.threads, "the next prefetched element") {}
    ~Iterator() override {
      {
        MutexLock lock(mu_);
        stopped_ = true;
      }
      changed_.NotifyAll();
      stop_.Cancel(Cancelled("the iterator was deleted"));
      thread_ = nullptr;
    }

    bool ReadyNow() const override {
      MutexLock lock(mu_);
      return !buffer_.empty() || ended_;
    }

    Status GetNext(const IteratorContext& ctx, Element* element, bool* end) override {
      StartThread();
      const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        return !buffer_.empty() || ended_;
      };
      RETURN_IF_ERROR(CancellableWait(ctx, mu_, changed_, ready));
      MutexLock lock(mu_);
      *end = buffer_.empty();
      if (*end) return OkStatus();
      Result next = std::move(buffer_.front());
      buffer_.pop_front();
      lock.Unlock();
      changed_.NotifyAll();
      *element = std::move(next.element);
      return next.status;
    }

    // Writes the state, with the elements that were read ahead. While it writes, the thread reads
    // no elements.
    Status Save(const IteratorContext& ctx, StateWriter* writer) override {
      MutexLock reading(input_mu_);
      MutexLock lock(mu_);
      writer->Label("Prefetch");
      writer->Int(ended_);
      writer->Int(static_cast<int64_t>(buffer_.size()));
      for (const Result& result : buffer_) {
        writer->Error(result.status);
        writer->Values(result.element);
      }
      return input_->Save(ctx, writer);
    }
    Status Restore(const IteratorContext& ctx, StateReader* reader) override {
      MutexLock reading(input_mu_);
      MutexLock lock(mu_);
      RETURN_IF_ERROR(reader->Label("Prefetch"));
      ASSIGN_OR_RETURN(ended_, reader->Int(0, 1));
      ASSIGN_OR_RETURN(const int64_t count, reader->Int(0, kBufferMax));
      for (int64_t i = 0; i < count; ++i) {
        Result result;
        RETURN_IF_ERROR(reader->Result(dataset_->spec(), &result.status, &result.element));
        buffer_.push_back(std::move(result));
      }
      return input_->Restore(ctx, reader);
    }

   private:
    void StartThread() {
      if (thread_ == nullptr) {
        thread_ = background_.threads->StartThread("penstock_prefetch", [this] { ReadAhead(); });
      }
    }

    void ReadAhead() {
      while (WaitForRoom()) {
        MutexLock reading(input_mu_);
        Result result;
        bool end = false;
        result.status = input_->GetNext(background_, &result.element, &end);
        if (stop_.cancelled()) return;
        MutexLock lock(mu_);
        end &= result.status.ok();
        if (end) {
          ended_ = true;
        } else {
          buffer_.push_back(std::move(result));
        }
        lock.Unlock();
        changed_.NotifyAll();
        if (end) return;
      }
    }

    // Waits until the buffer can take another element. Returns false if the iterator is being
    // destroyed, or if the input has ended.
    bool WaitForRoom() {
      MutexLock lock(mu_);
      changed_.Wait(mu_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        return stopped_ || static_cast<int64_t>(buffer_.size()) < dataset_->buffer_size_;
      });
      return !stopped_ && !ended_;
    }

    const std::shared_ptr<const PrefetchDataset> dataset_;
    Cancellation stop_;
    const IteratorContext background_;
    Mutex input_mu_;  // locked before mu_
    const IteratorPtr input_ ABSL_PT_GUARDED_BY(input_mu_);
    mutable Mutex mu_;
    Condition changed_;
    bool stopped_ ABSL_GUARDED_BY(mu_) = false;
    bool ended_ ABSL_GUARDED_BY(mu_) = false;
    std::deque<Result> buffer_ ABSL_GUARDED_BY(mu_);
    std::unique_ptr<Thread> thread_;  // must end before the members that it uses
  };

  const int64_t buffer_size_;
};

class PrefetchKernel final : public DatasetKernel {
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx));
    ASSIGN_OR_RETURN(int64_t buffer_size, ScalarInput<int64_t>(ctx, 1, "buffer_size"));
    if (buffer_size < kAutotune) {
      return InvalidArgument("buffer_size must be >= 0 or set buffer_size to be -1 for ",
                             "auto-tuning");
    }
    if (buffer_size == kAutotune) buffer_size = kAutotuned;
    return std::make_shared<PrefetchDataset>(std::move(input), std::min(buffer_size, kBufferMax));
  }
};

OP(PrefetchDataset) {
  return DatasetOp{
      .doc = "Reads up to `buffer_size` elements ahead (-1: 16 elements; at most 100000).",
      .inputs = {{"input_dataset", "variant"}, {"buffer_size", "int64"}},
      .attrs = {TypesAttr("output_types", 1),
                {"output_shapes", ShapeList{}},
                {"slack_period", 0},
                {"legacy_autotune", true},
                {"buffer_size_min", 0}},
      .spec = false};
}
KERNEL_ANY_TYPE(PrefetchDataset, PrefetchKernel);

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// ParallelInterleaveDataset and its versions: the elements of several datasets in turns. Threads of
// the iterator read these datasets ahead.
//
// A cycle has one slot for each dataset. The caller of GetNext assigns the next elements of the
// input to the slots in the same order as InterleaveDataset, and takes elements from the slots'
// buffers, which threads fill. So the elements have the same order as in InterleaveDataset. If the
// program allows any order, slots with empty buffers are skipped.
#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/mutex.h"
#include "core/op/registry.h"
#include "kernels/dataset/cancellable_wait.h"
#include "kernels/dataset/dataset_kernel.h"
#include "kernels/dataset/nested.h"
#include "kernels/dataset/parallelism.h"

namespace penstock {
namespace {

struct Cycle {
  int64_t length, block_length;
  int64_t threads;
  int64_t buffered;  // elements of each dataset
  bool in_order;
};

class ParallelInterleaveDataset final : public Dataset {
 public:
  ParallelInterleaveDataset(ElementSpec spec, DatasetPtr input, CapturedFunction function,
                            const Cycle& cycle)
      : Dataset(std::move(spec), {std::move(input)}),
        function_(std::move(function)),
        cycle_(cycle) {}
  const char* Name() const override { return "ParallelInterleave"; }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext& ctx) const override {
    ASSIGN_OR_RETURN(IteratorPtr input, this->input().NewIterator(ctx));
    ASSIGN_OR_RETURN(ElementCall call, ElementCall::New(ctx, function_));
    return std::make_unique<Iterator>(ctx, Self(this), std::move(input), std::move(call));
  }

 private:
  struct Result {
    Status status;
    Element element;
  };
  struct Slot {
    bool used = false;   // has a dataset, or an element to make one of
    bool ended = false;  // the dataset has no elements after `results`
    bool busy = false;   // a thread reads it, and owns `nested` and `args`
    std::deque<Result> results;
    std::optional<Element> args;
    NestedIterator nested;
  };

  class Iterator final : public DatasetIterator {
   public:
    Iterator(const IteratorContext& ctx, std::shared_ptr<const ParallelInterleaveDataset> dataset,
             IteratorPtr input, ElementCall call)
        : dataset_(std::move(dataset)),
          cycle_(dataset_->cycle_),
          background_(ctx.With(&stop_)),
          input_(std::move(input)),
          call_(std::move(call)),
          changed_(*ctx.threads, "elements of datasets that are read in parallel"),
          slots_(cycle_.length) {}
    ~Iterator() override {
      {
        MutexLock lock(mu_);
        stopped_ = true;
      }
      changed_.NotifyAll();
      stop_.Cancel(Cancelled("the iterator was deleted"));
      threads_.clear();
    }

    Status GetNext(const IteratorContext& ctx, Element* element, bool* end) override {
      StartThreads();
      while (true) {
        RETURN_IF_ERROR(FillSlots(ctx));
        // Searches for the slot whose turn it is, and sets `current_slot_` to it.
        const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return FindReady(); };
        RETURN_IF_ERROR(CancellableWait(ctx, mu_, changed_, ready));
        MutexLock lock(mu_);
        Slot& slot = slots_[current_slot_];
        *end = !slot.used;
        if (*end) return std::exchange(input_error_, OkStatus());
        if (slot.results.empty()) {  // the slot's dataset has ended
          slot = Slot();
          Advance();
          continue;
        }
        Result result = std::move(slot.results.front());
        slot.results.pop_front();
        if (++returned_in_turn_ >= cycle_.block_length) Advance();
        lock.Unlock();
        changed_.NotifyAll();
        *element = std::move(result.element);
        return result.status;
      }
    }

    Status Save(const IteratorContext& ctx, StateWriter* writer) override {
      {
        MutexLock lock(mu_);
        paused_ = true;
      }
      const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        return std::none_of(slots_.begin(), slots_.end(),
                            [](const Slot& slot) { return slot.busy; });
      };
      Status status = CancellableWait(ctx, mu_, changed_, ready);
      if (status.ok()) status = SaveSlots(ctx, writer);
      {
        MutexLock lock(mu_);
        paused_ = false;
      }
      changed_.NotifyAll();
      return status;
    }
    Status Restore(const IteratorContext& ctx, StateReader* reader) override;

   private:
    // Assigns an element of the input to each unused slot, in the order of turns.
    Status FillSlots(const IteratorContext& ctx) {
      for (int64_t i = 0; i < cycle_.length && !input_ended_ && input_error_.ok(); ++i) {
        Slot& slot = slots_[(current_slot_ + i) % slots_.size()];
        {
          MutexLock lock(mu_);
          if (slot.used) continue;
        }
        Element args;
        bool end = false;
        const Status status = input_->GetNext(ctx, &args, &end);
        if (ctx.cancellation->cancelled()) return ctx.cancellation->status();
        if (!status.ok()) {
          input_error_ = status;  // returned after the buffered elements
        } else if (end) {
          input_ended_ = true;
        } else {
          MutexLock lock(mu_);
          slot.used = true;
          slot.args = std::move(args);
          lock.Unlock();
          changed_.NotifyAll();
        }
      }
      return OkStatus();
    }

    // Sets `current_slot_` to the slot from which to take next. Returns true if that slot has a
    // result or has ended, or if no slot is used.
    bool FindReady() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      for (int64_t i = 0; i < cycle_.length; ++i) {
        const size_t at = (current_slot_ + i) % slots_.size();
        const Slot& slot = slots_[at];
        if (!slot.used) continue;
        const bool ready = !slot.results.empty() || slot.ended;
        if (!ready && cycle_.in_order) return false;
        if (!ready) continue;
        if (at != current_slot_) returned_in_turn_ = 0;
        current_slot_ = at;
        return true;
      }
      // In deterministic order, slots are filled in turn: if slot current_slot_ is unused, no slot
      // is used.
      return std::none_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.used; });
    }

    void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      current_slot_ = (current_slot_ + 1) % slots_.size();
      returned_in_turn_ = 0;
    }

    void StartThreads() {
      while (static_cast<int64_t>(threads_.size()) < cycle_.threads) {
        threads_.push_back(
            background_.threads->StartThread("penstock_interl", [this] { ReadSlots(); }));
      }
    }

    // The main function of each thread.
    void ReadSlots() {
      while (Slot* const slot = NextToRead()) {
        while (ReadOne(*slot)) {
        }
      }
    }

    bool MayRead(const Slot& slot) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return slot.used && !slot.ended && !paused_ && !stopped_ &&
             static_cast<int64_t>(slot.results.size()) < cycle_.buffered;
    }

    // Waits for a slot to read, and returns it. Returns null if the iterator is being destroyed.
    Slot* NextToRead() {
      MutexLock lock(mu_);
      Slot* next = nullptr;
      changed_.Wait(mu_, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        for (size_t i = 0; i < slots_.size() && next == nullptr; ++i) {
          Slot& slot = slots_[(current_slot_ + i) % slots_.size()];
          if (!slot.busy && MayRead(slot)) next = &slot;
        }
        return stopped_ || next != nullptr;
      });
      if (stopped_) return nullptr;
      next->busy = true;
      return next;
    }

    // Reads one element for a slot that this thread owns. Returns false, and gives up the slot, if
    // the slot's buffer is full or its dataset has ended.
    bool ReadOne(Slot& slot) {
      Result result;
      bool end = false;
      if (slot.args) {
        result.status = slot.nested.Open(background_, call_, *std::exchange(slot.args, {}));
        end = !result.status.ok();
      }
      if (result.status.ok()) {
        result.status = slot.nested.GetNext(background_, &result.element, &end);
        end &= result.status.ok();
      }
      MutexLock lock(mu_);
      const bool nothing = end && result.status.ok();
      if (!nothing) slot.results.push_back(std::move(result));
      slot.ended = end;
      if (end) slot.nested.Close();
      const bool more = MayRead(slot);
      slot.busy = more;
      lock.Unlock();
      changed_.NotifyAll();
      return more;
    }

    Status SaveSlots(const IteratorContext& ctx, StateWriter* writer);

    const std::shared_ptr<const ParallelInterleaveDataset> dataset_;
    const Cycle cycle_;
    Cancellation stop_;
    const IteratorContext background_;
    const IteratorPtr input_;  // this member and the next two: used only by GetNext's caller
    bool input_ended_ = false;
    Status input_error_;
    const ElementCall call_;
    Mutex mu_;
    Condition changed_;
    bool stopped_ ABSL_GUARDED_BY(mu_) = false;
    bool paused_ ABSL_GUARDED_BY(mu_) = false;
    std::vector<Slot> slots_;  // guarded by mu_, except what a busy slot's thread owns
    size_t current_slot_ = 0;  // the slot whose turn it is; the caller of GetNext sets it under mu_
    int64_t returned_in_turn_ = 0;                  // elements returned in this turn
    std::vector<std::unique_ptr<Thread>> threads_;  // must end before the members that they use
  };

  const CapturedFunction function_;
  const Cycle cycle_;
};

Status ParallelInterleaveDataset::Iterator::SaveSlots(const IteratorContext& ctx,
                                                      StateWriter* writer) {
  MutexLock lock(mu_);
  writer->Label("ParallelInterleave");
  writer->Int(input_ended_);
  writer->Error(input_error_);
  writer->Int(static_cast<int64_t>(current_slot_));
  writer->Int(returned_in_turn_);
  for (Slot& slot : slots_) {
    writer->Int(slot.used);
    writer->Int(slot.ended);
    writer->Int(static_cast<int64_t>(slot.results.size()));
    for (const Result& result : slot.results) {
      writer->Error(result.status);
      writer->Values(result.element);
    }
    writer->Int(slot.args.has_value());
    if (slot.args) writer->Values(*slot.args);
    RETURN_IF_ERROR(slot.nested.Save(ctx, writer));
  }
  return input_->Save(ctx, writer);
}

Status ParallelInterleaveDataset::Iterator::Restore(const IteratorContext& ctx,
                                                    StateReader* reader) {
  const ElementSpec& args = dataset_->input().spec();
  MutexLock lock(mu_);
  RETURN_IF_ERROR(reader->Label("ParallelInterleave"));
  ASSIGN_OR_RETURN(input_ended_, reader->Int(0, 1));
  RETURN_IF_ERROR(reader->Error(&input_error_));
  ASSIGN_OR_RETURN(current_slot_, reader->Int(0, cycle_.length - 1));
  ASSIGN_OR_RETURN(returned_in_turn_, reader->Int(0, cycle_.block_length - 1));
  for (Slot& slot : slots_) {
    ASSIGN_OR_RETURN(slot.used, reader->Int(0, 1));
    ASSIGN_OR_RETURN(slot.ended, reader->Int(0, 1));
    ASSIGN_OR_RETURN(const int64_t results, reader->Int(0, cycle_.buffered));
    for (int64_t i = 0; i < results; ++i) {
      Result result;
      RETURN_IF_ERROR(reader->Result(dataset_->spec(), &result.status, &result.element));
      slot.results.push_back(std::move(result));
    }
    ASSIGN_OR_RETURN(const int64_t has_args, reader->Int(0, 1));
    if (has_args == 1) {
      ASSIGN_OR_RETURN(slot.args, reader->ElementOf(args));
    }
    RETURN_IF_ERROR(slot.nested.Restore(ctx, call_, args, reader));
    if (slot.used && !slot.ended && !slot.args && !slot.nested.open()) {
      return InvalidArgument("the state of an iterator has a dataset of a cycle without a state");
    }
  }
  return input_->Restore(ctx, reader);
}

// The versions of the op have different inputs, and different arguments that say whether the order
// is deterministic.
class ParallelInterleaveKernel : public DatasetKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(function_.Init(node, "f", "Targuments"));
    bool sloppy = false;
    if (node.attrs.contains("sloppy")) RETURN_IF_ERROR(node.Attr("sloppy", &sloppy));
    std::string deterministic = "default";
    if (node.attrs.contains("deterministic")) {
      RETURN_IF_ERROR(node.Attr("deterministic", &deterministic));
    }
    in_order_ = !sloppy && deterministic != "false";
    return DatasetKernel::Init(node);
  }

 protected:
  // Positions of optional inputs, counted from the first input after the captured tensors. -1: this
  // version of the op has no such input.
  struct Inputs {
    int sloppy = -1, buffered = -1, parallel = -1;
  };
  StatusOr<DatasetPtr> Make(const KernelContext& ctx, const Inputs& inputs) {
    ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx));
    ASSIGN_OR_RETURN(CapturedFunction function, function_.Capture(ctx, 1));
    const int after = 1 + function_.num_captured();
    Cycle cycle{
        .threads = ctx.threads().num_threads(), .buffered = kBuffered, .in_order = in_order_};
    ASSIGN_OR_RETURN(cycle.length, CycleLength(ctx, after));
    ASSIGN_OR_RETURN(cycle.block_length, ScalarInput<int64_t>(ctx, after + 1, "block_length"));
    if (cycle.block_length <= 0) return InvalidArgument("`block_length` must be > 0");
    if (inputs.sloppy >= 0) {
      ASSIGN_OR_RETURN(const bool sloppy, ScalarInput<bool>(ctx, after + inputs.sloppy, "sloppy"));
      cycle.in_order = !sloppy;
    }
    if (inputs.buffered >= 0) {
      ASSIGN_OR_RETURN(const int64_t buffered, ScalarInput<int64_t>(ctx, after + inputs.buffered,
                                                                    "buffer_output_elements"));
      if (buffered < kAutotune || (buffered == 0 && inputs.sloppy >= 0)) {
        return InvalidArgument("`buffer_output_elements` must be > 0");
      }
      if (buffered > 0) cycle.buffered = std::min(buffered, kBufferedMax);
    }
    cycle.threads = cycle.length;
    if (inputs.parallel >= 0) {
      ASSIGN_OR_RETURN(cycle.threads, ParallelCallsInput(ctx, after + inputs.parallel));
    }
    cycle.threads = std::clamp<int64_t>(std::min(cycle.threads, cycle.length), 1, kThreadsMax);
    return std::make_shared<ParallelInterleaveDataset>(spec(), std::move(input),
                                                       std::move(function), cycle);
  }

 private:
  static constexpr int64_t kBuffered = 16, kBufferedMax = 1000, kThreadsMax = 16;
  FunctionAttr function_;
  bool in_order_ = true;
};

template <int kSloppyInput, int kBufferedInput, int kParallelInput>
class Version final : public ParallelInterleaveKernel {
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    return Make(ctx,
                {.sloppy = kSloppyInput, .buffered = kBufferedInput, .parallel = kParallelInput});
  }
};
using LegacyKernel = Version<2, 3, -1>;
using LegacyV2Kernel = Version<-1, 2, -1>;
using V2Kernel = Version<-1, -1, 2>;
using V4Kernel = Version<-1, 2, 4>;

DatasetOp InterleaveOp(std::vector<ArgDef> more, std::vector<AttrDef> first,
                       std::vector<AttrDef> last, bool metadata = true) {
  DatasetOp op{
      .doc =
          "Maps each element to a dataset by a function, and interleaves `cycle_length` of "
          "the datasets, taking `block_length` elements of each in turn. The datasets are "
          "read in parallel.",
      .inputs = {{"input_dataset", "variant"},
                 {"other_arguments", List("Targuments")},
                 {"cycle_length", "int64"},
                 {"block_length", "int64"}},
      .attrs = {{"f", Functions{}}},
      .spec = false,
      .metadata = metadata};
  op.inputs.insert(op.inputs.end(), more.begin(), more.end());
  op.attrs.insert(op.attrs.end(), first.begin(), first.end());
  op.attrs.push_back(TypesAttr("Targuments", 0));
  op.attrs.push_back(TypesAttr("output_types", 1));
  op.attrs.push_back({"output_shapes", ShapeList{}});
  op.attrs.insert(op.attrs.end(), last.begin(), last.end());
  return op;
}

const std::vector<ArgDef> kBuffers = {{"buffer_output_elements", "int64"},
                                      {"prefetch_input_elements", "int64"}};
const std::vector<ArgDef> kSloppyAndBuffers = {
    {"sloppy", "bool"}, {"buffer_output_elements", "int64"}, {"prefetch_input_elements", "int64"}};
const std::vector<ArgDef> kCalls = {{"num_parallel_calls", "int64"}};
const std::vector<ArgDef> kBuffersAndCalls = {{"buffer_output_elements", "int64"},
                                              {"prefetch_input_elements", "int64"},
                                              {"num_parallel_calls", "int64"}};

OP(ParallelInterleaveDataset) { return InterleaveOp(kSloppyAndBuffers, {}, {}); }
OP(ExperimentalParallelInterleaveDataset) {
  return InterleaveOp(kSloppyAndBuffers, {}, {}, /*metadata=*/false);
}

OP(LegacyParallelInterleaveDatasetV2) {
  return InterleaveOp(kBuffers, {{"deterministic", "default"}}, {});
}
OP(ParallelInterleaveDatasetV2) { return InterleaveOp(kCalls, {}, {{"sloppy", false}}); }
OP(ParallelInterleaveDatasetV3) { return InterleaveOp(kCalls, {{"deterministic", "default"}}, {}); }
OP(ParallelInterleaveDatasetV4) {
  return InterleaveOp(kBuffersAndCalls, {{"deterministic", "default"}}, {});
}

KERNEL_ANY_TYPE(ParallelInterleaveDataset, LegacyKernel);
KERNEL_ANY_TYPE(ExperimentalParallelInterleaveDataset, LegacyKernel);
KERNEL_ANY_TYPE(LegacyParallelInterleaveDatasetV2, LegacyV2Kernel);
KERNEL_ANY_TYPE(ParallelInterleaveDatasetV2, V2Kernel);
KERNEL_ANY_TYPE(ParallelInterleaveDatasetV3, V2Kernel);
KERNEL_ANY_TYPE(ParallelInterleaveDatasetV4, V4Kernel);

}  // namespace
}  // namespace penstock

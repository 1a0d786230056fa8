// SPDX-License-Identifier: Apache-2.0
//
// RecordInput: batches of the records of TFRecord files, in a random order and without end.
#include <limits>
#include <memory>
#include <utility>

#include "core/base/mutex.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/data/record_mixer.h"
#include "kernels/io/file_kernel.h"

namespace penstock {
namespace {

class RecordInputKernel final : public AsyncKernel {
 public:
  Status Init(const KernelInit& node) override {
    int64_t seed = 0;
    float shift = 0;
    std::string compression;
    RETURN_IF_ERROR(node.Attr("file_pattern", &options_.pattern));
    RETURN_IF_ERROR(node.Attr("file_random_seed", &seed));
    RETURN_IF_ERROR(node.Attr("file_shuffle_shift_ratio", &shift));
    RETURN_IF_ERROR(node.Attr("file_buffer_size", &options_.buffer_max));
    RETURN_IF_ERROR(node.Attr("file_parallelism", &options_.readers_max));
    RETURN_IF_ERROR(node.Attr("batch_size", &batch_));
    RETURN_IF_ERROR(node.Attr("compression_type", &compression));
    options_.seed = static_cast<uint64_t>(seed);
    options_.shift_ratio = shift;
    if (!(shift >= 0 && shift <= 1)) {
      return InvalidArgument("file_shuffle_shift_ratio must be from 0 to 1, is ", shift);
    }
    for (const auto& [name, value] :
         {std::pair("file_buffer_size", options_.buffer_max),
          std::pair("file_parallelism", options_.readers_max), std::pair("batch_size", batch_)}) {
      if (value < 1 || value > std::numeric_limits<int32_t>::max()) {
        return InvalidArgument(name, " must be from 1 to 2^31 - 1, is ", value);
      }
    }
    ASSIGN_OR_RETURN(options_.compression, ParseCompression(compression));
    return OkStatus();
  }

  bool WaitsForNodes() const override { return false; }

  // Reads on a thread of Scheduler::files(). After it has returned the batch, the thread reads
  // ahead.
  void ComputeAsync(KernelContext& ctx, Done done) override {
    ctx.threads().files().Schedule(
        [&ctx, batch = batch_, mixer = Mixer(ctx), done = std::move(done)]() mutable {
          std::move(done)(TakeBatch(ctx, batch, *mixer));
          mixer->Fill();
        });
  }

 private:
  static Status TakeBatch(KernelContext& ctx, int64_t batch, RecordMixer& mixer) {
    Tensor* records;
    RETURN_IF_ERROR(ctx.Allocate(0, {batch}, &records));
    return mixer.Take(batch, records->mutable_data<std::string>(),
                      [&] { return CheckNotCancelled(ctx); });
  }

  std::shared_ptr<RecordMixer> Mixer(const KernelContext& ctx) {
    MutexLock lock(mu_);
    if (mixer_ == nullptr) mixer_ = std::make_shared<RecordMixer>(options_, *ctx.step().env);
    return mixer_;
  }

  RecordMixer::Options options_;
  int64_t batch_ = 1;
  Mutex mu_;
  std::shared_ptr<RecordMixer> mixer_ ABSL_GUARDED_BY(mu_);
};

Status RecordInputShape(ShapeScope& s) {
  s.set_output(0, PartialShape({s.attr<int64_t>("batch_size")}));
  return OkStatus();
}

OP(RecordInput) {
  return {
      .doc =
          "Returns the next `batch_size` records of the TFRecord files that match `file_pattern`, "
          "in a random order; each record comes once in every epoch.",
      .outputs = {{"records", "string"}},
      .attrs = {{"file_pattern", Strings{}},
                {"file_random_seed", 301},
                {"file_shuffle_shift_ratio", 0.0f},
                {"file_buffer_size", 10000},
                {"file_parallelism", 16},
                {"batch_size", 32},
                {"compression_type", ""}},
      .shape = RecordInputShape,
      .gradient = NoGradient,
      .stateful = true,
      .in_session = true,
      .untestable_alone = "reads files: kernels/data has its tests",
  };
}
KERNEL_ANY_TYPE(RecordInput, RecordInputKernel);

}  // namespace
}  // namespace penstock

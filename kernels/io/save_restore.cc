// SPDX-License-Identifier: Apache-2.0
//
// Ops that save tensors to checkpoints, restore them, and merge the checkpoints of several tasks.

#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/checkpoint/bundle_writer.h"
#include "core/checkpoint/checkpoint_reader.h"
#include "core/checkpoint/finished_checkpoints.h"
#include "core/checkpoint/merge_bundles.h"
#include "core/checkpoint/write_rate.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/io/file_kernel.h"
#include "kernels/io/shape_and_slice.h"

namespace penstock {
namespace {

class SaveKernel : public FileKernel {
 public:
  Status Init(const KernelInit& node) override {
    if (!node.attrs.contains(kBytesPerSecondAttr)) return OkStatus();
    return node.Attr(kBytesPerSecondAttr, &bytes_per_second_);
  }

 protected:
  Status Run(KernelContext& ctx) const override {
    if (bytes_per_second_ <= 0) return Save(ctx, *ctx.step().env);
    SteadyEnv steady(*ctx.step().env, bytes_per_second_, [&] { return CheckNotCancelled(ctx); });
    return Save(ctx, steady);
  }

 private:
  static Status Save(KernelContext& ctx, Env& env) {
    constexpr int kFirstTensor = 3;
    const int count = ctx.num_inputs() - kFirstTensor;
    ASSIGN_OR_RETURN(const SliceRequest request, SliceRequest::Parse(ctx, count));
    const Status saved = Write(ctx, env, request, kFirstTensor);
    if (!saved.ok()) {
      NoteFailedSave(request.file, ctx.node_name(), saved, *ctx.step().env);
      return saved;
    }
    NoteFinishedCheckpoint(request.file, *ctx.step().env);
    return OkStatus();
  }

  static Status Write(KernelContext& ctx, Env& env, const SliceRequest& request, int first_tensor) {
    ASSIGN_OR_RETURN(const auto writer, BundleWriter::Create(env, request.file));
    for (int i = 0; i < ctx.num_inputs() - first_tensor; ++i) {
      RETURN_IF_ERROR(CheckNotCancelled(ctx));
      RETURN_IF_ERROR(
          writer->AddAs(request.names[i], request.slices[i], ctx.input(first_tensor + i)));
    }
    return writer->Finish();
  }

  int64_t bytes_per_second_ = 0;  // 0: no limit
};

class RestoreKernel : public FileKernel {
 protected:
  Status Run(KernelContext& ctx) const override {
    const int count = ctx.num_outputs();
    ASSIGN_OR_RETURN(const SliceRequest request, SliceRequest::Parse(ctx, count));
    ASSIGN_OR_RETURN(const auto reader, OpenCheckpoint(*ctx.step().env, request.file));
    Mutex mu;
    Status status;
    // The time to open, read and check a few hundred KB is about 100 us.
    ctx.threads().files().ParallelFor(count, 100'000, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        Status restored = Restore(ctx, *reader, request, static_cast<int>(i));
        if (restored.ok()) continue;
        MutexLock lock(mu);
        if (status.ok()) status = std::move(restored);
        return;
      }
    });
    return status;
  }

 private:
  static Status Restore(KernelContext& ctx, const CheckpointReader& reader,
                        const SliceRequest& request, int i) {
    RETURN_IF_ERROR(CheckNotCancelled(ctx));
    ASSIGN_OR_RETURN(Tensor tensor, reader.ReadAs(ctx.output_type(i).dtype, request.names[i],
                                                  request.slices[i], ctx.allocator()));
    ctx.SetOutput(i, std::move(tensor));
    return OkStatus();
  }
};

class MergeKernel : public FileKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("delete_old_dirs", &options_.delete_old_directories));
    return node.Attr("allow_missing_files", &options_.allow_missing);
  }

 protected:
  Status Run(KernelContext& ctx) const override {
    ASSIGN_OR_RETURN(const auto sources, StringsInput(ctx, 0, "checkpoint_prefixes"));
    ASSIGN_OR_RETURN(const std::string destination, StringInput(ctx, 1, "destination_prefix"));
    const Status merged =
        MergeBundles(*ctx.step().env, {sources.begin(), sources.end()}, destination, options_);
    if (!merged.ok()) {
      NoteFailedSave(destination, ctx.node_name(), merged, *ctx.step().env);
      return merged;
    }
    NoteFinishedCheckpoint(destination, *ctx.step().env);
    return OkStatus();
  }

 private:
  MergeOptions options_;
};

// Checks the shapes of the first three inputs: a scalar and two vectors.
Status CheckRequestShapes(const ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(0, 0).status());
  RETURN_IF_ERROR(s.WithRank(1, 1).status());
  return s.WithRank(2, 1).status();
}

Status SaveShape(ShapeScope& s) { return CheckRequestShapes(s); }

Status RestoreShape(ShapeScope& s) {
  RETURN_IF_ERROR(CheckRequestShapes(s));
  return RestoredShapes(s);
}

Status MergeShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(0, 1).status());
  return s.WithRank(1, 0).status();
}

OP(SaveV2) {
  return {
      .doc = "Saves tensors, or parts of them, as one checkpoint.",
      .inputs = {{"prefix", "string"},
                 {"tensor_names", "string"},
                 {"shape_and_slices", "string"},
                 {"tensors", List("dtypes")}},
      .attrs = {{"dtypes", TypeList{.min_length = 1}}},
      .shape = SaveShape,
      .gradient = NoGradient,
      .stateful = true,
      .acts_outside = true,
      .untestable_alone = "works on files: kernels/io has its tests",
  };
}
KERNEL_ANY_TYPE(SaveV2, SaveKernel);

OP(RestoreV2) {
  return {
      .doc = "Reads tensors, or parts of them, from a checkpoint of either format.",
      .inputs = {{"prefix", "string"}, {"tensor_names", "string"}, {"shape_and_slices", "string"}},
      .outputs = {{"tensors", List("dtypes")}},
      .attrs = {{"dtypes", TypeList{.min_length = 1}}},
      .shape = RestoreShape,
      .gradient = NoGradient,
      .stateful = true,
      .acts_outside = true,
      .untestable_alone = "works on files: kernels/io has its tests",
  };
}
KERNEL_ANY_TYPE(RestoreV2, RestoreKernel);

OP(MergeV2Checkpoints) {
  return {
      .doc =
          "Merges several checkpoints into one, and removes the old ones; with delete_old_dirs "
          "also their directories, if these are then empty.",
      .inputs = {{"checkpoint_prefixes", "string"}, {"destination_prefix", "string"}},
      .attrs = {{"delete_old_dirs", true}, {"allow_missing_files", false}},
      .shape = MergeShape,
      .gradient = NoGradient,
      .stateful = true,
      .acts_outside = true,
      .untestable_alone = "works on files: kernels/io has its tests",
  };
}
KERNEL_ANY_TYPE(MergeV2Checkpoints, MergeKernel);

}  // namespace
}  // namespace penstock

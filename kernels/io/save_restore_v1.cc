// SPDX-License-Identifier: Apache-2.0
//
// Ops for checkpoints of TensorFlow's first format, which programs of TensorFlow's first year use.
// Each Restore node restores one tensor.
#include "core/base/env.h"
#include "core/checkpoint/finished_checkpoints.h"
#include "core/checkpoint/v1_reader.h"
#include "core/checkpoint/v1_writer.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/io/file_kernel.h"
#include "kernels/io/shape_and_slice.h"

namespace penstock {
namespace {

// The kernel of Save (whole tensors) and SaveSlices, which has one more input.
template <bool kSlices>
class SaveV1Kernel : public FileKernel {
 protected:
  Status Run(KernelContext& ctx) const override {
    constexpr int kFirstTensor = kSlices ? 3 : 2;
    const int count = ctx.num_inputs() - kFirstTensor;
    ASSIGN_OR_RETURN(const SliceRequest request, SliceRequest::Parse(ctx, count, kSlices));
    V1Writer writer(*ctx.step().env, request.file);
    for (int i = 0; i < count; ++i) {
      RETURN_IF_ERROR(CheckNotCancelled(ctx));
      RETURN_IF_ERROR(writer.AddAs(request.names[i], kSlices ? request.slices[i] : "",
                                   ctx.input(kFirstTensor + i)));
    }
    RETURN_IF_ERROR(writer.Finish());
    NoteFinishedCheckpoint(request.file, *ctx.step().env);
    return OkStatus();
  }
};

template <bool kSlice>
class RestoreV1Kernel : public FileKernel {
 public:
  Status Init(const KernelInit& node) override {
    return node.Attr("preferred_shard", &preferred_file_);
  }

 protected:
  Status Run(KernelContext& ctx) const override {
    ASSIGN_OR_RETURN(const std::string pattern, StringInput(ctx, 0, "file_pattern"));
    ASSIGN_OR_RETURN(const std::string name, StringInput(ctx, 1, "tensor_name"));
    std::string slice;
    if (kSlice) {
      ASSIGN_OR_RETURN(slice, StringInput(ctx, 2, "shape_and_slice"));
    }
    StatusOr<Tensor> tensor = Read(ctx, pattern, preferred_file_, name, slice);
    // preferred_shard only saves time: if that file does not have the tensor, searches the other
    // files.
    if (tensor.status().code() == StatusCode::kNotFound && preferred_file_ >= 0) {
      tensor = Read(ctx, pattern, V1Reader::kAllFiles, name, slice);
    }
    RETURN_IF_ERROR(tensor.status());
    ctx.SetOutput(0, *std::move(tensor));
    return OkStatus();
  }

 private:
  static StatusOr<Tensor> Read(const KernelContext& ctx, const std::string& pattern, int file,
                               const std::string& name, const std::string& slice) {
    ASSIGN_OR_RETURN(const auto reader, V1Reader::Open(*ctx.step().env, pattern, file));
    return reader->ReadAs(ctx.output_type(0).dtype, name, slice, ctx.allocator());
  }

  int preferred_file_ = V1Reader::kAllFiles;
};

Status SaveV1Shape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(0, 0).status());
  return s.WithRank(1, 1).status();
}

Status SaveSlicesV1Shape(ShapeScope& s) {
  RETURN_IF_ERROR(SaveV1Shape(s));
  return s.WithRank(2, 1).status();
}

// Checks that the inputs are scalars: the pattern, the name and, with slices, the slice. With
// slices, also sets the output's shape.
Status RestoreV1Shape(ShapeScope& s) {
  for (int i = 0; i < s.num_inputs(); ++i) RETURN_IF_ERROR(s.WithRank(i, 0).status());
  return s.num_inputs() == 3 ? RestoredShapes(s) : OkStatus();
}

OP(Save) {
  return {
      .doc = "Saves tensors in one file of the V1 format.",
      .inputs = {{"filename", "string"}, {"tensor_names", "string"}, {"data", List("T")}},
      .attrs = {{"T", TypeList{.min_length = 1}}},
      .shape = SaveV1Shape,
      .gradient = NoGradient,
      .stateful = true,
      .acts_outside = true,
      .untestable_alone = "works on files: kernels/io has its tests",
  };
}
KERNEL_ANY_TYPE(Save, SaveV1Kernel<false>);

OP(SaveSlices) {
  return {
      .doc = "Saves tensors, or parts of them, in one file of the V1 format.",
      .inputs = {{"filename", "string"},
                 {"tensor_names", "string"},
                 {"shapes_and_slices", "string"},
                 {"data", List("T")}},
      .attrs = {{"T", TypeList{.min_length = 1}}},
      .shape = SaveSlicesV1Shape,
      .gradient = NoGradient,
      .stateful = true,
      .acts_outside = true,
      .untestable_alone = "works on files: kernels/io has its tests",
  };
}
KERNEL_ANY_TYPE(SaveSlices, SaveV1Kernel<true>);

OP(Restore) {
  return {
      .doc = "Reads a tensor from files of the V1 format.",
      .inputs = {{"file_pattern", "string"}, {"tensor_name", "string"}},
      .outputs = {{"tensor", "dt"}},
      .types = {{"dt", kAllTypes}},
      .attrs = {{"preferred_shard", int64_t{-1}}},
      .shape = RestoreV1Shape,
      .gradient = NoGradient,
      .stateful = true,
      .acts_outside = true,
      .untestable_alone = "works on files: kernels/io has its tests",
  };
}
KERNEL_ANY_TYPE(Restore, RestoreV1Kernel<false>);

OP(RestoreSlice) {
  return {
      .doc = "Reads a tensor, or a part of one, from files of the V1 format.",
      .inputs = {{"file_pattern", "string"},
                 {"tensor_name", "string"},
                 {"shape_and_slice", "string"}},
      .outputs = {{"tensor", "dt"}},
      .types = {{"dt", kAllTypes}},
      .attrs = {{"preferred_shard", int64_t{-1}}},
      .shape = RestoreV1Shape,
      .gradient = NoGradient,
      .stateful = true,
      .acts_outside = true,
      .untestable_alone = "works on files: kernels/io has its tests",
  };
}
KERNEL_ANY_TYPE(RestoreSlice, RestoreV1Kernel<true>);

}  // namespace
}  // namespace penstock

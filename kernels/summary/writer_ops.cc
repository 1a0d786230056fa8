// SPDX-License-Identifier: Apache-2.0
//
// SummaryWriter and the ops that write summaries of TensorFlow 2 through its handle.
#include <cmath>
#include <utility>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "core/tensor/type_lists.h"
#include "kernels/data/handle_kernel.h"
#include "kernels/io/file_kernel.h"
#include "kernels/summary/add_media.h"
#include "kernels/summary/event_writer.h"
#include "kernels/summary/summary.h"

namespace penstock {
namespace {

class SummaryWriterKernel final : public HandleKernel {
 protected:
  const char* Type() const override { return EventWriter::kTypeName; }
  StatusOr<std::shared_ptr<Resource>> Make(KernelContext& ctx) const override {
    return std::make_shared<EventWriter>(resource_name());
  }
};

// The base of kernels that write. Input 0 is the handle.
class WriterKernel : public FileKernel {
 protected:
  Status Run(KernelContext& ctx) const final {
    ASSIGN_OR_RETURN(const auto writer, ResourceInput<EventWriter>(ctx, 0));
    return Use(ctx, *writer);
  }
  virtual Status Use(KernelContext& ctx, EventWriter& writer) const = 0;

  static StatusOr<int64_t> Int(const KernelContext& ctx, int i, const char* name) {
    const Tensor& input = ctx.input(i);
    if (input.num_elements() != 1) {
      return InvalidArgument(name, " must be a scalar, has shape ", input.shape().ToString());
    }
    return input.dtype() == DType::kInt64 ? input.scalar<int64_t>() : input.scalar<int32_t>();
  }
};

class OpenKernel final : public WriterKernel {
  Status Use(KernelContext& ctx, EventWriter& writer) const override {
    EventWriter::Options options;
    ASSIGN_OR_RETURN(options.directory, StringInput(ctx, 1, "logdir"));
    ASSIGN_OR_RETURN(options.events_max, Int(ctx, 2, "max_queue"));
    ASSIGN_OR_RETURN(options.flush_millis, Int(ctx, 3, "flush_millis"));
    ASSIGN_OR_RETURN(options.suffix, StringInput(ctx, 4, "filename_suffix"));
    if (options.directory.empty()) return InvalidArgument("logdir must not be empty");
    if (options.suffix.find('/') != std::string::npos) {
      return InvalidArgument("filename_suffix must have no '/', is '", options.suffix, "'");
    }
    return writer.Open(*ctx.step().env, options, ctx.origin());
  }
};

class FlushKernel final : public WriterKernel {
  Status Use(KernelContext& ctx, EventWriter& writer) const override {
    return writer.Flush(ctx.origin());
  }
};

class CloseKernel final : public WriterKernel {
  Status Use(KernelContext& ctx, EventWriter& writer) const override {
    return writer.Close(ctx.origin());
  }
};

class ImportEventKernel final : public WriterKernel {
  Status Use(KernelContext& ctx, EventWriter& writer) const override {
    ASSIGN_OR_RETURN(const std::string event, StringInput(ctx, 1, "event"));
    return writer.AddEvent(event, ctx.origin());
  }
};

class RawSummaryKernel final : public WriterKernel {
  Status Use(KernelContext& ctx, EventWriter& writer) const override {
    ASSIGN_OR_RETURN(const int64_t step, Int(ctx, 1, "step"));
    ASSIGN_OR_RETURN(const std::string summary, StringInput(ctx, 2, "tensor"));
    return writer.AddSummary(step, summary, ctx.origin());
  }
};

class GraphKernel final : public WriterKernel {
  Status Use(KernelContext& ctx, EventWriter& writer) const override {
    ASSIGN_OR_RETURN(const int64_t step, Int(ctx, 1, "step"));
    ASSIGN_OR_RETURN(const std::string graph, StringInput(ctx, 2, "tensor"));
    return writer.AddGraph(step, graph, ctx.origin());
  }
};

class TensorKernel final : public WriterKernel {
  Status Use(KernelContext& ctx, EventWriter& writer) const override {
    ASSIGN_OR_RETURN(const int64_t step, Int(ctx, 1, "step"));
    ASSIGN_OR_RETURN(const std::string tag, StringInput(ctx, 3, "tag"));
    ASSIGN_OR_RETURN(const std::string metadata, StringInput(ctx, 4, "summary_metadata"));
    const Tensor& tensor = ctx.input(2);
    if (!IsPlain(tensor.dtype()) && tensor.dtype() != DType::kString) {
      return InvalidArgument("tensor must hold numbers or strings, holds ", Name(tensor.dtype()));
    }
    SummaryBuilder summary;
    summary.AddTensor(tag, tensor, metadata.empty() ? nullptr : &metadata);
    return writer.AddSummary(step, summary.Serialize(), ctx.origin());
  }
};

template <class T>
class ScalarKernel final : public WriterKernel {
  Status Use(KernelContext& ctx, EventWriter& writer) const override {
    ASSIGN_OR_RETURN(const int64_t step, Int(ctx, 1, "step"));
    ASSIGN_OR_RETURN(const std::string tag, StringInput(ctx, 2, "tag"));
    const Tensor& value = ctx.input(3);
    if (value.num_elements() != 1) {
      return InvalidArgument("value must be a scalar, has shape ", value.shape().ToString());
    }
    SummaryBuilder summary;
    summary.AddScalar(tag, static_cast<float>(value.scalar<T>()));
    return writer.AddSummary(step, summary.Serialize(), ctx.origin());
  }
};

template <class T>
class HistogramKernel final : public WriterKernel {
  Status Use(KernelContext& ctx, EventWriter& writer) const override {
    ASSIGN_OR_RETURN(const int64_t step, Int(ctx, 1, "step"));
    ASSIGN_OR_RETURN(const std::string tag, StringInput(ctx, 2, "tag"));
    Histogram histogram;
    for (const T value : ctx.input(3).flat<T>()) {
      const auto number = static_cast<double>(value);
      if (!std::isfinite(number)) {
        return InvalidArgument("values of histogram '", tag, "' must be finite, one is ", number);
      }
      histogram.Add(number);
    }
    SummaryBuilder summary;
    summary.AddHistogram(tag, histogram);
    return writer.AddSummary(step, summary.Serialize(), ctx.origin());
  }
};

class ImageKernel final : public WriterKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("max_images", &images_max_));
    return WriterKernel::Init(node);
  }

 private:
  Status Use(KernelContext& ctx, EventWriter& writer) const override {
    ASSIGN_OR_RETURN(const int64_t step, Int(ctx, 1, "step"));
    ASSIGN_OR_RETURN(const std::string tag, StringInput(ctx, 2, "tag"));
    SummaryBuilder summary;
    RETURN_IF_ERROR(AddImages(tag, ctx.input(3), images_max_, ctx.input(4), &summary));
    return writer.AddSummary(step, summary.Serialize(), ctx.origin());
  }

  int64_t images_max_ = 0;
};

class AudioKernel final : public WriterKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("max_outputs", &outputs_max_));
    return WriterKernel::Init(node);
  }

 private:
  Status Use(KernelContext& ctx, EventWriter& writer) const override {
    ASSIGN_OR_RETURN(const int64_t step, Int(ctx, 1, "step"));
    ASSIGN_OR_RETURN(const std::string tag, StringInput(ctx, 2, "tag"));
    const Tensor& rate = ctx.input(4);
    if (rate.rank() != 0) {
      return InvalidArgument("sample_rate must be a scalar, has shape ", rate.shape().ToString());
    }
    SummaryBuilder summary;
    RETURN_IF_ERROR(AddSounds(tag, ctx.input(3), rate.scalar<float>(), outputs_max_, &summary));
    return writer.AddSummary(step, summary.Serialize(), ctx.origin());
  }

  int64_t outputs_max_ = 0;
};

constexpr char kTests[] = "needs an open writer: kernels/summary has its tests";

// Defines an op that takes the handle and `inputs`, and has no outputs.
OpDef WriterOp(const char* doc, std::vector<ArgDef> inputs) {
  inputs.insert(inputs.begin(), {"writer", "resource"});
  return {
      .doc = doc,
      .inputs = std::move(inputs),
      .shape = NoOutputs,
      .gradient = NoGradient,
      .stateful = true,
      .acts_outside = true,
      .untestable_alone = kTests,
  };
}

DTypes CountableTypes() {
  DTypes types = kReal;
  types.push_back(DType::kBool);
  return types;
}

}  // namespace

OP(SummaryWriter) {
  return {
      .doc = "Returns the handle of a writer of event files. CreateSummaryFileWriter opens it.",
      .outputs = {{"writer", "resource"}},
      .attrs = {{"shared_name", ""}, {"container", ""}},
      .shape = ScalarShape,
      .gradient = NoGradient,
      .stateful = true,
  };
}
KERNEL_ANY_TYPE(SummaryWriter, SummaryWriterKernel);

OP(CreateSummaryFileWriter) {
  return WriterOp(
      "Creates an event file in logdir. The file is flushed when more than max_queue events are "
      "buffered, and by an event that is written more than flush_millis after the last flush. Does "
      "nothing if the writer already has a file.",
      {{"logdir", "string"},
       {"max_queue", "int32"},
       {"flush_millis", "int32"},
       {"filename_suffix", "string"}});
}
KERNEL_ANY_TYPE(CreateSummaryFileWriter, OpenKernel);

OP(FlushSummaryWriter) { return WriterOp("Writes the buffered events to the file.", {}); }
KERNEL_ANY_TYPE(FlushSummaryWriter, FlushKernel);

OP(CloseSummaryWriter) { return WriterOp("Flushes and closes the writer's file.", {}); }
KERNEL_ANY_TYPE(CloseSummaryWriter, CloseKernel);

OP(ImportEvent) { return WriterOp("Writes a serialized Event.", {{"event", "string"}}); }
KERNEL_ANY_TYPE(ImportEvent, ImportEventKernel);

OP(WriteRawProtoSummary) {
  return WriterOp("Writes a serialized Summary.", {{"step", "int64"}, {"tensor", "string"}});
}
KERNEL_ANY_TYPE(WriteRawProtoSummary, RawSummaryKernel);

OP(WriteGraphSummary) {
  return WriterOp("Writes a serialized GraphDef.", {{"step", "int64"}, {"tensor", "string"}});
}
KERNEL_ANY_TYPE(WriteGraphSummary, GraphKernel);

OP(WriteSummary) {
  OpDef op = WriterOp(
      "Writes a tensor under a tag; summary_metadata, a serialized SummaryMetadata, "
      "names the plugin that shows it.",
      {{"step", "int64"}, {"tensor", "T"}, {"tag", "string"}, {"summary_metadata", "string"}});
  op.types = {{"T", kAnyType}};
  return op;
}
KERNEL_ANY_TYPE(WriteSummary, TensorKernel);

OP(WriteScalarSummary) {
  OpDef op = WriterOp("Writes a number under a tag.",
                      {{"step", "int64"}, {"tag", "string"}, {"value", "T"}});
  op.types = {{"T", kReal}};
  return op;
}
KERNEL(WriteScalarSummary, ScalarKernel, REAL_TYPES);

OP(WriteHistogramSummary) {
  OpDef op = WriterOp("Writes a histogram of values under a tag.",
                      {{"step", "int64"}, {"tag", "string"}, {"values", "T"}});
  op.types = {{"T", CountableTypes(), DType::kFloat}};
  return op;
}
KERNEL(WriteHistogramSummary, HistogramKernel, REAL_TYPES, bool);

OP(WriteImageSummary) {
  OpDef op = WriterOp(
      "Writes images in PNG format under a tag. Bytes are stored unchanged; other numbers are "
      "scaled "
      "so that each image uses the full range. bad_color marks pixels that are not finite.",
      {{"step", "int64"}, {"tag", "string"}, {"tensor", "T"}, {"bad_color", "uint8"}});
  op.types = {{"T", {DType::kUint8, DType::kDouble, DType::kFloat, DType::kHalf}, DType::kFloat}};
  op.attrs = {{"max_images", Ints{.min = 1}, 3}};
  return op;
}
KERNEL_ANY_TYPE(WriteImageSummary, ImageKernel);

OP(WriteAudioSummary) {
  OpDef op = WriterOp(
      "Writes sounds in WAV format under a tag. `tensor` has values in [-1, 1] and shape [batch, "
      "frames] or [batch, frames, channels].",
      {{"step", "int64"}, {"tag", "string"}, {"tensor", "float"}, {"sample_rate", "float"}});
  op.attrs = {{"max_outputs", Ints{.min = 1}, 3}};
  return op;
}
KERNEL_ANY_TYPE(WriteAudioSummary, AudioKernel);

}  // namespace penstock

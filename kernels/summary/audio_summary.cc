// SPDX-License-Identifier: Apache-2.0
//
// AudioSummary, whose sample rate is an attribute, and AudioSummaryV2, whose sample rate is an
// input.
#include <algorithm>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/summary/add_media.h"
#include "kernels/summary/arguments.h"
#include "kernels/summary/media.h"

namespace penstock {
namespace {

class AudioSummaryKernel : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("max_outputs", &outputs_max_); }

  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const std::string tag, TagInput(ctx));
    ASSIGN_OR_RETURN(const float rate, SampleRate(ctx));
    SummaryBuilder summary;
    RETURN_IF_ERROR(AddSounds(tag, ctx.input(1), rate, outputs_max_, &summary));
    return OutputSummary(ctx, summary);
  }

 protected:
  virtual StatusOr<float> SampleRate(const KernelContext& ctx) const {
    const Tensor& rate = ctx.input(2);
    if (rate.rank() == 0) return rate.scalar<float>();
    return InvalidArgument("sample_rate must be a scalar, has shape ", rate.shape().ToString());
  }

 private:
  int64_t outputs_max_ = 0;
};

class AudioSummaryV1Kernel final : public AudioSummaryKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("sample_rate", &rate_));
    return AudioSummaryKernel::Init(node);
  }

 private:
  StatusOr<float> SampleRate(const KernelContext&) const override { return rate_; }
  float rate_ = 0;
};

OpDef AudioOp() {
  return {
      .doc =
          "Makes a summary of sounds in WAV format. `tensor` has values in [-1, 1] and "
          "shape [batch, frames] or [batch, frames, channels].",
      .inputs = {{"tag", "string"}, {"tensor", "float"}},
      .outputs = {{"summary", "string"}},
      .attrs = {{"max_outputs", Ints{.min = 1}, 3}},
      .shape = ScalarShape,
      .gradient = NoGradient,
  };
}
OpDef AudioV1Op() {
  OpDef op = AudioOp();
  op.attrs.insert(op.attrs.begin(), {"sample_rate", Floats{}});
  op.examples = {{.inputs = {{{}}, {{{1, 4}}}}, .attrs = {{"sample_rate", 8000.0f}}}};
  return op;
}
OpDef AudioV2Op() {
  OpDef op = AudioOp();
  op.inputs.push_back({"sample_rate", "float"});
  op.examples = {{.inputs = {{{}}, {{{1, 4}}}, {{.values = {8000}}}}}};
  return op;
}

OP(AudioSummary) { return AudioV1Op(); }
OP(AudioSummaryV2) { return AudioV2Op(); }
KERNEL_ANY_TYPE(AudioSummary, AudioSummaryV1Kernel);
KERNEL_ANY_TYPE(AudioSummaryV2, AudioSummaryKernel);

}  // namespace

Status AddSounds(const std::string& tag, const Tensor& sounds, float rate, int64_t most,
                 SummaryBuilder* summary) {
  if (sounds.rank() != 2 && sounds.rank() != 3) {
    return InvalidArgument("Tensor must be 3-D or 2-D, got: ", sounds.shape().ToString());
  }
  if (!(rate > 0)) return InvalidArgument("sample_rate must be > 0, is ", rate);
  const int64_t frames = sounds.dim(1), channels = sounds.rank() == 3 ? sounds.dim(2) : 1;
  const int64_t samples = frames * channels;
  for (int64_t i = 0; i < std::min(most, sounds.dim(0)); ++i) {
    SummaryBuilder::Audio audio{.sample_rate = rate, .channels = channels, .frames = frames};
    const float* const first = samples == 0 ? nullptr : sounds.data<float>() + i * samples;
    ASSIGN_OR_RETURN(audio.wav, EncodeWav({first, static_cast<size_t>(samples)}, rate, channels));
    summary->AddAudio(TagOfPart(tag, "audio", i, most), std::move(audio));
  }
  return OkStatus();
}
}  // namespace penstock

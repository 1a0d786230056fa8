// SPDX-License-Identifier: Apache-2.0
//
// Convolution of floats by oneDNN, on this runtime's own threads.
//
// The batch is split over the thread pool, and each piece runs oneDNN on one thread (its OpenMP
// threads would compete with the pool). Primitives are cached by geometry.
#include <algorithm>
#include <cstring>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "dnnl.hpp"
#include "kernels/nn/conv_geometry.h"

// A function of libgomp, which oneDNN uses: limits the OpenMP teams of the calling thread to one
// member.
extern "C" void omp_set_num_threads(int);

namespace penstock {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

const dnnl::engine& Engine() {
  static const dnnl::engine& engine = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

enum class Kind { kForward, kImageGradient, kFilterGradient };

memory::desc Desc(memory::dims dims, Tag tag) {
  return memory::desc(std::move(dims), memory::data_type::f32, tag);
}

// One of the three computations (convolution, image gradient, filter gradient) for one geometry.
// Converts operands to the layouts that oneDNN chooses.
class Primitive {
 public:
  // Throws dnnl::error if oneDNN does not support the computation.
  Primitive(Kind kind, const ConvGeometry& g) : kind_(kind) {
    // NHWC without conversion is fastest, unless oneDNN has only its slow reference code for it.
    const Tag plain = g.volumes ? Tag::ndhwc : Tag::nhwc;
    Make(g, plain);
    if (std::strncmp(description_.impl_info_str(), "ref", 3) == 0) Make(g, Tag::any);
    image_ = Image(g, plain);
    filter_ = Filter(g, g.volumes ? Tag::dhwio : Tag::hwio);
    output_ = Result(g, plain);
  }

  // Computes one of the three tensors, as the kind says, from the other two. Thread-safe.
  void Run(float* image, float* filter, float* output) const {
    dnnl::stream stream(Engine());
    Operand x(image_, Wanted(Kind::kForward), image);
    Operand w(filter_, Wanted(Kind::kImageGradient), filter);
    Operand y(output_, Wanted(Kind::kFilterGradient), output);
    if (kind_ != Kind::kImageGradient) x.Load(stream);
    if (kind_ != Kind::kFilterGradient) w.Load(stream);
    if (kind_ != Kind::kForward) y.Load(stream);
    std::vector<char> scratch(description_.scratchpad_desc().get_size() + kAlignment);
    void* aligned = scratch.data();
    size_t space = scratch.size();
    std::align(kAlignment, space - kAlignment, aligned, space);
    const bool forward = kind_ == Kind::kForward;
    const int image_arg = kind_ == Kind::kImageGradient ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC;
    const int filter_arg =
        kind_ == Kind::kFilterGradient ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS;
    primitive_.execute(
        stream, {{image_arg, x.inside()},
                 {filter_arg, w.inside()},
                 {forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, y.inside()},
                 {DNNL_ARG_SCRATCHPAD, memory(description_.scratchpad_desc(), Engine(), aligned)}});
    if (kind_ == Kind::kImageGradient) x.Store(stream);
    if (kind_ == Kind::kFilterGradient) w.Store(stream);
    if (kind_ == Kind::kForward) y.Store(stream);
    stream.wait();
  }

 private:
  static constexpr size_t kAlignment = 64;

  // An operand in our layout and, if oneDNN's layout differs, a copy in that layout.
  class Operand {
   public:
    Operand(const memory::desc& ours, const memory::desc& wanted, float* data)
        : ours_(ours, Engine(), data), inside_(ours_) {
      if (ours != wanted) inside_ = memory(wanted, Engine());
    }
    void Load(dnnl::stream& stream) { Reorder(stream, ours_, inside_); }
    void Store(dnnl::stream& stream) { Reorder(stream, inside_, ours_); }
    memory& inside() { return inside_; }

   private:
    static void Reorder(dnnl::stream& stream, memory& from, memory& to) {
      if (from.get() != to.get()) dnnl::reorder(from, to).execute(stream, from, to);
    }
    memory ours_, inside_;
  };

  // Returns `outer` followed by of(window) for each spatial window of the geometry.
  template <class Of>
  static memory::dims Dims(const ConvGeometry& g, memory::dims outer, const Of& of) {
    if (g.volumes) outer.push_back(of(g.d));
    outer.push_back(of(g.h));
    outer.push_back(of(g.w));
    return outer;
  }
  static memory::desc Image(const ConvGeometry& g, Tag tag) {
    return Desc(Dims(g, {g.batch, g.in_channels}, [](const Window& w) { return w.in; }), tag);
  }
  static memory::desc Filter(const ConvGeometry& g, Tag tag) {
    return Desc(Dims(g, {g.out_channels, g.in_channels}, [](const Window& w) { return w.size; }),
                tag);
  }
  static memory::desc Result(const ConvGeometry& g, Tag tag) {
    return Desc(Dims(g, {g.batch, g.out_channels}, [](const Window& w) { return w.out; }), tag);
  }

  void Make(const ConvGeometry& g, Tag images) {
    const auto strides = Dims(g, {}, [](const Window& w) { return w.stride; });
    const auto dilations = Dims(g, {}, [](const Window& w) { return w.dilation - 1; });
    const auto before = Dims(g, {}, [](const Window& w) { return w.pad_before; });
    const auto after = Dims(g, {}, [](const Window& w) { return w.pad_after; });
    const auto x = Image(g, images), w = Filter(g, Tag::any), y = Result(g, images);
    const auto algorithm = dnnl::algorithm::convolution_direct;
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::convolution_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, algorithm, x, w, y, strides, dilations, before, after},
        attr, Engine());
    if (kind_ == Kind::kForward) {
      Keep<dnnl::convolution_forward>(forward);
    } else if (kind_ == Kind::kImageGradient) {
      Keep<dnnl::convolution_backward_data>(dnnl::convolution_backward_data::primitive_desc(
          {algorithm, x, w, y, strides, dilations, before, after}, attr, Engine(), forward));
    } else {
      Keep<dnnl::convolution_backward_weights>(dnnl::convolution_backward_weights::primitive_desc(
          {algorithm, x, w, y, strides, dilations, before, after}, attr, Engine(), forward));
    }
  }

  template <class P>
  void Keep(const typename P::primitive_desc& description) {
    description_ = description;
    primitive_ = P(description);
  }

  // Returns the layout that oneDNN chose for the image, filter or output. `operand` names the
  // operand: kForward the image, kImageGradient the filter, kFilterGradient the output.
  memory::desc Wanted(Kind operand) const {
    const bool forward = kind_ == Kind::kForward;
    switch (operand) {
      case Kind::kForward:
        return kind_ == Kind::kImageGradient ? description_.query_md(dnnl::query::diff_src_md)
                                             : description_.query_md(dnnl::query::src_md);
      case Kind::kImageGradient:
        return kind_ == Kind::kFilterGradient ? description_.query_md(dnnl::query::diff_weights_md)
                                              : description_.query_md(dnnl::query::weights_md);
      default:
        return description_.query_md(forward ? dnnl::query::dst_md : dnnl::query::diff_dst_md);
    }
  }

  const Kind kind_;
  dnnl::primitive_desc_base description_;
  dnnl::primitive primitive_;
  memory::desc image_, filter_, output_;
};

// A cache of primitives by kind and geometry. If it is full, the least recently used one is
// dropped.
class PrimitiveCache {
 public:
  // Returns null if oneDNN does not support the computation.
  std::shared_ptr<const Primitive> Get(Kind kind, const ConvGeometry& g) {
    MutexLock lock(mu_);
    const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) {
      return e.kind == kind && e.geometry == g;
    });
    if (found != entries_.end()) {
      entries_.splice(entries_.begin(), entries_, found);
      return found->primitive;
    }
    std::shared_ptr<const Primitive> primitive;
    try {
      primitive = std::make_shared<const Primitive>(kind, g);
    } catch (const dnnl::error&) {
      // A null is cached, too: the caller then computes the convolution by UnrolledForward etc.
    }
    if (entries_.size() == kEntriesMax) entries_.pop_back();
    entries_.push_front({kind, g, primitive});
    return primitive;
  }

 private:
  static constexpr size_t kEntriesMax = 256;  // a large model has a few dozen geometries
  struct Entry {
    Kind kind;
    ConvGeometry geometry;
    std::shared_ptr<const Primitive> primitive;
  };
  Mutex mu_;
  std::list<Entry> entries_ ABSL_GUARDED_BY(mu_);
};

PrimitiveCache& Primitives() {
  static PrimitiveCache& cache = *new PrimitiveCache;
  return cache;
}

// Returns whether oneDNN's arithmetic on these numbers fits in an int, its type for sizes.
bool CountsFit(const Window& w) {
  constexpr int64_t kMax = 1 << 20;
  return w.in <= kMax && w.size <= kMax && w.dilation <= kMax && w.size * w.dilation <= kMax &&
         w.stride <= kMax && w.pad_before <= kMax && w.pad_after <= kMax;
}

// Runs `kind` on pieces of the batch. Does nothing and returns false if oneDNN does not support the
// computation. For the filter's gradient, each piece of the batch has its own result, and the
// results are added up in order.
bool RunOnPieces(Kind kind, const ConvGeometry& g, float* image, float* filter, float* output,
                 Scheduler& threads) {
  if (!CountsFit(g.d) || !CountsFit(g.h) || !CountsFit(g.w)) return false;
  const int64_t pieces =
      std::clamp<int64_t>(threads.num_threads(), 1, std::max<int64_t>(g.batch, 1));
  const int64_t image_size = g.in_pixels() * g.in_channels;
  const int64_t output_size = g.out_pixels() * g.out_channels;
  const int64_t filter_size = g.patch() * g.out_channels;
  std::vector<std::shared_ptr<const Primitive>> primitives(pieces);
  std::vector<int64_t> first(pieces + 1);
  omp_set_num_threads(1);  // primitives are made for one thread
  for (int64_t p = 0; p <= pieces; ++p) first[p] = g.batch * p / pieces;
  for (int64_t p = 0; p < pieces; ++p) {
    ConvGeometry piece = g;
    piece.batch = first[p + 1] - first[p];
    primitives[p] = Primitives().Get(kind, piece);
    if (primitives[p] == nullptr) return false;
  }
  const bool sum = kind == Kind::kFilterGradient && pieces > 1;
  std::vector<float> parts(sum ? filter_size * (pieces - 1) : 0);
  const double piece_ns = g.flops() / static_cast<double>(pieces) / 80;
  threads.ParallelFor(pieces, piece_ns, [&](int64_t begin, int64_t end) {
    omp_set_num_threads(1);
    for (int64_t p = begin; p < end; ++p) {
      primitives[p]->Run(image + first[p] * image_size,
                         sum && p > 0 ? parts.data() + (p - 1) * filter_size : filter,
                         output + first[p] * output_size);
    }
  });
  for (const float* part = parts.data(); part != parts.data() + parts.size(); part += filter_size) {
    for (int64_t i = 0; i < filter_size; ++i) filter[i] += part[i];
  }
  return true;
}

}  // namespace

void ConvForward(const ConvGeometry& g, const float* image, const float* filter, float* output,
                 Scheduler& threads) {
  if (!RunOnPieces(Kind::kForward, g, const_cast<float*>(image), const_cast<float*>(filter), output,
                   threads)) {
    UnrolledForward(g, image, filter, output, threads);
  }
}

void ConvImageGradient(const ConvGeometry& g, const float* filter, const float* doutput,
                       float* dimage, Scheduler& threads) {
  if (!RunOnPieces(Kind::kImageGradient, g, dimage, const_cast<float*>(filter),
                   const_cast<float*>(doutput), threads)) {
    UnrolledImageGradient(g, filter, doutput, dimage, threads);
  }
}

void ConvFilterGradient(const ConvGeometry& g, const float* image, const float* doutput,
                        float* dfilter, Scheduler& threads) {
  // With few input channels, oneDNN's gradient of the filter for AVX2 reaches a tenth of the
  // processor's peak, and the unrolled form a third. oneDNN's code for AVX-512 is near the peak.
  static const bool wide_vectors = __builtin_cpu_supports("avx512f") != 0;
  constexpr int64_t kFewChannels = 8;
  if ((g.in_channels < kFewChannels && !wide_vectors) ||
      !RunOnPieces(Kind::kFilterGradient, g, const_cast<float*>(image), dfilter,
                   const_cast<float*>(doutput), threads)) {
    UnrolledFilterGradient(g, image, doutput, dfilter, threads);
  }
}

}  // namespace penstock

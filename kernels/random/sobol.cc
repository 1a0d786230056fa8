// SPDX-License-Identifier: Apache-2.0
//
// SobolSample: points of a Sobol sequence, which fills the unit cube evenly.
//
// S. Joe, F. Y. Kuo: Notes on generating Sobol sequences (2008).
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/long_loop.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/random/sobol_directions.h"

namespace penstock {
namespace {

// A section of a sequence: points first + 1, first + 2, ...; point 0 is the origin.
struct SobolSection {
  int64_t dimensions, count, first;

  static StatusOr<SobolSection> From(const KernelContext& ctx) {
    SobolSection s;
    ASSIGN_OR_RETURN(s.dimensions, IntScalar(ctx.input(0), "dim"));
    ASSIGN_OR_RETURN(s.count, IntScalar(ctx.input(1), "num_results"));
    ASSIGN_OR_RETURN(s.first, IntScalar(ctx.input(2), "skip"));
    if (s.dimensions < 1) return InvalidArgument("dim must be at least one, is ", s.dimensions);
    if (s.dimensions > kMaxSobolDimensions) {
      return InvalidArgument("dim must be at most ", kMaxSobolDimensions, ", is ", s.dimensions);
    }
    if (s.count < 1) return InvalidArgument("num_results must be at least one, is ", s.count);
    if (s.first < 0) return InvalidArgument("skip must be non-negative, is ", s.first);
    constexpr int64_t kLimit = std::numeric_limits<int32_t>::max();
    if (s.count >= kLimit - s.first) {
      return InvalidArgument("num_results+skip must be less than ", kLimit, ", is ",
                             s.count + s.first);
    }
    return s;
  }
};

// Computes points [begin, end) of a section. Each point differs from the previous one by one
// direction number in each dimension (Gray code).
template <class T>
void WritePoints(const SobolSection& section, int64_t begin, int64_t end, T* out) {
  const int64_t dimensions = section.dimensions;
  // The numbers have as many digits as the index of the last point. Rounding to T does not depend
  // on their scale.
  const int digits = std::bit_width(static_cast<uint64_t>(section.first + section.count + 1));
  const T scale = static_cast<T>(std::ldexp(1.0, -digits));
  std::vector<uint32_t> directions(dimensions * digits), point(dimensions);
  const uint64_t index = section.first + begin + 1, gray = index ^ index >> 1;
  for (int64_t d = 0; d < dimensions; ++d) {
    const SobolDirections& m = DirectionsOf(static_cast<int>(d));
    for (int k = 0; k < digits; ++k) {
      const uint32_t direction = m[k] << (digits - 1 - k);
      directions[k * dimensions + d] = direction;
      if (gray >> k & 1) point[d] ^= direction;
    }
  }
  for (int64_t i = begin; i < end; ++i, out += dimensions) {
    for (int64_t d = 0; d < dimensions; ++d) out[d] = static_cast<T>(point[d]) * scale;
    const uint32_t* change =
        &directions[std::countr_one(static_cast<uint64_t>(section.first + i + 1)) * dimensions];
    if (i + 1 == end) break;
    for (int64_t d = 0; d < dimensions; ++d) point[d] ^= change[d];
  }
}

template <class T>
class SobolKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const SobolSection section, SobolSection::From(ctx));
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(Dims{section.count, section.dimensions}));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    // Every block starts with a table of direction numbers, so blocks have many points.
    constexpr int64_t kBlock = 512;
    T* const out = output->mutable_data<T>();
    const int64_t blocks = (section.count + kBlock - 1) / kBlock;
    return LongLoop(ctx.step(), blocks, 0.5 * kBlock * static_cast<double>(section.dimensions),
                    [&](int64_t begin, int64_t end) {
                      WritePoints(section, begin * kBlock, std::min(end * kBlock, section.count),
                                  out + begin * kBlock * section.dimensions);
                    });
  }
};

Status SobolShape(ShapeScope& s) {
  for (int i : {0, 1, 2}) RETURN_IF_ERROR(s.WithRank(i, 0).status());
  PartialShape shape;
  for (int i : {1, 0}) {
    std::vector<int64_t> value;
    const bool known = s.ConstantInts(i, &value) && value.size() == 1 && value[0] >= 0;
    shape.AddDim(known ? value[0] : PartialShape::kUnknown);
  }
  s.set_output(0, std::move(shape));
  return OkStatus();
}

OP(SobolSample) {
  return {
      .doc =
          "Returns num_results points of the Sobol sequence in the unit cube of `dim` dimensions, "
          "one per row, without the first `skip` points. dim is at most 1111; TensorFlow allows "
          "21200.",
      .inputs = {{"dim", "int32"}, {"num_results", "int32"}, {"skip", "int32"}},
      .outputs = {{"samples", "dtype"}},
      .types = {{"dtype", {DType::kFloat, DType::kDouble}, DType::kFloat}},
      .shape = SobolShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{.values = {5}}}, {{.values = {6}}}, {{.values = {3}}}}}},
  };
}
KERNEL_BY("dtype", SobolSample, SobolKernel, float, double);

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Fingerprint: FarmHash's Fingerprint64 of each row of a tensor. Programs store fingerprints, so
// they must always be TensorFlow's.
#include <farmhash.h>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/string/strings.h"

namespace penstock {
namespace {

constexpr int64_t kBytes = 8;  // bytes of a fingerprint

// Writes a fingerprint, the lowest byte first.
void Write(const char* bytes, size_t size, uint8_t* to) {
  const uint64_t print = util::Fingerprint64(bytes, size);
  for (int64_t i = 0; i < kBytes; ++i) to[i] = static_cast<uint8_t>(print >> 8 * i);
}

class FingerprintKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    const Tensor& data = ctx.input(0);
    ASSIGN_OR_RETURN(const std::string method, StringScalar(ctx, 1, "method"));
    if (method != "farmhash64") {
      return InvalidArgument("Unsupported fingerprint method: ", method);
    }
    if (data.rank() == 0) {
      return InvalidArgument("`data` should have at least one dimension: ",
                             data.shape().ToString());
    }
    const bool strings = data.dtype() == DType::kString;
    if (!strings && !IsPlain(data.dtype())) {
      return InvalidArgument("data must hold numbers or strings, holds ", Name(data.dtype()));
    }
    const int64_t rows = data.dim(0);
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape({rows, kBytes}), &output));
    if (rows == 0) return OkStatus();
    uint8_t* to = output->mutable_data<uint8_t>();
    const int64_t each = data.num_elements() / rows;
    if (strings) {
      OfStrings(data.data<std::string>(), rows, each, to);
      return OkStatus();
    }
    const size_t size = data.bytes() / static_cast<size_t>(rows);
    const char* from = static_cast<const char*>(data.raw_data());
    for (int64_t row = 0; row < rows; ++row) Write(from + row * size, size, to + row * kBytes);
    return OkStatus();
  }

  // Writes the fingerprints of rows of strings: a row of one string gets that string's fingerprint,
  // any other row gets the fingerprint of its strings' fingerprints.
  static void OfStrings(const std::string* from, int64_t rows, int64_t each, uint8_t* to) {
    std::string prints(static_cast<size_t>(each * kBytes), '\0');
    for (int64_t row = 0; row < rows; ++row, from += each, to += kBytes) {
      if (each == 1) {
        Write(from->data(), from->size(), to);
        continue;
      }
      for (int64_t i = 0; i < each; ++i) {
        Write(from[i].data(), from[i].size(),
              reinterpret_cast<uint8_t*>(prints.data()) + i * kBytes);
      }
      Write(prints.data(), prints.size(), to);
    }
  }
};

Status FingerprintShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape data, s.WithRankAtLeast(0, 1));
  RETURN_IF_ERROR(s.WithRank(1, 0).status());
  s.set_output(0, PartialShape({data.known_rank() ? data.dim(0) : PartialShape::kUnknown, kBytes}));
  return OkStatus();
}

OP(Fingerprint) {
  return {
      .doc = "Returns the 8 bytes of a fingerprint, `method` farmhash64, of each row of data.",
      .inputs = {{"data", "T"}, {"method", "string"}},
      .outputs = {{"fingerprint", "uint8"}},
      .types = {{"T", kAnyType}},
      .shape = FingerprintShape,
      .gradient = NoGradient,
      .untestable_alone = "knows one method by name: kernels/string has its tests",
  };
}
KERNEL_ANY_TYPE(Fingerprint, FingerprintKernel);

}  // namespace
}  // namespace penstock

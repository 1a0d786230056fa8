// SPDX-License-Identifier: Apache-2.0
//
// DecodeCompressed: decompresses strings.
#include <zlib.h>

#include <array>
#include <memory>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "core/record/compression.h"
#include "kernels/string/strings.h"

namespace penstock {
namespace {

// The maximum size of a result: a small string may decompress to a huge one.
constexpr size_t kBytesMax = (size_t{1} << 31) - 1;

// Decompresses ZLIB or GZIP data. GZIP data may have several members, one after the other. DataLoss
// if the data is malformed, ResourceExhausted if the result exceeds kBytesMax.
Status Inflate(const std::string& data, bool gzip, std::string* out) {
  out->clear();
  if (data.empty()) return OkStatus();
  if (data.size() > kBytesMax)
    return ResourceExhausted("bytes has more than ", kBytesMax, " bytes");
  z_stream zlib = {};
  if (inflateInit2(&zlib, MAX_WBITS + (gzip ? 16 : 0)) != Z_OK) {
    return ResourceExhausted("no memory to decompress");
  }
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&zlib, inflateEnd);
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  zlib.avail_in = static_cast<uInt>(data.size());
  std::array<char, 1 << 16> block;
  while (true) {
    zlib.next_out = reinterpret_cast<Bytef*>(block.data());
    zlib.avail_out = block.size();
    const int result = inflate(&zlib, Z_NO_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END) {
      return DataLoss("inflate() failed with error ", result, ": ",
                      zlib.msg != nullptr ? zlib.msg : "the data end too early");
    }
    const size_t count = block.size() - zlib.avail_out;
    if (out->size() + count > kBytesMax) {
      return ResourceExhausted("decompresses to more than ", kBytesMax, " bytes");
    }
    out->append(block.data(), count);
    if (result != Z_STREAM_END) continue;
    if (!gzip || zlib.avail_in == 0) return OkStatus();
    if (inflateReset(&zlib) != Z_OK) return Internal("inflateReset failed");
  }
}

class DecodeCompressedKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    std::string name;
    RETURN_IF_ERROR(node.Attr("compression_type", &name));
    const auto parsed = ParseCompression(name);
    if (!parsed.ok()) {
      return InvalidArgument("Only ZLIB, GZIP or NONE are supported compressions: ",
                             parsed.status().message());
    }
    compression_ = *parsed;
    return OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    return MapStrings<std::string>(ctx, [this](const std::string& data, std::string* out) {
      if (compression_ == Compression::kNone) return *out = data, OkStatus();
      return Inflate(data, compression_ == Compression::kGzip, out);
    });
  }

 private:
  Compression compression_ = Compression::kNone;
};

OP(DecodeCompressed) {
  return {
      .doc =
          "Decompresses each string. compression_type is ZLIB or GZIP; if it is empty, the strings "
          "are not compressed.",
      .inputs = {{"bytes", "string"}},
      .outputs = {{"output", "string"}},
      .attrs = {{"compression_type", ""}},
      .shape = SameShape,
      .gradient = NoGradient,
  };
}
KERNEL_ANY_TYPE(DecodeCompressed, DecodeCompressedKernel);

}  // namespace
}  // namespace penstock

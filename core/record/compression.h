// SPDX-License-Identifier: Apache-2.0
//
// The compression of a file of records or text, with TensorFlow's names.
#pragma once

#include "core/base/status.h"

namespace penstock {

enum class Compression { kNone, kZlib, kGzip };

// Accepts "", "ZLIB" and "GZIP"; InvalidArgument otherwise.
inline StatusOr<Compression> ParseCompression(string_view name) {
  if (name.empty()) return Compression::kNone;
  if (name == "ZLIB") return Compression::kZlib;
  if (name == "GZIP") return Compression::kGzip;
  return InvalidArgument("compression '", name, "': must be '', 'ZLIB' or 'GZIP'");
}

}  // namespace penstock

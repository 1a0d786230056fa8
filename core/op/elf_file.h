// SPDX-License-Identifier: Apache-2.0
//
// ElfFile: reads some sections of a shared library's file without loading the library. The file may
// be truncated or hostile, so ReadElfFile checks every offset.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace penstock {

struct ElfFile {
  // The libraries on which the file depends: "libc.so.6".
  std::vector<std::string> needed;
  // The contents of the file's notes with the requested owner and type.
  std::vector<std::string> notes;
};

// Parses the bytes of a file. InvalidArgument if it is damaged or not a shared library for this
// machine.
StatusOr<ElfFile> ReadElfFile(string_view bytes, string_view note_owner, uint32_t note_type);

}  // namespace penstock

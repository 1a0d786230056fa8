// SPDX-License-Identifier: Apache-2.0
//
// ElfFile: parts of the file of a shared library, read without loading it. Files may be cut
// short or hostile: every offset is checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace penstock {

struct ElfFile {
  // The libraries that it needs: "libc.so.6".
  std::vector<std::string> needed;
  // The contents of its notes of one owner and type.
  std::vector<std::string> notes;
};

// Reads the bytes of a file. InvalidArgument if it is no shared library of this machine, or broken.
StatusOr<ElfFile> ReadElfFile(string_view bytes, string_view note_owner, uint32_t note_type);

}  // namespace penstock

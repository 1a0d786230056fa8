// SPDX-License-Identifier: Apache-2.0
//
// OpLibraryNote: describes the build of an op library in the library's file, as an ELF note in the
// section .note.penstock. op_library.h writes it, load_library.cc reads it.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>

#include "absl/base/config.h"
#include "core/base/version.h"

namespace penstock {

// Properties of a build, which must be equal in a library and in the process that loads it.
struct OpLibraryBuild {
  char version[16] = {};    // kVersion; the numbers after its last dot may differ
  int32_t abseil = 0;       // Abseil's release, such as 20220623
  int32_t new_strings = 0;  // 1: std::string has the C++11 ABI
  int32_t sanitizers = 0;   // bits: 1: address sanitizer, 2: thread sanitizer
};

inline constexpr char kNoteOwner[] = "Penstock";
inline constexpr uint32_t kNoteType = 1;

// Has the layout of a note in the ELF format: header, owner (padded to four bytes), content.
struct OpLibraryNote {
  Elf64_Nhdr header = {
      .n_namesz = sizeof(kNoteOwner), .n_descsz = sizeof(OpLibraryBuild), .n_type = kNoteType};
  char owner[12] = {};
  OpLibraryBuild build;
};

// Returns the properties of the build that compiles this file.
constexpr OpLibraryBuild ThisBuild() {
  OpLibraryBuild build;
  static_assert(sizeof(kVersion) <= sizeof(build.version));
  for (size_t i = 0; i < sizeof(kVersion); ++i) build.version[i] = kVersion[i];
  build.abseil = ABSL_LTS_RELEASE_VERSION;
#if !defined(_GLIBCXX_USE_CXX11_ABI) || _GLIBCXX_USE_CXX11_ABI
  build.new_strings = 1;
#endif
#if defined(__SANITIZE_ADDRESS__)
  build.sanitizers += 1;
#endif
#if defined(__SANITIZE_THREAD__)
  build.sanitizers += 2;
#endif
  return build;
}

constexpr OpLibraryNote ThisNote() {
  OpLibraryNote note;
  for (size_t i = 0; i < sizeof(kNoteOwner); ++i) note.owner[i] = kNoteOwner[i];
  note.build = ThisBuild();
  return note;
}

}  // namespace penstock

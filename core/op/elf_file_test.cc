// SPDX-License-Identifier: Apache-2.0
//
// Tests ReadElfFile on a library of this build: complete, truncated and with wrong bytes.
#include "core/op/elf_file.h"

#include <elf.h>

#include <cstddef>

#include "core/base/env.h"
#include "core/op/op_library_note.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

std::string Library() { return *Env::Real().ReadFile("core/op/testing/libraries/libtriple.so"); }

TEST(ElfFile, FindsNotesAndLibraries) {
  const auto file = ReadElfFile(Library(), kNoteOwner, kNoteType);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->notes.size(), 1);
  const OpLibraryBuild here = ThisBuild();
  EXPECT_EQ(file->notes[0], std::string(reinterpret_cast<const char*>(&here), sizeof(here)));
  EXPECT_THAT(file->needed, ::testing::Contains("libstdc++.so.6"));
  EXPECT_TRUE(ReadElfFile(Library(), "Penstoc", kNoteType)->notes.empty());
  EXPECT_TRUE(ReadElfFile(Library(), kNoteOwner, kNoteType + 1)->notes.empty());
}

TEST(ElfFile, RefusesOtherMachines) {
  const auto refusal = [](size_t at, char byte) {
    std::string library = Library();
    EXPECT_NE(library[at], byte);
    library[at] = byte;
    return std::string(ReadElfFile(library, kNoteOwner, kNoteType).status().message());
  };
  const char* const elsewhere = "it is no shared library for this machine";
  EXPECT_EQ(refusal(offsetof(Elf64_Ehdr, e_machine), EM_S390), elsewhere);
  EXPECT_EQ(refusal(EI_DATA, ELFDATANONE), elsewhere);
  EXPECT_EQ(refusal(EI_CLASS, ELFCLASS32), elsewhere);
  EXPECT_EQ(refusal(offsetof(Elf64_Ehdr, e_type), ET_REL), elsewhere);
  EXPECT_EQ(refusal(offsetof(Elf64_Ehdr, e_phentsize), 1), "it is a broken or truncated ELF file");
}

TEST(ElfFile, ReadsNothingBehindTheEnd) {
  const std::string whole = Library();
  int broken = 0;
  for (size_t size = 0; size < whole.size(); size += size < 4096 ? 1 : 97) {
    // Copies the bytes to a buffer of exactly this size, so that the address sanitizer detects
    // reads beyond its end.
    const std::string cut(whole.data(), size);
    broken += !ReadElfFile(cut, kNoteOwner, kNoteType).ok();
  }
  EXPECT_GT(broken, 500);
}

TEST(ElfFile, SurvivesWrongBytes) {
  const std::string whole = Library();
  for (size_t at = 0; at < std::min<size_t>(whole.size(), 4096); ++at) {
    for (const char byte : {'\0', '\x7f', '\xff'}) {
      std::string wrong = whole;
      wrong[at] = byte;
      (void)ReadElfFile(wrong, kNoteOwner, kNoteType);
    }
  }
}

}  // namespace
}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// ReadElfFile on a library of this build, whole, cut short and with wrong bytes.
#include "core/op/elf_file.h"

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

TEST(ElfFile, ReadsNothingBehindTheEnd) {
  const std::string whole = Library();
  int broken = 0;
  for (size_t size = 0; size < whole.size(); size += size < 4096 ? 1 : 97) {
    // A copy of its own size, so that the address sanitizer sees what is read behind it.
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

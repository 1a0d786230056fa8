// SPDX-License-Identifier: Apache-2.0
#include "core/op/elf_file.h"

#include <elf.h>

#include <bit>
#include <cstring>

#include "absl/strings/strip.h"

namespace penstock {
namespace {

constexpr string_view kZero("\0", 1);

// The ELF number of the machine that this build is for.
#if defined(__x86_64__)
constexpr Elf64_Half kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half kMachine = EM_AARCH64;
#else
#error "elf.h has a number of this machine, which has to be added here"
#endif
constexpr unsigned char kByteOrder =
    std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;

Status BrokenFileError() { return InvalidArgument("it is a broken or truncated ELF file"); }

// Copies a structure from `offset`; returns false if it extends beyond the end of the bytes.
template <class T>
bool Get(string_view bytes, uint64_t offset, T* value) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
  std::memcpy(value, bytes.data() + offset, sizeof(T));
  return true;
}

// Returns the bytes [offset, offset + size), or none if this range extends beyond the end of
// `bytes`.
string_view Range(string_view bytes, uint64_t offset, uint64_t size) {
  if (offset > bytes.size() || bytes.size() - offset < size) return {};
  return bytes.substr(offset, size);
}

class Reader {
 public:
  explicit Reader(string_view bytes) : bytes_(bytes) {}

  Status ReadHeaders() {
    Elf64_Ehdr header;
    if (!Get(bytes_, 0, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != kByteOrder ||
        header.e_type != ET_DYN || header.e_machine != kMachine) {
      return InvalidArgument("it is no shared library for this machine");
    }
    if (header.e_phentsize != sizeof(Elf64_Phdr)) return BrokenFileError();
    for (uint64_t i = 0; i < header.e_phnum; ++i) {
      Elf64_Phdr segment;
      if (!Get(bytes_, header.e_phoff + i * sizeof(segment), &segment)) return BrokenFileError();
      segments_.push_back(segment);
    }
    return OkStatus();
  }

  Status ReadNotes(string_view owner, uint32_t type, std::vector<std::string>* found) const {
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type != PT_NOTE) continue;
      const string_view notes = Range(bytes_, segment.p_offset, segment.p_filesz);
      const uint64_t align = segment.p_align == 8 ? 8 : 4;
      const auto padded = [&](uint64_t size) { return (size + align - 1) / align * align; };
      Elf64_Nhdr note;
      for (uint64_t at = 0; Get(notes, at, &note);) {
        const uint64_t content = at + sizeof(note) + padded(note.n_namesz);
        const string_view name = Range(notes, at + sizeof(note), note.n_namesz);
        const string_view value = Range(notes, content, note.n_descsz);
        if (value.size() != note.n_descsz) return BrokenFileError();
        // The size of the owner's name includes its final zero.
        if (note.n_type == type && absl::StripSuffix(name, kZero) == owner) {
          found->emplace_back(value);
        }
        at = content + padded(note.n_descsz);
      }
    }
    return OkStatus();
  }

  Status ReadNeeded(std::vector<std::string>* needed) const {
    std::vector<uint64_t> names;
    uint64_t table_address = 0, table_size = 0;
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type != PT_DYNAMIC) continue;
      const string_view entries = Range(bytes_, segment.p_offset, segment.p_filesz);
      Elf64_Dyn entry;
      for (uint64_t at = 0; Get(entries, at, &entry) && entry.d_tag != DT_NULL;
           at += sizeof(entry)) {
        if (entry.d_tag == DT_NEEDED) names.push_back(entry.d_un.d_val);
        if (entry.d_tag == DT_STRTAB) table_address = entry.d_un.d_ptr;
        if (entry.d_tag == DT_STRSZ) table_size = entry.d_un.d_val;
      }
    }
    const string_view table = Range(bytes_, OffsetOf(table_address), table_size);
    for (const uint64_t name : names) {
      const size_t end = name < table.size() ? table.find('\0', name) : string_view::npos;
      if (end == string_view::npos) return BrokenFileError();
      needed->emplace_back(table.substr(name, end - name));
    }
    return OkStatus();
  }

 private:
  // Returns the offset in the file of the bytes that would be loaded at `address`; the end of the
  // file if no bytes of the file belong there.
  uint64_t OffsetOf(uint64_t address) const {
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
          address - segment.p_vaddr < segment.p_filesz) {
        return segment.p_offset + (address - segment.p_vaddr);
      }
    }
    return bytes_.size();
  }

  const string_view bytes_;
  std::vector<Elf64_Phdr> segments_;
};

}  // namespace

StatusOr<ElfFile> ReadElfFile(string_view bytes, string_view note_owner, uint32_t note_type) {
  ElfFile file;
  Reader reader(bytes);
  RETURN_IF_ERROR(reader.ReadHeaders());
  RETURN_IF_ERROR(reader.ReadNotes(note_owner, note_type, &file.notes));
  RETURN_IF_ERROR(reader.ReadNeeded(&file.needed));
  return file;
}

}  // namespace penstock

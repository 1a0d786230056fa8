// SPDX-License-Identifier: Apache-2.0
#include <snappy.h>

#include <cstdint>

#include "absl/strings/escaping.h"
#include "core/base/crc32c.h"
#include "core/checkpoint/table.h"
#include "core/checkpoint/varint.h"

namespace penstock {
namespace {

constexpr size_t kFooterBytes = 48;
constexpr size_t kTrailerBytes = 5;  // of a block: its kind and its checksum
constexpr uint64_t kMagic = 0xdb4775248b80fb57;
// Names of tensors. Prefix compression would let a small file ask for much memory otherwise.
constexpr size_t kKeyBytesMax = 64 << 10;
constexpr size_t kKeysExpansionMax = 64;     // all keys together, relative to the file
constexpr size_t kBlockBytesMax = 64 << 20;  // uncompressed; 256 KiB are usual

template <class T>
T LittleEndian(const char* bytes) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value |= T{static_cast<uint8_t>(bytes[i])} << (8 * i);
  return value;
}

struct BlockHandle {
  uint64_t offset = 0;
  uint64_t size = 0;
  bool Take(string_view* input) { return TakeVarint(input, &offset) && TakeVarint(input, &size); }
};

using Visit = absl::FunctionRef<Status(string_view key, string_view value)>;

// Walks the entries of one block whose checksum was right.
Status VisitBlock(string_view block, string_view what, Visit visit) {
  const Status malformed = DataLoss("a malformed ", what, " block");
  if (block.size() < sizeof(uint32_t)) return malformed;
  const uint64_t restarts = LittleEndian<uint32_t>(block.data() + block.size() - sizeof(uint32_t));
  const uint64_t restart_bytes = (restarts + 1) * sizeof(uint32_t);
  if (restart_bytes > block.size()) return malformed;
  block.remove_suffix(restart_bytes);

  std::string key;
  while (!block.empty()) {
    uint32_t shared = 0, unshared = 0, value_size = 0;
    if (!TakeVarint(&block, &shared) || !TakeVarint(&block, &unshared) ||
        !TakeVarint(&block, &value_size) || shared > key.size() ||
        uint64_t{unshared} + value_size > block.size()) {
      return malformed;
    }
    if (uint64_t{shared} + unshared > kKeyBytesMax) {
      return DataLoss("a key of ", uint64_t{shared} + unshared, " bytes");
    }
    key.resize(shared);
    key.append(block.data(), unshared);
    RETURN_IF_ERROR(visit(key, block.substr(unshared, value_size)));
    block.remove_prefix(size_t{unshared} + value_size);
  }
  return OkStatus();
}

class TableReader {
 public:
  explicit TableReader(string_view file) : file_(file) {}

  Status Read(Visit visit) {
    BlockHandle metaindex, index;
    RETURN_IF_ERROR(ReadFooter(&metaindex, &index));
    // Nothing in it is of use, but damage to it is damage to the file.
    ASSIGN_OR_RETURN(string_view block, Block(metaindex, "metaindex"));
    const auto ignore = [](string_view, string_view) { return OkStatus(); };
    RETURN_IF_ERROR(VisitBlock(block, "metaindex", ignore));

    // Blocks may be decompressed into one buffer: the index needs one of its own.
    ASSIGN_OR_RETURN(block, Block(index, "index"));
    const std::string index_block(block);
    return VisitBlock(index_block, "index", [&](string_view last_key, string_view handle) {
      return ReadDataBlock(last_key, handle, visit);
    });
  }

 private:
  Status ReadFooter(BlockHandle* metaindex, BlockHandle* index) {
    if (file_.size() < kFooterBytes) {
      return DataLoss("the file is too short to be a table: ", file_.size(), " bytes");
    }
    string_view footer = file_.substr(file_.size() - kFooterBytes);
    if (LittleEndian<uint64_t>(footer.data() + kFooterBytes - sizeof kMagic) != kMagic) {
      return DataLoss("the file is not a table: its last bytes are not the magic number");
    }
    footer.remove_suffix(sizeof kMagic);
    const bool taken = metaindex->Take(&footer) && index->Take(&footer);
    if (!taken || footer.find_first_not_of('\0') != string_view::npos) {
      return DataLoss("a malformed footer");
    }
    file_.remove_suffix(kFooterBytes);
    return OkStatus();
  }

  // The contents of a block, verified; valid until the next call.
  StatusOr<string_view> Block(const BlockHandle& handle, string_view what) {
    if (handle.offset > file_.size() || file_.size() - handle.offset < kTrailerBytes ||
        handle.size > file_.size() - handle.offset - kTrailerBytes) {
      return DataLoss("the ", what, " block is said to be at ", handle.offset, ", of ", handle.size,
                      " bytes, in a file of ", file_.size() + kFooterBytes);
    }
    const string_view contents = file_.substr(handle.offset, handle.size);
    const char* const trailer = contents.data() + contents.size();
    const uint32_t crc = Crc32c(file_.substr(handle.offset, handle.size + 1));
    if (MaskCrc(crc) != LittleEndian<uint32_t>(trailer + 1)) {
      return DataLoss("the checksum of the ", what, " block at ", handle.offset, " is wrong");
    }
    if (trailer[0] == 0) return contents;
    if (trailer[0] == 1) return Uncompress(contents, what);
    return DataLoss("the ", what, " block at ", handle.offset, " is of unknown kind ",
                    static_cast<int>(trailer[0]));
  }

  StatusOr<string_view> Uncompress(string_view contents, string_view what) {
    size_t size = 0;
    if (!snappy::GetUncompressedLength(contents.data(), contents.size(), &size) ||
        size > kBlockBytesMax) {
      return DataLoss("a compressed ", what, " block of ", size, " bytes");
    }
    uncompressed_.resize(size);
    if (!snappy::RawUncompress(contents.data(), contents.size(), uncompressed_.data())) {
      return DataLoss("a malformed compressed ", what, " block");
    }
    return string_view(uncompressed_);
  }

  Status ReadDataBlock(string_view last_key, string_view handle_bytes, Visit visit) {
    BlockHandle handle;
    // In the order of the file, so that no block is read twice.
    if (!handle.Take(&handle_bytes) || handle.offset < blocks_end_) {
      return DataLoss("a malformed entry of the index block");
    }
    ASSIGN_OR_RETURN(const string_view block, Block(handle, "data"));
    blocks_end_ = handle.offset + handle.size;
    return VisitBlock(block, "data", [&](string_view key, string_view value) -> Status {
      if ((any_ && key <= string_view(previous_key_)) || key > last_key) {
        return DataLoss("key '", absl::CHexEscape(key), "' is out of order");
      }
      keys_bytes_ += key.size();
      if (keys_bytes_ / kKeysExpansionMax > file_.size()) {
        return DataLoss("more keys than a file of ", file_.size(), " bytes should hold");
      }
      any_ = true;
      previous_key_.assign(key.data(), key.size());
      return visit(key, value);
    });
  }

  string_view file_;  // without the footer, once that is read
  std::string uncompressed_;
  uint64_t blocks_end_ = 0;  // of the data blocks read so far
  bool any_ = false;         // keys were read
  std::string previous_key_;
  size_t keys_bytes_ = 0;
};

}  // namespace

Status VisitTable(string_view file, Visit visit) { return TableReader(file).Read(visit); }

}  // namespace penstock

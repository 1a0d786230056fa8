// SPDX-License-Identifier: Apache-2.0
#include <snappy.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/strings/escaping.h"
#include "core/base/crc32c.h"
#include "core/base/little_endian.h"
#include "core/checkpoint/table.h"
#include "core/checkpoint/varint.h"

namespace penstock {
namespace {

constexpr int64_t kFooterBytes = 48;
constexpr int64_t kTrailerBytes = 5;  // after each block: its type (1 byte) and its checksum (4)
constexpr uint64_t kMagic = 0xdb4775248b80fb57;
// Limits the memory for keys: keys share prefixes in the file, so a small file could need much
// memory for them.
constexpr int64_t kKeysExpansionMax = 64;  // total size of the keys, relative to the file
// In Snappy's densest encoding, three bytes stand for 64.
constexpr size_t kSnappyExpansionMax = 22;

// Calls visit for the entries of one block whose checksum has been verified.
Status VisitBlock(string_view block, string_view block_kind, Table::Visitor visit) {
  const Status malformed = DataLoss("a malformed ", block_kind, " block");
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
      return DataLoss("a key has ", uint64_t{shared} + unshared, " bytes, expected at most ",
                      kKeyBytesMax);
    }
    key.resize(shared);
    key.append(block.data(), unshared);
    RETURN_IF_ERROR(visit(key, block.substr(unshared, value_size)));
    block.remove_prefix(size_t{unshared} + value_size);
  }
  return OkStatus();
}

Status Uncompress(string_view block_kind, std::string* contents) {
  size_t size = 0;
  if (!snappy::GetUncompressedLength(contents->data(), contents->size(), &size) ||
      size / kSnappyExpansionMax > contents->size()) {
    return DataLoss("a compressed ", block_kind, " block of ", size, " bytes");
  }
  std::string uncompressed(size, '\0');
  if (!snappy::RawUncompress(contents->data(), contents->size(), uncompressed.data())) {
    return DataLoss("a malformed compressed ", block_kind, " block");
  }
  *contents = std::move(uncompressed);
  return OkStatus();
}

// Checks that keys ascend, and that together they are not much larger than the file.
class KeyOrder {
 public:
  explicit KeyOrder(int64_t file_size) : file_size_(file_size) {}

  Status Add(string_view key, string_view last_of_block) {
    if ((any_ && key <= string_view(previous_)) || key > last_of_block) {
      return DataLoss("key '", absl::CHexEscape(key), "' is out of order");
    }
    bytes_ += static_cast<int64_t>(key.size());
    if (bytes_ / kKeysExpansionMax > file_size_) {
      return DataLoss("more keys than a file of ", file_size_, " bytes should hold");
    }
    any_ = true;
    previous_.assign(key.data(), key.size());
    return OkStatus();
  }

 private:
  const int64_t file_size_;
  bool any_ = false;
  std::string previous_;
  int64_t bytes_ = 0;
};

class MemoryFile final : public RandomAccessFile {
 public:
  explicit MemoryFile(string_view contents) : contents_(contents) {}
  int64_t size() const override { return static_cast<int64_t>(contents_.size()); }
  Status Read(int64_t offset, int64_t count, char* buffer) const override {
    if (count > 0) std::memcpy(buffer, contents_.data() + offset, count);
    return OkStatus();
  }

 private:
  const string_view contents_;
};

}  // namespace

StatusOr<Table> Table::Open(const RandomAccessFile& file) {
  Table table(file);
  RETURN_IF_ERROR(table.ReadIndex());
  return table;
}

bool Table::TakeHandle(string_view* bytes, BlockHandle* handle) {
  return TakeVarint(bytes, &handle->offset) && TakeVarint(bytes, &handle->size);
}

Status Table::ReadIndex() {
  if (file_->size() < kFooterBytes) {
    return DataLoss("the file is too short to be a table: ", file_->size(), " bytes");
  }
  char bytes[kFooterBytes];
  RETURN_IF_ERROR(file_->Read(file_->size() - kFooterBytes, kFooterBytes, bytes));
  string_view footer(bytes, kFooterBytes - sizeof kMagic);
  if (LittleEndian<uint64_t>(bytes + footer.size()) != kMagic) {
    return DataLoss("the file is not a table: its last bytes are not the magic number");
  }
  BlockHandle metaindex, index;
  const bool taken = TakeHandle(&footer, &metaindex) && TakeHandle(&footer, &index);
  if (!taken || footer.find_first_not_of('\0') != string_view::npos) {
    return DataLoss("a malformed footer");
  }
  blocks_end_ = file_->size() - kFooterBytes;

  // The contents of this block are not used, but a damaged block means a damaged file.
  std::string block;
  RETURN_IF_ERROR(ReadBlock(metaindex, "metaindex", &block));
  const auto ignore = [](string_view, string_view) { return OkStatus(); };
  RETURN_IF_ERROR(VisitBlock(block, "metaindex", ignore));

  RETURN_IF_ERROR(ReadBlock(index, "index", &block));
  KeyOrder order(file_->size());
  return VisitBlock(block, "index", [&](string_view last_key, string_view handle) -> Status {
    RETURN_IF_ERROR(order.Add(last_key, last_key));
    return AddDataBlock(last_key, handle);
  });
}

Status Table::AddDataBlock(string_view last_key, string_view handle) {
  DataBlock block{.last_key = std::string(last_key), .handle = {}};
  const int64_t end =
      blocks_.empty() ? 0 : blocks_.back().handle.offset + blocks_.back().handle.size;
  // Blocks must be in the order of the file, so that no block is read twice.
  if (!TakeHandle(&handle, &block.handle) || block.handle.offset < end ||
      block.handle.offset > blocks_end_ || block.handle.size > blocks_end_ - block.handle.offset) {
    return DataLoss("a malformed entry of the index block");
  }
  blocks_.push_back(std::move(block));
  return OkStatus();
}

Status Table::ReadBlock(const BlockHandle& handle, string_view block_kind,
                        std::string* contents) const {
  if (handle.offset > blocks_end_ || blocks_end_ - handle.offset < kTrailerBytes ||
      handle.size > blocks_end_ - handle.offset - kTrailerBytes) {
    return DataLoss("the ", block_kind, " block is said to be at ", handle.offset, ", of ",
                    handle.size, " bytes, in a file of ", file_->size());
  }
  contents->resize(handle.size + kTrailerBytes);
  RETURN_IF_ERROR(file_->Read(handle.offset, handle.size + kTrailerBytes, contents->data()));
  const char kind = (*contents)[handle.size];
  const uint32_t expected = LittleEndian<uint32_t>(contents->data() + handle.size + 1);
  contents->resize(handle.size + 1);
  if (MaskCrc(Crc32c(*contents)) != expected) {
    return DataLoss("the checksum of the ", block_kind, " block at ", handle.offset, " is wrong");
  }
  contents->pop_back();
  if (kind == 0) return OkStatus();
  if (kind == 1) return Uncompress(block_kind, contents);
  return DataLoss("the ", block_kind, " block at ", handle.offset, " is of unknown kind ",
                  static_cast<int>(kind));
}

Status Table::Visit(Visitor visit) const {
  KeyOrder order(file_->size());
  std::string contents;
  for (const DataBlock& block : blocks_) {
    RETURN_IF_ERROR(ReadBlock(block.handle, "data", &contents));
    RETURN_IF_ERROR(VisitBlock(contents, "data", [&](string_view key, string_view value) -> Status {
      RETURN_IF_ERROR(order.Add(key, block.last_key));
      return visit(key, value);
    }));
  }
  return OkStatus();
}

Status Table::Find(string_view key, absl::FunctionRef<Status(string_view)> use) const {
  const auto block = std::lower_bound(
      blocks_.begin(), blocks_.end(), key,
      [](const DataBlock& b, string_view k) { return string_view(b.last_key) < k; });
  bool found = false;
  if (block != blocks_.end()) {
    std::string contents;
    RETURN_IF_ERROR(ReadBlock(block->handle, "data", &contents));
    RETURN_IF_ERROR(
        VisitBlock(contents, "data", [&](string_view candidate, string_view value) -> Status {
          if (found || candidate != key) return OkStatus();
          found = true;
          return use(value);
        }));
  }
  if (found) return OkStatus();
  return NotFound("there is no key '", absl::CHexEscape(key), "'");
}

Status VisitTable(string_view file, Table::Visitor visit) {
  const MemoryFile memory(file);
  ASSIGN_OR_RETURN(const Table table, Table::Open(memory));
  return table.Visit(visit);
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes tables of sorted keys and values in LevelDB's format. A bundle's index is such a
// table, and so is a V1 checkpoint (FORMAT.md). LevelDB's own builder writes them. LevelDB's reader
// is not used, because it allocates as much memory as a hostile file requests. The reader here
// checks offsets, lengths and checksums before it uses them, and needs memory in proportion to the
// file.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/env.h"
#include "core/base/status.h"

namespace penstock {

// The longest key, in bytes; longer ones are errors.
inline constexpr size_t kKeyBytesMax = 64 << 10;

// A table in a file, which must outlive this object. DataLoss says what is wrong and where. Blocks
// are parsed only after their checksums have been verified. Thread-safe.
class Table {
 public:
  using Visitor = absl::FunctionRef<Status(string_view key, string_view value)>;

  // Reads the index of the blocks.
  static StatusOr<Table> Open(const RandomAccessFile& file);

  // Calls visit for every entry, in ascending order of keys. The views are valid during the call.
  Status Visit(Visitor visit) const;
  // Reads the block that may contain `key`, and calls use(value) with the key's value; NotFound if
  // there is no such key.
  Status Find(string_view key, absl::FunctionRef<Status(string_view)> use) const;

 private:
  struct BlockHandle {
    int64_t offset = 0;
    int64_t size = 0;  // without the type byte and the checksum
  };
  struct DataBlock {
    std::string last_key;  // the block's last key, or a key between it and the next block's first
    BlockHandle handle;
  };

  explicit Table(const RandomAccessFile& file) : file_(&file) {}
  static bool TakeHandle(string_view* bytes, BlockHandle* handle);
  Status ReadIndex();
  Status AddDataBlock(string_view last_key, string_view handle);
  Status ReadBlock(const BlockHandle& handle, string_view what, std::string* contents) const;

  const RandomAccessFile* file_;
  int64_t blocks_end_ = 0;  // the end of all blocks, the start of the footer
  std::vector<DataBlock> blocks_;
};

// Does the same as Table::Visit for a file in memory.
Status VisitTable(string_view file, Table::Visitor visit);

// Returns the contents of a file that holds `entries`. InvalidArgument if a key is longer than
// kKeyBytesMax.
StatusOr<std::string> BuildTable(const std::map<std::string, std::string>& entries);

}  // namespace penstock

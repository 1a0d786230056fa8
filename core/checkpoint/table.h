// SPDX-License-Identifier: Apache-2.0
//
// Tables of sorted keys and values in LevelDB's format, which a bundle's index is, and a whole V1
// checkpoint (FORMAT.md). LevelDB's own builder writes them. The reader is ours, because LevelDB's
// allocates whatever a hostile file asks for: this one checks every offset, length and checksum
// before it follows it, and needs memory in proportion to the file.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/env.h"
#include "core/base/status.h"

namespace penstock {

// Keys of tables; longer ones are refused.
inline constexpr size_t kKeyBytesMax = 64 << 10;

// A table in a file, which must outlive it. DataLoss says what is wrong and where; nothing of a
// block is looked at before its checksum has been verified. Thread-safe.
class Table {
 public:
  using Visitor = absl::FunctionRef<Status(string_view key, string_view value)>;

  // Reads the index of blocks.
  static StatusOr<Table> Open(const RandomAccessFile& file);

  // Calls visit for every entry, in ascending order of keys. The views end with the call.
  Status Visit(Visitor visit) const;
  // Calls use(value) for one key, having read one block; NotFound where there is no such key.
  Status Find(string_view key, absl::FunctionRef<Status(string_view)> use) const;

 private:
  struct BlockHandle {
    int64_t offset = 0;
    int64_t size = 0;  // without kind and checksum
  };
  struct DataBlock {
    std::string last_key;  // or one between it and the first of the next block
    BlockHandle handle;
  };

  explicit Table(const RandomAccessFile& file) : file_(&file) {}
  static bool TakeHandle(string_view* bytes, BlockHandle* handle);
  Status ReadIndex();
  Status AddDataBlock(string_view last_key, string_view handle);
  Status ReadBlock(const BlockHandle& handle, string_view what, std::string* contents) const;

  const RandomAccessFile* file_;
  int64_t blocks_end_ = 0;  // of all blocks: where the footer begins
  std::vector<DataBlock> blocks_;
};

// Table::Visit for a file that is in memory.
Status VisitTable(string_view file, Table::Visitor visit);

// The file that holds `entries`. InvalidArgument where a key is longer than kKeyBytesMax.
StatusOr<std::string> BuildTable(const std::map<std::string, std::string>& entries);

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include <leveldb/env.h>
#include <leveldb/options.h>
#include <leveldb/table_builder.h>

#include "core/checkpoint/table.h"

namespace penstock {
namespace {

class StringFile final : public leveldb::WritableFile {
 public:
  leveldb::Status Append(const leveldb::Slice& data) override {
    contents.append(data.data(), data.size());
    return leveldb::Status::OK();
  }
  leveldb::Status Close() override { return leveldb::Status::OK(); }
  leveldb::Status Flush() override { return leveldb::Status::OK(); }
  leveldb::Status Sync() override { return leveldb::Status::OK(); }

  std::string contents;
};

}  // namespace

StatusOr<std::string> BuildTable(const std::map<std::string, std::string>& entries) {
  leveldb::Options options;
  // No compression, because the oldest readers cannot decompress.
  options.compression = leveldb::kNoCompression;
  options.block_size = 256 << 10;
  StringFile file;
  leveldb::TableBuilder builder(options, &file);
  for (const auto& [key, value] : entries) {
    if (key.size() > kKeyBytesMax) {
      builder.Abandon();
      return InvalidArgument("a key has ", key.size(), " bytes ('", key.substr(0, 40),
                             "...'), at most ", kKeyBytesMax, " are read");
    }
    builder.Add(key, value);
  }
  const leveldb::Status status = builder.Finish();
  if (!status.ok()) return Internal("building a table: ", status.ToString());
  return std::move(file.contents);
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// RecordWriter: writes one TFRecord file (FORMAT.md). Replaces an existing file.
//
// The writer collects and compresses records in memory: the file is complete only after Close has
// returned OK. After Flush, readers of the file can read all records written so far. After an
// error, every call returns this error. One owner at a time.
#pragma once

#include <memory>
#include <string>

#include "core/base/env.h"
#include "core/record/compression.h"

namespace penstock {

class RecordWriter {
 public:
  static StatusOr<std::unique_ptr<RecordWriter>> Create(
      Env& env, const std::string& path, Compression compression = Compression::kNone);
  virtual ~RecordWriter() = default;

  Status Write(string_view record);
  Status Flush();
  // Must be called: without it, records since the last Flush are lost.
  Status Close();

 protected:
  explicit RecordWriter(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}

  enum class Until { kBlock, kFlush, kEnd };
  // Writes `*bytes` to the file, and clears it.
  virtual Status Emit(std::string* bytes, Until until) = 0;

  const std::unique_ptr<WritableFile> file_;

 private:
  Status EmitPending(Until until);

  std::string pending_;
  Status error_;
};

}  // namespace penstock

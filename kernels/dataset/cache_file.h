// SPDX-License-Identifier: Apache-2.0
//
// CacheWriter, CacheReader: the elements of a dataset in a file (CacheDataset with a file name).
//
// FILENAME.cache is a file of records (core/record/FORMAT.md, with checksums). The first record
// describes the dataset; then follows one record for each component of each element: "c" and a
// serialized TensorProto; the last record is "e" and the number of elements. Until it is complete,
// the file has another name, and FILENAME.lockfile names its writer.
//
// One caller at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "core/base/env.h"
#include "core/record/record_reader.h"
#include "core/record/record_writer.h"
#include "kernels/dataset/dataset.h"

namespace penstock {

// Returns whether there is a complete cache.
bool CacheExists(Env& env, const std::string& filename);

class CacheWriter {
 public:
  // AlreadyExists if there is a lockfile: another iterator is writing the cache, or a process ended
  // while it wrote the cache. Borrows `env`.
  static StatusOr<std::unique_ptr<CacheWriter>> Create(Env& env, const std::string& filename,
                                                       const ElementSpec& spec);
  // Removes the lockfile, and the unfinished file unless Finish has returned OK.
  ~CacheWriter();

  // InvalidArgument if the element cannot be in a file, such as a dataset.
  Status Write(const Element& element);
  // Makes the cache visible to readers. After a power loss it may be damaged, which readers report.
  Status Finish();

 private:
  CacheWriter(Env& env, std::string filename, std::string token)
      : env_(env), filename_(std::move(filename)), token_(std::move(token)) {}
  Status Lock();
  std::string LockPath() const { return filename_ + ".lockfile"; }
  std::string PartialPath() const { return StrCat(filename_, ".cache.", token_); }

  Env& env_;
  const std::string filename_;
  const std::string token_;  // an unfinished file's name, which no other writer has
  std::unique_ptr<RecordWriter> records_;
  bool locked_ = false;
  int64_t elements_ = 0;
};

class CacheReader {
 public:
  // The position of an element; a new reader can start there.
  struct Position {
    int64_t offset = 0;  // 0: the first element
    int64_t elements = 0;
  };
  // FailedPrecondition if the cache belongs to a dataset with other types or shapes.
  static StatusOr<std::unique_ptr<CacheReader>> Open(Env& env, const std::string& filename,
                                                     const ElementSpec& spec,
                                                     const Position& position);
  // Reads the next element, or sets `*end`. DataLoss if the file is damaged or incomplete.
  Status Read(Element* element, bool* end);
  Position position() const { return {.offset = records_.offset(), .elements = elements_}; }

 private:
  CacheReader(std::string path, ElementSpec spec, RecordReader records)
      : path_(std::move(path)), spec_(std::move(spec)), records_(std::move(records)) {}
  Status CheckHeader();
  StatusOr<std::string> Record();

  const std::string path_;
  const ElementSpec spec_;
  RecordReader records_;
  int64_t elements_ = 0;
};

}  // namespace penstock

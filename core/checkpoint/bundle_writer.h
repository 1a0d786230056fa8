// SPDX-License-Identifier: Apache-2.0
//
// BundleWriter: writes one checkpoint in TensorFlow's V2 format (FORMAT.md).
//
//   ASSIGN_OR_RETURN(auto writer, BundleWriter::Create(env, "/ckpt/model-100"));
//   RETURN_IF_ERROR(writer->Add("w", w));
//   RETURN_IF_ERROR(writer->Finish());
//
// The writer writes files under temporary names, syncs them, and renames them, the index last. A
// writer that fails, or is destroyed unfinished, removes its files. It removes an older checkpoint
// with the same prefix only when the new one is safely on the disk. After an error of the disk,
// every call returns this error.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/base/env.h"
#include "core/base/status.h"
#include "core/checkpoint/bundle_entry.h"
#include "core/checkpoint/checkpoint_writer.h"
#include "core/tensor/tensor.h"

namespace penstock {

class BundleWriter final : public CheckpointWriter {
 public:
  // Begins a checkpoint, and creates its directory if it does not exist. InvalidArgument if
  // `prefix` is empty or ends in '/'. `env` must outlive the writer.
  static StatusOr<std::unique_ptr<BundleWriter>> Create(Env& env, std::string prefix);
  ~BundleWriter() override;

  // InvalidArgument also if the name begins with a zero byte, because the keys of slices begin with
  // one.
  Status Add(string_view name, const Tensor& tensor) override;
  Status AddSlice(string_view name, const Shape& whole, const TensorSlice& slice,
                  const Tensor& tensor) override;
  // Publishes the checkpoint. InvalidArgument if readers would reject it, because slices overlap or
  // a key would be longer than kKeyBytesMax (table.h).
  Status Finish() override;

 private:
  BundleWriter(Env& env, std::string prefix) : env_(env), prefix_(std::move(prefix)) {}
  Status Write(const std::string& key, const Tensor& tensor);
  Status CloseData();

  Env& env_;
  const std::string prefix_;
  std::string temporary_;               // path of the data file; empty: no file to remove
  std::unique_ptr<WritableFile> data_;  // null once closed
  int64_t offset_ = 0;
  std::map<std::string, BundleEntry> entries_;
  Status status_;
};

}  // namespace penstock

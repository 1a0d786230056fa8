// SPDX-License-Identifier: Apache-2.0
//
// BundleWriter: writes one checkpoint in TensorFlow's V2 format (FORMAT.md).
//
//   ASSIGN_OR_RETURN(auto writer, BundleWriter::Create(env, "/ckpt/model-100"));
//   RETURN_IF_ERROR(writer->Add("w", w));
//   RETURN_IF_ERROR(writer->Finish());
//
// Nothing is visible before Finish, and then all of it is: files are written under temporary names,
// synced, and renamed, the index last. A writer that fails, or is destroyed unfinished, removes its
// files. A checkpoint that stood under the same prefix disappears only when the new one is safely
// on the disk. Single-threaded. Errors of the disk are sticky.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/base/env.h"
#include "core/base/status.h"
#include "core/checkpoint/bundle_entry.h"
#include "core/tensor/tensor.h"

namespace penstock {

class BundleWriter {
 public:
  // Makes the directory where it does not exist. `env` must outlive the writer.
  static StatusOr<std::unique_ptr<BundleWriter>> Create(Env& env, std::string prefix);
  ~BundleWriter();

  // InvalidArgument for an empty name, one that begins with a zero byte (such are the keys of
  // slices), one that was added before, or a type that cannot be saved.
  Status Add(string_view name, const Tensor& tensor);
  // The part `slice` of a tensor of shape `whole`. May be called for other parts of it, too.
  Status AddSlice(string_view name, const Shape& whole, const TensorSlice& slice,
                  const Tensor& tensor);

  // REQUIRES that it is called once, last. InvalidArgument where no reader would understand what
  // was added: slices that overlap, names of tens of KiB.
  Status Finish();

 private:
  BundleWriter(Env& env, std::string prefix) : env_(env), prefix_(std::move(prefix)) {}
  Status Write(const std::string& key, const Tensor& tensor);
  Status CloseData();

  Env& env_;
  const std::string prefix_;
  std::string temporary_;               // of the data file; empty: none to remove
  std::unique_ptr<WritableFile> data_;  // null once closed
  int64_t offset_ = 0;
  std::map<std::string, BundleEntry> entries_;
  Status status_;
};

}  // namespace penstock

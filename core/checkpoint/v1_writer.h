// SPDX-License-Identifier: Apache-2.0
//
// V1Writer: writes one file in TensorFlow's first checkpoint format (FORMAT.md), for programs that
// use this format. Keeps the contents in memory until Finish. A tensor or slice may have up to 2
// GiB.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/env.h"
#include "core/checkpoint/checkpoint_reader.h"
#include "core/checkpoint/checkpoint_writer.h"

namespace penstock {

class V1Writer final : public CheckpointWriter {
 public:
  // `env` must outlive the writer.
  V1Writer(Env& env, std::string path) : env_(env), path_(std::move(path)) {}

  // Unimplemented for types that the format does not support.
  Status Add(string_view name, const Tensor& tensor) override;
  Status AddSlice(string_view name, const Shape& whole, const TensorSlice& slice,
                  const Tensor& tensor) override;
  // Writes the file. NotFound if the directory does not exist; InvalidArgument if slices of a
  // tensor overlap, or if the list of tensors is larger than 2 GiB.
  Status Finish() override;

 private:
  struct Entry : SavedTensor {
    std::vector<TensorSlice> slices;
  };

  static Status CheckSlices(const std::string& name, const Entry& entry);

  Env& env_;
  const std::string path_;
  std::map<std::string, Entry> tensors_;
  std::map<std::string, std::string> table_;
};

}  // namespace penstock

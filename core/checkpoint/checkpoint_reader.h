// SPDX-License-Identifier: Apache-2.0
//
// CheckpointReader: reads the tensors of a checkpoint in either of TensorFlow's formats
// (FORMAT.md).
//
// A reader verifies every tensor before it returns the tensor. The files may be hostile, so a
// reader allocates memory for a tensor only if the file is large enough to hold it; in a V1 file,
// which may be compressed, a byte can hold up to 22 elements. Thread-safe. If the files are
// damaged, functions return a DataLoss that names file and tensor.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/env.h"
#include "core/base/status.h"
#include "core/checkpoint/tensor_slice.h"
#include "core/tensor/tensor.h"

namespace penstock {

struct SavedTensor {
  DType dtype = DType::kInvalid;
  Shape shape;
};

class CheckpointReader {
 public:
  virtual ~CheckpointReader() = default;

  // Returns the prefix with which the checkpoint was opened.
  const std::string& prefix() const { return prefix_; }
  // Returns the names of all tensors in ascending order.
  virtual std::vector<std::string> names() const = 0;
  // Returns the type and the shape of a tensor. NotFound if there is no tensor with that name.
  virtual StatusOr<SavedTensor> Describe(string_view name) const = 0;
  // Reads a slice of a tensor. NotFound if there is no such tensor, or if it was saved in slices
  // that do not cover `slice`.
  virtual StatusOr<Tensor> ReadSlice(string_view name, const TensorSlice& slice,
                                     Allocator& allocator) const = 0;

  // Returns the whole tensor if `shape_and_slice` is empty, else the slice that it describes in the
  // form of RestoreV2: "4 3 0,2:-". InvalidArgument if the saved tensor's type is not `dtype`, or
  // its shape differs from the one in the text.
  StatusOr<Tensor> ReadAs(DType dtype, string_view name, string_view shape_and_slice,
                          Allocator& allocator) const;

 protected:
  explicit CheckpointReader(std::string prefix) : prefix_(std::move(prefix)) {}
  Status KeyNotFound(string_view name) const;

 private:
  const std::string prefix_;
};

// Opens the V2 checkpoint with that prefix. If there is none, opens the V1 checkpoint whose files
// match `prefix` as a pattern. NotFound if there is neither. `env` must outlive the reader.
StatusOr<std::unique_ptr<CheckpointReader>> OpenCheckpoint(Env& env, const std::string& prefix);

}  // namespace penstock

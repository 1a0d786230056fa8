// SPDX-License-Identifier: Apache-2.0
//
// BlockOperand: a tensor that broadcasts to a larger one, read block by block.
//
// Element i of the larger tensor belongs to element (i / each) % period of the operand. This covers
// scalars, tensors of equal shapes, rows such as a bias (each = 1), and columns (period * each =
// the number of all elements), but not an operand with two separate broadcast dimensions between
// others. A value.
#pragma once

#include <cstdint>
#include <optional>

#include "core/op/block_kernel.h"
#include "core/tensor/tensor.h"

namespace penstock {

class BlockOperand {
 public:
  // Returns the operand; nullopt if its shape does not broadcast to `output` in one of these ways.
  static std::optional<BlockOperand> Make(const Tensor& tensor, const Shape& output);

  bool is_full() const { return is_full_; }
  // Returns the number of consecutive elements after which the operand starts again, or changes;
  // 0: blocks of any length are equally good.
  int64_t row() const { return is_full_ || period_ == 1 ? 0 : each_ == 1 ? period_ : each_; }
  // Scratch memory for the elements of a block, and the row that it holds.
  struct Scratch {
    char* data = nullptr;
    int64_t first = -1;  // position of the first element in the operand
    int64_t n = 0;
  };
  // Returns the elements for [first, first + n). May copy them to `scratch`, which has room for n
  // elements, if it does not hold them already.
  BlockInput At(int64_t first, int64_t n, Scratch* scratch) const;

 private:
  // Write n elements to `to`. The first one is the operand's element `at`; RepeatElements writes it
  // `left` times.
  void RepeatRow(int64_t at, int64_t n, char* to) const;
  void RepeatElements(int64_t at, int64_t left, int64_t n, char* to) const;
  template <class T>
  void FillRuns(int64_t at, int64_t left, int64_t n, char* to) const;

  const char* data_ = nullptr;
  int64_t size_ = 0;  // bytes of an element
  int64_t each_ = 1, period_ = 1;
  bool is_full_ = false;
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// Code shared by datasets that combine several elements of their input into one.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernels/dataset/dataset.h"

namespace penstock {

// The base of iterators that have one input and read the settings of their dataset, an object of
// class D.
template <class D>
class IteratorOf : public UnaryIterator {
 public:
  IteratorOf(std::shared_ptr<const D> dataset, IteratorPtr input)
      : UnaryIterator(std::move(input)), dataset_(std::move(dataset)) {}

 protected:
  const D& dataset() const { return *dataset_; }

 private:
  const std::shared_ptr<const D> dataset_;
};
// Returns an iterator of type I, a subclass of IteratorOf<D>. Returns an error if the input's
// iterator cannot be made.
template <class I, class D>
StatusOr<IteratorPtr> NewIteratorOf(const D* dataset, const IteratorContext& ctx) {
  ASSIGN_OR_RETURN(IteratorPtr input, dataset->input().NewIterator(ctx));
  return std::make_unique<I>(Dataset::Self(dataset), std::move(input));
}

// The number of elements in a batch, and whether a smaller last batch is dropped.
struct BatchSize {
  int64_t elements = 0;
  bool drop_remainder = false;

  // Returns the cardinality of a dataset of batches of `count` elements.
  int64_t BatchesOf(int64_t count) const {
    if (count < 0) return count;
    return count / elements + (!drop_remainder && count % elements != 0);
  }
  // Reads the elements of the next batch. Sets `*end` if there is none. `check` is called with each
  // element; its error ends the reading.
  Status Read(const IteratorContext& ctx, DatasetIterator& input,
              absl::FunctionRef<Status(const Element&)> check, std::vector<Element>* batch,
              bool* end) const;
};

}  // namespace penstock

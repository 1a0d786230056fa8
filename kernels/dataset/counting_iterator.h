// SPDX-License-Identifier: Apache-2.0
//
// CountingIterator: the iterator of a dataset that computes each element from its number. The
// number of the next element is its only state.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "kernels/dataset/dataset.h"
#include "kernels/dataset/iterator_state.h"

namespace penstock {

template <class D>
class CountingIterator : public DatasetIterator {
 public:
  explicit CountingIterator(std::shared_ptr<const D> dataset) : dataset_(std::move(dataset)) {}
  bool NeverWaits() const override { return true; }
  Status Save(const IteratorContext&, StateWriter* writer) override {
    writer->Label(dataset_->Name());
    writer->Int(next_);
    return OkStatus();
  }
  Status Restore(const IteratorContext&, StateReader* reader) override {
    RETURN_IF_ERROR(reader->Label(dataset_->Name()));
    ASSIGN_OR_RETURN(next_, reader->Int());
    return OkStatus();
  }

 protected:
  const std::shared_ptr<const D> dataset_;
  int64_t next_ = 0;
};

}  // namespace penstock

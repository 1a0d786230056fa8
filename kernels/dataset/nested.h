// SPDX-License-Identifier: Apache-2.0
//
// NestedIterator: the iterator of a dataset that a function made from one element. It keeps the
// element, because Restore calls the function with the element again.
#pragma once

#include <memory>
#include <utility>

#include "kernels/dataset/captured_function.h"
#include "kernels/dataset/dataset.h"

namespace penstock {

// One caller at a time.
class NestedIterator {
 public:
  bool open() const { return iterator_ != nullptr; }
  Status Open(const IteratorContext& ctx, const ElementCall& function, Element element) {
    ASSIGN_OR_RETURN(const DatasetPtr dataset, function.NewDataset(ctx, element));
    ASSIGN_OR_RETURN(iterator_, dataset->NewIterator(ctx));
    element_ = std::move(element);
    return OkStatus();
  }
  void Close() {
    iterator_ = nullptr;
    element_.clear();
  }
  // Reads the next element of the dataset. REQUIRES: open().
  Status GetNext(const IteratorContext& ctx, Element* element, bool* end) {
    return iterator_->GetNext(ctx, element, end);
  }

  Status Save(const IteratorContext& ctx, StateWriter* writer) {
    writer->Int(open());
    if (!open()) return OkStatus();
    writer->Values(element_);
    return iterator_->Save(ctx, writer);
  }
  // `args` has the types of the elements of which the function makes datasets.
  Status Restore(const IteratorContext& ctx, const ElementCall& function, const ElementSpec& args,
                 StateReader* reader) {
    Close();
    ASSIGN_OR_RETURN(const int64_t was_open, reader->Int(0, 1));
    if (was_open == 0) return OkStatus();
    ASSIGN_OR_RETURN(Element element, reader->ElementOf(args));
    RETURN_IF_ERROR(Open(ctx, function, std::move(element)));
    return iterator_->Restore(ctx, reader);
  }

 private:
  Element element_;
  IteratorPtr iterator_;
};

}  // namespace penstock

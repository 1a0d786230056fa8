// SPDX-License-Identifier: Apache-2.0
//
// ElementStore: the elements of a queue; it decides the order in which they are taken. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "core/tensor/tensor.h"
#include "kernels/random/philox.h"

namespace penstock {

// A tuple of tensors, one per component.
using Element = absl::InlinedVector<Tensor, 1>;

class ElementStore {
 public:
  virtual ~ElementStore() = default;
  virtual int64_t size() const = 0;
  virtual void Put(Element element) = 0;
  // Removes and returns the next element. REQUIRES: size() > 0.
  virtual Element Take() = 0;
  // Undoes the last calls of Take. `elements` are the elements taken last, in the order in which
  // they were taken.
  virtual void PutBack(std::vector<Element> elements) = 0;
};

// Returns a first-in, first-out store.
std::unique_ptr<ElementStore> NewFifoStore();
// Returns a store that takes any element with equal probability, drawn from `numbers`.
std::unique_ptr<ElementStore> NewRandomStore(PhiloxNumbers numbers);
// Returns a store that takes the element with the least component 0, an int64 scalar; among equals,
// the one put in first.
std::unique_ptr<ElementStore> NewPriorityStore();

}  // namespace penstock

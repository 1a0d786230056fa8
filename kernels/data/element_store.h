// SPDX-License-Identifier: Apache-2.0
//
// ElementStore: in which order a queue gives back what was put in. Not thread-safe.
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
  // The next one. REQUIRES size() > 0.
  virtual Element Take() = 0;
  // Elements that were just taken, in that order, as if they had not been.
  virtual void PutBack(std::vector<Element> elements) = 0;
};

// First in, first out.
std::unique_ptr<ElementStore> NewFifoStore();
// Any of them with equal probability, as `numbers` decide.
std::unique_ptr<ElementStore> NewRandomStore(PhiloxNumbers numbers);
// The least first: by component 0, an int64 scalar; of equal ones the first that came in.
std::unique_ptr<ElementStore> NewPriorityStore();

}  // namespace penstock

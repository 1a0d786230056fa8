// SPDX-License-Identifier: Apache-2.0
//
// ElementHolder: the interface through which monitoring reads a resource that holds elements, such
// as a queue. Such resources implement it in addition to Resource.
#pragma once

#include <cstdint>

namespace penstock {

struct ElementCount {
  int64_t size = 0;
  int64_t capacity = -1;  // < 0: no limit
  bool closed = false;    // true if no more elements can be added
  // The numbers of operations that wait: puts for free space, takes for elements.
  int64_t waiting_puts = 0;
  int64_t waiting_takes = 0;
};

class ElementHolder {
 public:
  virtual ~ElementHolder() = default;
  // Must be thread-safe and quick.
  virtual ElementCount element_count() const = 0;
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// ElementHolder: a resource that elements enter and leave, such as a queue, as monitoring sees it.
// Resources implement it beside Resource.
#pragma once

#include <cstdint>

namespace penstock {

struct ElementCount {
  int64_t size = 0;
  int64_t capacity = -1;  // < 0: no limit
  bool closed = false;    // nothing enters any more
  // Operations that wait for room, and for elements.
  int64_t waiting_puts = 0;
  int64_t waiting_takes = 0;
};

class ElementHolder {
 public:
  virtual ~ElementHolder() = default;
  // Thread-safe, and quick.
  virtual ElementCount element_count() const = 0;
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
//
// ResourceHandle: the element type of resource tensors, and the value on a ref edge. It names
// a resource of one device; inside its process it also points to the resource.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace penstock {

class Resource;  // core/op/resource.h

struct ResourceHandle {
  std::string device;     // "/job:ps/replica:0/task:0/device:CPU:0"
  std::string container;  // "localhost" unless the node says otherwise
  std::string name;
  std::string type;  // Resource::TypeName(), for errors
  struct Element {
    DType dtype = DType::kInvalid;
    PartialShape shape;
    bool operator==(const Element&) const = default;
  };
  std::vector<Element> elements;  // the contents of the resource, as far as known

  // Null in a handle from a message, until the store has resolved it by name.
  std::shared_ptr<Resource> resource;
};
static_assert(sizeof(ResourceHandle) == kResourceHandleBytes);

}  // namespace penstock

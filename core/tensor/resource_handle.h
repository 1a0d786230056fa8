// SPDX-License-Identifier: Apache-2.0
//
// ResourceHandle: the element type of resource tensors, and the value on a ref edge. It names
// a resource of one device; in the process of that device it also points to the resource.
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
  // Types and shapes of the resource's contents, as far as they are known.
  std::vector<Element> elements;

  // Null in a handle from a message; ResolveHandle (core/op/resource.h) then looks up the name.
  std::shared_ptr<Resource> resource;
};
static_assert(sizeof(ResourceHandle) == kResourceHandleBytes);

}  // namespace penstock

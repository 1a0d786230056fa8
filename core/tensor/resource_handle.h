// SPDX-License-Identifier: Apache-2.0
//
// ResourceHandle: the element of a resource tensor, and what travels on a reference edge: a name
// for state that lives on one device, with the state itself attached while inside its process.
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
  std::string type;  // what Resource::TypeName() says, for errors
  struct Element {
    DType dtype = DType::kInvalid;
    PartialShape shape;
    bool operator==(const Element&) const = default;
  };
  std::vector<Element> elements;  // what the resource holds, as far as known

  // Null in a handle that came over the wire, until the store has resolved it by name.
  std::shared_ptr<Resource> resource;
};
static_assert(sizeof(ResourceHandle) == kResourceHandleBytes);

}  // namespace penstock

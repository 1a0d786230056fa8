// SPDX-License-Identifier: Apache-2.0
//
// Results of a transport's reader: tensors that have arrived completely, and steps that the
// producer or the reader has refused.
#pragma once

#include <cstdint>

#include "core/base/status.h"
#include "core/runtime/rendezvous.h"
#include "core/tensor/tensor.h"

namespace penstock {

struct ReceivedTensor {
  int64_t step_id;
  HashedKey key;
  Tensor value;
  bool is_dead;
};

struct RefusedStep {
  int64_t step_id;
  Status why;
};

}  // namespace penstock

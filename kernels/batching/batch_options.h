// SPDX-License-Identifier: Apache-2.0
//
// BatchOptions: the attributes of Batch and BatchFunction that say how batches are formed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/op/kernel.h"

namespace penstock {

struct BatchOptions {
  int64_t parallel_max = 1;      // batches processed at the same time; 0: one per thread
  int64_t rows_max = 1;          // maximum rows of a batch
  int64_t request_rows_max = 1;  // maximum rows of one execution of a node
  int64_t waiting_max = 1;       // maximum number of batches that wait in each queue
  int64_t timeout_ns = 0;        // how long a batch waits for more rows
  std::vector<int64_t> allowed;  // sizes to which batches are padded, increasing; empty: any size
  bool split = false;            // true: an execution's rows may be spread over several batches
  // True: a batch gives rows back to the queue if that leaves it with an allowed size.
  bool batch_down = false;
  bool operator==(const BatchOptions&) const = default;

  // Returns the least allowed size of at least `rows`. REQUIRES: rows <= rows_max.
  int64_t PaddedRows(int64_t rows) const;
  std::string ToString() const;

  // Reads the attributes that both ops have. InvalidArgument names the attribute that is wrong.
  static StatusOr<BatchOptions> Read(const KernelInit& node);
  // Like Read, and also reads the attributes that only BatchFunction has.
  static StatusOr<BatchOptions> ReadForFunction(const KernelInit& node);
};

}  // namespace penstock

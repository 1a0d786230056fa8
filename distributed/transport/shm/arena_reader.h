// SPDX-License-Identifier: Apache-2.0
//
// ArenaReader: the consumer's end of a ring in shared memory; it finds large
// tensors in the arena.
//
// Not thread-safe.
#pragma once

#include <memory>
#include <utility>

#include "distributed/transport/records/tensor_record_reader.h"
#include "distributed/transport/shm/received_memory.h"

namespace penstock {

class ArenaReader final : public TensorRecordReader {
 public:
  // `memory`: the arena. `landing` is borrowed.
  ArenaReader(const RingMemory& ring, std::shared_ptr<ReceivedMemory> memory, Landing& landing)
      : TensorRecordReader(ring, landing), memory_(std::move(memory)) {}

 private:
  Status ReadElsewhere(TensorRecord record, bool wanted, Received* received) override;

  const std::shared_ptr<ReceivedMemory> memory_;
};

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/shm/arena_reader.h"

#include <cstring>

namespace penstock {

Status ArenaReader::ReadElsewhere(TensorRecord record, bool wanted, Received* received) {
  const TensorFields& fields = record.fields;
  const size_t bytes = fields.total_bytes;
  ASSIGN_OR_RETURN(const char* const from, memory_->Find(fields.address, bytes));
  if (!wanted) {
    memory_->Free(fields.address);
    return OkStatus();
  }
  bool in_place = false;
  StatusOr<IncomingTensor> tensor = memory_->Begin(fields.step_id, record.key, record.header(),
                                                   fields.address, landing_, &in_place);
  if (!in_place) {
    if (tensor.ok()) std::memcpy(tensor->Next(bytes), from, bytes);
    memory_->Free(fields.address);
  }
  Finish(record, std::move(tensor), received);
  return OkStatus();
}

}  // namespace penstock

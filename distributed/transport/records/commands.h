// SPDX-License-Identifier: Apache-2.0
//
// Writes and reads the ring of commands that a consumer sends to its producer.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/status.h"
#include "distributed/transport/loop/ring.h"
#include "distributed/transport/records/tensor_record.h"

namespace penstock {

// Writes as many of the `waiting` commands as fit into the ring, and removes them from `waiting`.
// DataLoss if the reader's position is wrong (RingWriter::Room).
Status WriteCommands(RingWriter& ring, std::deque<Command>* waiting);

// Reads all commands that `consumer` has sent. Appends the subscribed steps, and calls `done`
// with the value of each kDone; `done` returns false if no such value is outstanding. DataLoss if
// the commands are malformed. Returns whether there were any commands.
StatusOr<bool> ReadCommands(RingReader& ring, const std::string& consumer,
                            std::vector<int64_t>* subscribed,
                            absl::FunctionRef<bool(uint64_t)> done);

}  // namespace penstock

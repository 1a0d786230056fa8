// SPDX-License-Identifier: Apache-2.0
//
// The ring of commands, from a consumer to its producer.
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

// Writes as many of `waiting` as there is room for, and removes them. DataLoss: see RingWriter.
Status WriteCommands(RingWriter& ring, std::deque<Command>* waiting);

// Reads all commands that `consumer` has sent. Appends the steps that it subscribes to, and calls
// `done` with the value of each kDone, which returns false if there is no such value. DataLoss if
// the commands make no sense. Returns whether there were any.
StatusOr<bool> ReadCommands(RingReader& ring, const std::string& consumer,
                            std::vector<int64_t>* subscribed,
                            absl::FunctionRef<bool(uint64_t)> done);

}  // namespace penstock

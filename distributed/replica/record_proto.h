// SPDX-License-Identifier: Apache-2.0
//
// Converts records of a StateLog to and from messages between the replicas of a parameter
// server.
//
// Free functions without state.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/op/state_log.h"
#include "distributed/replica/value_pieces.h"
#include "proto/penstock/replica.pb.h"

namespace penstock {

// A change that owns its strings. The values share buffers with the resources.
struct KeptChange {
  struct Part {
    std::string container, name, type, action;
    uint64_t id = 0;
    int64_t version = 0;
    std::vector<Tensor> values;
  };
  uint64_t position = 0;
  int64_t step_id = 0;
  uint64_t incarnation = 0;
  std::string device, node;
  std::vector<Part> parts;

  // Returns the size of the elements of all values, in bytes.
  int64_t bytes() const;
};

// Writes `change` to `*record`, without the elements of values that travel in pieces of
// `piece_bytes`: their pieces have to be sent before. Returns ResourceExhausted, or the error of
// a value that cannot be sent to another process; both name the resource.
Status RecordToProto(const KeptChange& change, wire::StateRecord* record,
                     int64_t piece_bytes = kPieceBytes);

// Reads a record that another process has sent, and takes the values that travelled in pieces from
// `*pieces`. `*bytes_left` limits the bytes of the values that the record itself holds; subtracts
// their size from it. InvalidArgument or ResourceExhausted name the resource and the value.
StatusOr<KeptChange> RecordFromProto(const wire::StateRecord& record, int64_t* bytes_left,
                                     PieceReader* pieces);

// Returns `change` in the form that StateReplayer::Apply takes. Fills `*parts`; the result
// borrows from `change` and `*parts`.
StateChange BorrowChange(const KeptChange& change, std::vector<ResourceChange>* parts);

}  // namespace penstock

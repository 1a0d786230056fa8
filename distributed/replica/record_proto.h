// SPDX-License-Identifier: Apache-2.0
//
// Records of a StateLog as messages between the replicas of a parameter server.
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

// A change with strings of its own. The values share buffers with the resources.
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

// Writes `change` to `*record`, but for the elements of values that travel in pieces of
// `piece_bytes`: they have to be sent before. Returns ResourceExhausted, or the error of a value
// that cannot be sent to another process; both name the resource.
Status RecordToProto(const KeptChange& change, wire::StateRecord* record,
                     int64_t piece_bytes = kPieceBytes);

// Reads a record that comes from another process, and takes its values that travelled in pieces
// from `*pieces`. `*bytes_left` bounds the memory of the other values, whose size is taken off it.
// InvalidArgument or ResourceExhausted name the resource and the value.
StatusOr<KeptChange> RecordFromProto(const wire::StateRecord& record, int64_t* bytes_left,
                                     PieceReader* pieces);

// Returns `change` in the form that StateReplayer::Apply takes. The result borrows from `change`
// and from `*parts`, which is filled.
StateChange BorrowChange(const KeptChange& change, std::vector<ResourceChange>* parts);

}  // namespace penstock

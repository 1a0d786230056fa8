// SPDX-License-Identifier: Apache-2.0
//
// The upload of a graph that is too large for one message: from a client to its master by several
// calls of ExtendSession, and from a master to a worker by several calls of RegisterGraph.
//
// Each call carries one GraphDef of core/graph/graph_pieces.h, with a stamp: an additional last
// node, of the pseudo op _UploadStamp, with the upload's id, the GraphDef's number and a checksum.
// GraphUpload makes the GraphDefs; GraphUploads collects them in the task that receives them. The
// calls are made one after the other. The last GraphDef contains the graph's nodes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/graph/graph_pieces.h"

namespace penstock {

class GraphUpload {
 public:
  // The default limits of uploads. A piece of this size fits into a message whatever the task's
  // --max_message_bytes, and is copied within the CPU's caches.
  static constexpr PieceLimits kLimits = {
      // Leaves room for the other fields of a request.
      .whole_bytes_max = INT32_MAX - (1 << 20),
      .piece_bytes_max = 1 << 20,
      .constant_bytes_min = 64 << 10};

  // Uploads the nodes from `first_id` on. `id`: a random number, which tells this upload from
  // earlier ones of the same graph. Borrows the graph.
  GraphUpload(const Graph& graph, const PieceLimits& limits, uint64_t id, int first_id = 0)
      : pieces_(graph, limits, first_id), id_(id) {}

  // Returns whether there is only one GraphDef, which has no stamp: the same as that of
  // ExportGraph.
  bool whole() const { return pieces_.whole(); }
  // Writes the next GraphDef to `def`. Returns false if there are no more.
  bool Next(tensorflow::GraphDef* def);

 private:
  GraphPieces pieces_;
  const uint64_t id_;
  int64_t number_ = 0;  // of the next GraphDef
};

// The uploads that a task is receiving. Any error ends the upload. Does not trust the GraphDefs.
// Thread-safe.
class GraphUploads {
 public:
  static constexpr int64_t kIdleNanos = 60'000'000'000;
  static constexpr size_t kUploadsMax = 1'000;
  // Smaller constants travel with the nodes. Larger ones are charged to the task's memory limit.
  static constexpr int64_t kConstantBytesMin = 32 << 10;
  static constexpr size_t kNameBytesMax = 32 << 10;

  explicit GraphUploads(Env& env) : env_(env) {}

  // Returns whether the GraphDef has a stamp.
  static bool IsPart(const tensorflow::GraphDef& def);
  // Takes the next GraphDef of an upload, and removes its stamp. `session`: the handle of the
  // session; `graph`: a name of the graph in it. A GraphDef with the number 0 begins an upload, and
  // drops an earlier one of the same graph. Returns null until the last GraphDef, with which it
  // returns the constants.
  //
  // InvalidArgument if a GraphDef is missing, came twice, belongs to another upload or is
  // malformed; DataLoss if its checksum is wrong; Aborted if the upload is not known, because it
  // was dropped; ResourceExhausted if this task has no memory for a constant, or receives
  // kUploadsMax uploads.
  StatusOr<std::unique_ptr<ConstantPieces>> Add(const std::string& session,
                                                const std::string& graph,
                                                tensorflow::GraphDef* def);
  // Drops the uploads of a session.
  void Drop(const std::string& session);
  // Drops the uploads of all sessions for which no GraphDef has arrived for kIdleNanos.
  void DropIdle();
  // Returns the number of uploads.
  size_t size() const;

 private:
  struct Stamp;
  struct Upload {
    uint64_t id = 0;
    int64_t next = 0;  // number of the GraphDef that comes next
    std::unique_ptr<ConstantPieces> constants;
    int64_t last_ns = 0;  // when the last GraphDef of the session arrived
  };
  using Key = std::pair<std::string, std::string>;  // session and graph

  static StatusOr<Stamp> TakeStamp(tensorflow::GraphDef* def);
  StatusOr<Upload> Take(const Key& key, const Stamp& stamp);
  void Put(const Key& key, Upload upload);

  Env& env_;
  mutable Mutex mu_;
  // An upload is not in the map while its GraphDef is read.
  std::map<Key, Upload> uploads_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock

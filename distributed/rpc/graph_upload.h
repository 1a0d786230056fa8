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

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/graph/graph_pieces.h"
#include "core/tensor/caching_allocator.h"

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
  // The last GraphDef may take minutes to arrive: it may have 2 GiB.
  static constexpr int64_t kIdleNanos = 600'000'000'000;
  static constexpr size_t kUploadsMax = 1'000;
  static constexpr size_t kUploadsOfSessionMax = 250;
  // Smaller constants travel with the nodes. Larger ones are charged to the task's memory limit.
  static constexpr int64_t kConstantBytesMin = CachingAllocator::kSmallBytesMax + 1;
  // The size of the smallest piece, except the last one of a constant.
  static constexpr int64_t kPieceBytesMin = 64 << 10;
  static constexpr size_t kNameBytesMax = 32 << 10;

  // Names a graph that a task receives.
  struct Name {
    std::string session;  // its handle
    uint64_t graph = 0;   // of RegisterGraphRequest; 0 for the graph of a client
    std::string device;   // of the partition; "" for the graph of a client
    auto operator<=>(const Name&) const = default;
  };

  explicit GraphUploads(Env& env) : env_(env) {}

  // Returns whether the GraphDef has a stamp.
  static bool IsPart(const tensorflow::GraphDef& def);
  // Takes the next GraphDef of an upload, and removes its stamp. A GraphDef with the number 0
  // begins an upload, and drops an earlier one of the same name. Returns null until the last
  // GraphDef, with which it returns the constants.
  //
  // InvalidArgument if a GraphDef is missing, came twice, belongs to another upload, has too small
  // pieces or is malformed; DataLoss if its checksum is wrong; Aborted if the upload is not known,
  // because it was dropped; ResourceExhausted if this task has no memory for a constant, receives
  // kUploadsMax uploads, or kUploadsOfSessionMax of the session.
  StatusOr<std::unique_ptr<ConstantPieces>> Add(const Name& name, tensorflow::GraphDef* def);
  // Drop the uploads of a session, or of one graph of a session. If a GraphDef is being read, its
  // Add returns Aborted.
  void Drop(const std::string& session);
  void Drop(const std::string& session, uint64_t graph);
  // Drops the uploads of all graphs for which no GraphDef has arrived for kIdleNanos, and those of
  // sessions for which `exists` returns false. Returns whether there were any.
  bool DropIdle(absl::FunctionRef<bool(const std::string& session)> exists);
  // Returns the number of uploads.
  size_t size() const;

 private:
  struct Stamp;
  struct Upload {
    uint64_t id = 0;
    uint64_t serial = 0;                        // tells this upload from others of the same name
    int64_t next = 0;                           // number of the GraphDef that comes next
    std::unique_ptr<ConstantPieces> constants;  // in the map: null while a GraphDef is read
    int64_t last_ns = 0;                        // when the last GraphDef of the graph arrived
  };
  using Uploads = std::map<Name, Upload>;

  static StatusOr<Stamp> TakeStamp(tensorflow::GraphDef* def);
  static Status Read(const tensorflow::GraphDef& def, const Stamp& stamp, Upload* upload);
  // Returns the upload to which the GraphDef belongs, whose constants the caller may then change
  // without the lock, until Put or End.
  StatusOr<Upload> Take(const Name& name, const Stamp& stamp);
  Status Begin(const Name& name, const Stamp& stamp) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns the upload, or Aborted if it was dropped after Take.
  StatusOr<Uploads::iterator> Find(const Name& name, const Upload& upload)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status Put(const Name& name, Upload upload);
  Status End(const Name& name, const Upload& upload);

  Env& env_;
  mutable Mutex mu_;
  Uploads uploads_ ABSL_GUARDED_BY(mu_);
  uint64_t last_serial_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace penstock

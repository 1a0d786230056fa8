// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/graph_upload.h"

#include <iterator>
#include <vector>

#include "core/base/error_origin.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {
namespace {

constexpr char kStampOp[] = "_UploadStamp";
// The attributes of a stamp.
constexpr char kIdAttr[] = "upload", kNumberAttr[] = "number", kChecksumAttr[] = "crc32c";

// Returns the error that a GraphDef is not the one that comes next in its upload.
Status CheckNumber(int64_t number, int64_t expected) {
  if (number == expected) return OkStatus();
  if (number < expected) return InvalidArgument("part ", number, " of a graph came twice");
  return InvalidArgument("part ", expected, " of a graph is missing: part ", number,
                         " came instead");
}

Status CheckNames(const tensorflow::GraphDef& def) {
  for (const tensorflow::NodeDef& piece : def.node()) {
    if (piece.name().size() > GraphUploads::kNameBytesMax) {
      return InvalidArgument("a name of ", piece.name().size(), " bytes of a constant");
    }
  }
  return OkStatus();
}

}  // namespace

struct GraphUploads::Stamp {
  uint64_t id = 0;
  int64_t number = 0;
  uint32_t checksum = 0;
};

bool GraphUpload::Next(tensorflow::GraphDef* def) {
  if (!pieces_.Next(def)) return false;
  if (whole()) return true;
  const uint32_t checksum = ConstantPieces::Checksum(*def);
  tensorflow::NodeDef* const stamp = def->add_node();
  stamp->set_op(kStampOp);
  auto& attrs = *stamp->mutable_attr();
  attrs[kIdAttr].set_i(static_cast<int64_t>(id_));
  attrs[kNumberAttr].set_i(number_++);
  attrs[kChecksumAttr].set_i(checksum);
  return true;
}

bool GraphUploads::IsPart(const tensorflow::GraphDef& def) {
  return def.node_size() > 0 && def.node(def.node_size() - 1).op() == kStampOp;
}

StatusOr<GraphUploads::Stamp> GraphUploads::TakeStamp(tensorflow::GraphDef* def) {
  const tensorflow::NodeDef& node = def->node(def->node_size() - 1);
  const auto attr = [&](const char* name) { return node.attr().find(name); };
  const auto id = attr(kIdAttr), number = attr(kNumberAttr), checksum = attr(kChecksumAttr),
             end = node.attr().end();
  if (id == end || number == end || checksum == end) {
    return InvalidArgument("the stamp of a part of a graph lacks an attribute");
  }
  const Stamp stamp = {.id = static_cast<uint64_t>(id->second.i()),
                       .number = number->second.i(),
                       .checksum = static_cast<uint32_t>(checksum->second.i())};
  def->mutable_node()->RemoveLast();
  return stamp;
}

StatusOr<GraphUploads::Upload> GraphUploads::Take(const Key& key, const Stamp& stamp) {
  Upload taken;  // an upload that ends is destroyed after the lock is released
  MutexLock lock(mu_);
  const auto found = uploads_.find(key);
  if (stamp.number == 0) {
    if (found != uploads_.end()) {
      taken = std::move(found->second);
      uploads_.erase(found);
    } else if (uploads_.size() >= kUploadsMax) {
      return ResourceExhausted("this task is receiving ", kUploadsMax, " graphs in parts already");
    }
    return Upload{.id = stamp.id,
                  .constants = std::make_unique<ConstantPieces>(INT64_MAX, kConstantBytesMin)};
  }
  if (found == uploads_.end()) {
    return Aborted("part ", stamp.number,
                   " of a graph came, but this task does not have the earlier parts: it drops them "
                   "after an error, or if no part comes for ",
                   kIdleNanos / 1'000'000'000, " s");
  }
  if (found->second.id != stamp.id) {
    return InvalidArgument("part ", stamp.number, " of a graph belongs to another upload");
  }
  taken = std::move(found->second);
  uploads_.erase(found);
  RETURN_IF_ERROR(CheckNumber(stamp.number, taken.next));
  return std::move(taken);
}

void GraphUploads::Put(const Key& key, Upload upload) {
  ++upload.next;
  const int64_t now_ns = env_.NowNanos();
  MutexLock lock(mu_);
  uploads_[key] = std::move(upload);
  for (auto it = uploads_.lower_bound({key.first, ""});
       it != uploads_.end() && it->first.first == key.first; ++it) {
    it->second.last_ns = now_ns;
  }
}

StatusOr<std::unique_ptr<ConstantPieces>> GraphUploads::Add(const std::string& session,
                                                            const std::string& graph,
                                                            tensorflow::GraphDef* def) {
  ASSIGN_OR_RETURN(const Stamp stamp, TakeStamp(def));
  const Key key(session, graph);
  ASSIGN_OR_RETURN(Upload upload, Take(key, stamp));
  if (ConstantPieces::Checksum(*def) != stamp.checksum) {
    return DataLoss("part ", stamp.number, " of a graph has a wrong checksum");
  }
  if (!ConstantPieces::IsPiece(*def)) return std::move(upload.constants);
  RETURN_IF_ERROR(CheckNames(*def));
  RETURN_IF_ERROR(upload.constants->Add(*def));
  Put(key, std::move(upload));
  return nullptr;
}

void GraphUploads::Drop(const std::string& session) {
  std::vector<Upload> dropped;  // destroyed after the lock is released
  MutexLock lock(mu_);
  auto it = uploads_.lower_bound({session, ""});
  while (it != uploads_.end() && it->first.first == session) {
    dropped.push_back(std::move(it->second));
    it = uploads_.erase(it);
  }
}

void GraphUploads::DropIdle() {
  const int64_t now_ns = env_.NowNanos();
  std::vector<Upload> dropped;  // destroyed after the lock is released
  MutexLock lock(mu_);
  for (auto it = uploads_.begin(); it != uploads_.end();) {
    if (now_ns - it->second.last_ns < kIdleNanos) {
      ++it;
      continue;
    }
    dropped.push_back(std::move(it->second));
    it = uploads_.erase(it);
  }
}

size_t GraphUploads::size() const {
  MutexLock lock(mu_);
  return uploads_.size();
}

}  // namespace penstock

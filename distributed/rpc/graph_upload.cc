// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/graph_upload.h"

#include <set>
#include <utility>
#include <vector>

#include "core/wire/attr_proto.h"
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

// Refuses pieces with which a few bytes would keep the memory of a large constant. ConstantPieces
// has added the pieces, so their attributes are well-formed.
Status CheckPieceSizes(const tensorflow::GraphDef& def) {
  for (const tensorflow::NodeDef& piece : def.node()) {
    const auto& attrs = piece.attr();
    const auto count = static_cast<int64_t>(attrs.at("bytes").s().size());
    if (count >= GraphUploads::kPieceBytesMin) continue;
    ASSIGN_OR_RETURN(const DType dtype, DTypeFromNumber(attrs.at("dtype").type()));
    ASSIGN_OR_RETURN(const PartialShape declared, ShapeFromProto(attrs.at("shape").shape()));
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(declared.dims()));
    const int64_t all = shape.num_elements() * static_cast<int64_t>(SizeOf(dtype));
    if (count > 0 && attrs.at("offset").i() + count == all) continue;
    return InvalidArgument("a piece of ", count, " bytes of a constant of ", all,
                           " bytes; all but the last have at least ", GraphUploads::kPieceBytesMin);
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
  if (stamp.number < 0) {
    return InvalidArgument("a part of a graph has the number ", stamp.number);
  }
  def->mutable_node()->RemoveLast();
  return stamp;
}

Status GraphUploads::Begin(const Name& name, const Stamp& stamp) {
  if (uploads_.size() >= kUploadsMax) {
    return ResourceExhausted("this task is receiving ", kUploadsMax, " graphs in parts already");
  }
  const auto first = uploads_.lower_bound({.session = name.session});
  size_t count = 0;
  for (auto it = first; it != uploads_.end() && it->first.session == name.session; ++it) ++count;
  if (count >= kUploadsOfSessionMax) {
    return ResourceExhausted("this task is receiving ", kUploadsOfSessionMax,
                             " graphs of the session in parts already");
  }
  uploads_[name] = {
      .id = stamp.id,
      .serial = ++last_serial_,
      .constants = std::make_unique<ConstantPieces>(INT64_MAX, kConstantBytesMin),
      .last_ns = env_.NowNanos()};
  return OkStatus();
}

StatusOr<GraphUploads::Upload> GraphUploads::Take(const Name& name, const Stamp& stamp) {
  Upload dropped;  // destroyed after the lock is released
  MutexLock lock(mu_);
  auto found = uploads_.find(name);
  if (stamp.number == 0) {
    if (found != uploads_.end()) {
      dropped = std::move(found->second);
      uploads_.erase(found);
    }
    RETURN_IF_ERROR(Begin(name, stamp));
    found = uploads_.find(name);
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
  Status status = CheckNumber(stamp.number, found->second.next);
  if (status.ok() && found->second.constants == nullptr) {
    status = InvalidArgument("part ", stamp.number, " of a graph came twice at the same time");
  }
  if (!status.ok()) {
    dropped = std::move(found->second);
    uploads_.erase(found);
    return status;
  }
  const Upload& upload = found->second;
  return Upload{.id = upload.id,
                .serial = upload.serial,
                .next = upload.next,
                .constants = std::move(found->second.constants),
                .last_ns = upload.last_ns};
}

StatusOr<GraphUploads::Uploads::iterator> GraphUploads::Find(const Name& name,
                                                             const Upload& upload) {
  const auto found = uploads_.find(name);
  if (found != uploads_.end() && found->second.serial == upload.serial) return found;
  return Aborted("part ", upload.next, " of a graph was being read when its upload was dropped");
}

Status GraphUploads::Put(const Name& name, Upload upload) {
  const int64_t now_ns = env_.NowNanos();
  MutexLock lock(mu_);
  ASSIGN_OR_RETURN(const auto found, Find(name, upload));
  ++upload.next;
  found->second = std::move(upload);
  const auto of_graph = [&](const Name& other) {
    return other.session == name.session && other.graph == name.graph;
  };
  for (auto it = uploads_.lower_bound({.session = name.session, .graph = name.graph});
       it != uploads_.end() && of_graph(it->first); ++it) {
    it->second.last_ns = now_ns;
  }
  return OkStatus();
}

Status GraphUploads::End(const Name& name, const Upload& upload) {
  MutexLock lock(mu_);
  ASSIGN_OR_RETURN(const auto found, Find(name, upload));
  uploads_.erase(found);  // has no constants: `upload` has them
  return OkStatus();
}

Status GraphUploads::Read(const tensorflow::GraphDef& def, const Stamp& stamp, Upload* upload) {
  if (ConstantPieces::Checksum(def) != stamp.checksum) {
    return DataLoss("part ", stamp.number, " of a graph has a wrong checksum");
  }
  if (!ConstantPieces::IsPiece(def)) return OkStatus();
  RETURN_IF_ERROR(CheckNames(def));
  RETURN_IF_ERROR(upload->constants->Add(def));
  return CheckPieceSizes(def);
}

StatusOr<std::unique_ptr<ConstantPieces>> GraphUploads::Add(const Name& name,
                                                            tensorflow::GraphDef* def) {
  ASSIGN_OR_RETURN(const Stamp stamp, TakeStamp(def));
  ASSIGN_OR_RETURN(Upload upload, Take(name, stamp));
  const Status read = Read(*def, stamp, &upload);
  if (read.ok() && ConstantPieces::IsPiece(*def)) {
    RETURN_IF_ERROR(Put(name, std::move(upload)));
    return nullptr;
  }
  const Status ended = End(name, upload);
  RETURN_IF_ERROR(read);
  RETURN_IF_ERROR(ended);
  return std::move(upload.constants);
}

void GraphUploads::Drop(const std::string& session) {
  std::vector<Upload> dropped;  // destroyed after the lock is released
  MutexLock lock(mu_);
  auto it = uploads_.lower_bound({.session = session});
  while (it != uploads_.end() && it->first.session == session) {
    dropped.push_back(std::move(it->second));
    it = uploads_.erase(it);
  }
}

void GraphUploads::Drop(const std::string& session, uint64_t graph) {
  std::vector<Upload> dropped;  // destroyed after the lock is released
  MutexLock lock(mu_);
  auto it = uploads_.lower_bound({.session = session, .graph = graph});
  while (it != uploads_.end() && it->first.session == session && it->first.graph == graph) {
    dropped.push_back(std::move(it->second));
    it = uploads_.erase(it);
  }
}

bool GraphUploads::DropIdle(absl::FunctionRef<bool(const std::string& session)> exists) {
  const int64_t now_ns = env_.NowNanos();
  std::set<std::string> sessions;
  std::vector<Upload> dropped;  // destroyed after the lock is released
  {
    MutexLock lock(mu_);
    for (auto it = uploads_.begin(); it != uploads_.end();) {
      if (now_ns - it->second.last_ns < kIdleNanos) {
        sessions.insert(it->first.session);
        ++it;
        continue;
      }
      dropped.push_back(std::move(it->second));
      it = uploads_.erase(it);
    }
  }
  bool any = !dropped.empty();
  for (const std::string& session : sessions) {  // without the lock, because `exists` locks, too
    if (exists(session)) continue;
    Drop(session);
    any = true;
  }
  return any;
}

size_t GraphUploads::size() const {
  MutexLock lock(mu_);
  return uploads_.size();
}

}  // namespace penstock

// SPDX-License-Identifier: Apache-2.0
#include "distributed/replica/record_proto.h"

#include <utility>

#include "core/wire/tensor_proto.h"

namespace penstock {
namespace {

// The maximum size of one value; a message holds at most 2 GiB. For strings, handles and variants,
// this is the size of their C++ objects, without the bytes that these refer to.
constexpr int64_t kValueBytesMax = int64_t{1} << 30;
// The maximum numbers of parts in a record and of values in a part. A record that exceeds one of
// them is malformed.
constexpr int kPartsMax = 1'000'000;
constexpr int kValuesMax = 10'000'000;

std::string Named(string_view type, string_view name, string_view container) {
  return StrCat(type, " '", name, "' in container '", container, "'");
}

Status PartToProto(const KeptChange::Part& part, int64_t piece_bytes,
                   wire::ResourceRecord* record) {
  record->set_container(part.container);
  record->set_name(part.name);
  record->set_type(part.type);
  record->set_id(part.id);
  record->set_version(part.version);
  record->set_action(part.action);
  for (const Tensor& value : part.values) {
    tensorflow::TensorProto* const proto = record->add_value();
    if (TravelsInPieces(value, piece_bytes)) {
      record->add_in_pieces(record->value_size() - 1);
      continue;
    }
    if (static_cast<int64_t>(value.bytes()) > kValueBytesMax) {
      return ResourceExhausted("a value of ", value.num_elements(), " elements of type ",
                               Name(value.dtype()), " cannot be replicated: at most ",
                               kValueBytesMax, " bytes of that type travel at once; partition it");
    }
    RETURN_IF_ERROR(TensorToProto(value, proto));
  }
  return OkStatus();
}

StatusOr<Tensor> ReadValue(const tensorflow::TensorProto& proto, int64_t* bytes_left) {
  ASSIGN_OR_RETURN(Tensor value, TensorFromProto(proto, *bytes_left));
  *bytes_left -= static_cast<int64_t>(value.bytes());
  return value;
}

StatusOr<KeptChange::Part> PartFromProto(const wire::ResourceRecord& record, int64_t* bytes_left,
                                         PieceReader* pieces) {
  KeptChange::Part part{.container = record.container(),
                        .name = record.name(),
                        .type = record.type(),
                        .action = record.action(),
                        .id = record.id(),
                        .version = record.version()};
  if (record.value_size() > kValuesMax) {
    return InvalidArgument(record.value_size(), " values, expected at most ", kValuesMax);
  }
  int piece = 0;
  for (int i = 0; i < record.value_size(); ++i) {
    const bool in_pieces = piece < record.in_pieces_size() && record.in_pieces(piece) == i;
    piece += in_pieces;
    auto value = in_pieces ? pieces->Take() : ReadValue(record.value(i), bytes_left);
    if (!value.ok()) return Annotate(value.status(), StrCat("value ", i));
    part.values.push_back(*std::move(value));
  }
  if (piece == record.in_pieces_size()) return part;
  return InvalidArgument("value ", record.in_pieces(piece), " came in pieces, but there are ",
                         record.value_size(), " values in ascending order");
}

}  // namespace

int64_t KeptChange::bytes() const {
  int64_t bytes = 0;
  for (const Part& part : parts) {
    for (const Tensor& value : part.values) bytes += static_cast<int64_t>(value.bytes());
  }
  return bytes;
}

Status RecordToProto(const KeptChange& change, wire::StateRecord* record, int64_t piece_bytes) {
  record->set_position(change.position);
  record->set_step_id(change.step_id);
  record->set_incarnation(change.incarnation);
  record->set_device(change.device);
  record->set_node(change.node);
  for (const KeptChange::Part& part : change.parts) {
    const Status status = PartToProto(part, piece_bytes, record->add_part());
    if (!status.ok()) return Annotate(status, Named(part.type, part.name, part.container));
  }
  return OkStatus();
}

StatusOr<KeptChange> RecordFromProto(const wire::StateRecord& record, int64_t* bytes_left,
                                     PieceReader* pieces) {
  KeptChange change{.position = record.position(),
                    .step_id = record.step_id(),
                    .incarnation = record.incarnation(),
                    .device = record.device(),
                    .node = record.node()};
  if (record.part_size() == 0 || record.part_size() > kPartsMax) {
    return InvalidArgument("a record of ", record.part_size(), " parts, expected 1 to ", kPartsMax);
  }
  for (const wire::ResourceRecord& part : record.part()) {
    auto read = PartFromProto(part, bytes_left, pieces);
    if (!read.ok()) {
      return Annotate(read.status(), StrCat("record ", record.position(), " of ",
                                            Named(part.type(), part.name(), part.container())));
    }
    change.parts.push_back(*std::move(read));
  }
  return change;
}

StateChange BorrowChange(const KeptChange& change, std::vector<ResourceChange>* parts) {
  parts->clear();
  for (const KeptChange::Part& part : change.parts) {
    parts->push_back({.resource = {.container = part.container,
                                   .name = part.name,
                                   .type = part.type,
                                   .id = part.id},
                      .version = part.version,
                      .action = part.action,
                      .values = part.values});
  }
  return {.origin = {.step_id = change.step_id,
                     .incarnation = change.incarnation,
                     .device = change.device,
                     .node = change.node},
          .parts = *parts};
}

}  // namespace penstock

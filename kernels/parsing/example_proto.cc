// SPDX-License-Identifier: Apache-2.0
//
// Parses records in place, with protobuf's reader of the wire format. Building protobuf messages
// would take more time than all other work of an input pipeline.
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/parsing/example.h"
#include "proto/tensorflow/example.pb.h"

namespace penstock {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// Reads a length, and sets *piece to that many bytes. Returns false if there are fewer.
bool ReadPiece(CodedInputStream& in, string_view* piece) {
  uint32_t length;
  if (!in.ReadVarint32(&length)) return false;
  *piece = {};
  if (length == 0) return true;
  const void* data;
  int size;
  if (!in.GetDirectBufferPointer(&data, &size) || length > static_cast<uint32_t>(size)) {
    return false;
  }
  *piece = {static_cast<const char*>(data), length};
  return in.Skip(static_cast<int>(length));
}

// Calls visit(stream, number, wire type) at the value of each field. `visit` reads the value, or
// returns kSkip to have it skipped. Returns false if the message is malformed, or if `visit`
// returns kWrong.
enum class Visit { kRead, kSkip, kWrong };
template <class Visitor>
bool VisitFields(string_view message, Visitor visit) {
  if (message.size() > static_cast<size_t>(std::numeric_limits<int>::max())) return false;
  CodedInputStream in(reinterpret_cast<const uint8_t*>(message.data()),
                      static_cast<int>(message.size()));
  while (const uint32_t tag = in.ReadTag()) {
    const Visit visited =
        visit(in, WireFormatLite::GetTagFieldNumber(tag), WireFormatLite::GetTagWireType(tag));
    if (visited == Visit::kWrong) return false;
    if (visited == Visit::kSkip && !WireFormatLite::SkipField(&in, tag)) return false;
  }
  return in.ConsumedEntireMessage();
}

// Calls take(number, bytes) for each length-delimited field; `take` returns whether the bytes are
// valid. Returns false if they are not, or if the message is malformed.
template <class Taker>
bool VisitPieces(string_view message, Taker take) {
  return VisitFields(message, [&](CodedInputStream& in, int number, int type) {
    // Field number 0 is invalid: SkipField returns an error for it.
    if (type != WireFormatLite::WIRETYPE_LENGTH_DELIMITED || number == 0) return Visit::kSkip;
    string_view piece;
    return ReadPiece(in, &piece) && take(number, piece) ? Visit::kRead : Visit::kWrong;
  });
}

constexpr int kValues = 1;  // field number of the values in each kind of list

bool AddFloats(string_view list, Feature* feature) {
  auto& floats = feature->floats;
  return VisitFields(list, [&](CodedInputStream& in, int number, int type) {
    if (number != kValues) return Visit::kSkip;
    if (type == WireFormatLite::WIRETYPE_FIXED32) {
      uint32_t bits;
      if (!in.ReadLittleEndian32(&bits)) return Visit::kWrong;
      floats.push_back(WireFormatLite::DecodeFloat(bits));
      return Visit::kRead;
    }
    if (type != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) return Visit::kSkip;
    string_view packed;
    if (!ReadPiece(in, &packed) || packed.size() % sizeof(float) != 0) return Visit::kWrong;
    if (packed.empty()) return Visit::kRead;
    const size_t before = floats.size();
    floats.resize(before + packed.size() / sizeof(float));
    memcpy(&floats[before], packed.data(), packed.size());
    return Visit::kRead;
  });
}

bool AddInts(string_view list, Feature* feature) {
  const auto add = [&](CodedInputStream& in) {
    uint64_t value;
    if (!in.ReadVarint64(&value)) return Visit::kWrong;
    feature->ints.push_back(static_cast<int64_t>(value));
    return Visit::kRead;
  };
  return VisitFields(list, [&](CodedInputStream& in, int number, int type) {
    if (number != kValues) return Visit::kSkip;
    if (type == WireFormatLite::WIRETYPE_VARINT) return add(in);
    if (type != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) return Visit::kSkip;
    string_view packed;
    if (!ReadPiece(in, &packed)) return Visit::kWrong;
    CodedInputStream values(reinterpret_cast<const uint8_t*>(packed.data()),
                            static_cast<int>(packed.size()));
    while (values.CurrentPosition() < static_cast<int>(packed.size())) {
      if (add(values) == Visit::kWrong) return Visit::kWrong;
    }
    return Visit::kRead;
  });
}

bool AddStrings(string_view list, Feature* feature) {
  return VisitPieces(list, [&](int number, string_view value) {
    if (number == kValues) feature->strings.push_back(value);
    return true;
  });
}

// Returns the feature. If it has several kinds of lists, the last kind counts; several lists of
// that kind are concatenated. InvalidArgument if the bytes are malformed.
StatusOr<Feature> ParseFeature(string_view bytes) {
  struct Kind {
    DType dtype;
    bool (*add)(string_view list, Feature* feature);
  };
  constexpr Kind kKinds[] = {
      {DType::kString, AddStrings}, {DType::kFloat, AddFloats}, {DType::kInt64, AddInts}};
  Feature feature;
  const bool right = VisitPieces(bytes, [&](int number, string_view list) {
    if (number < 1 || number > 3) return true;
    const Kind& kind = kKinds[number - 1];
    if (feature.dtype != kind.dtype) feature = {};
    feature.dtype = kind.dtype;
    return kind.add(list, &feature);
  });
  if (!right) return InvalidArgument("the ", bytes.size(), " bytes are no tensorflow.Feature");
  return feature;
}

Status NoRecord(string_view bytes, string_view type) {
  return InvalidArgument("the ", bytes.size(), " bytes are no tensorflow.", type);
}

}  // namespace

void Feature::CopyTo(Tensor* to, int64_t at) const {
  switch (dtype) {
    case DType::kFloat:
      std::copy(floats.begin(), floats.end(), to->mutable_data<float>() + at);
      break;
    case DType::kInt64:
      std::copy(ints.begin(), ints.end(), to->mutable_data<int64_t>() + at);
      break;
    default:
      for (const string_view value : strings) {
        to->mutable_data<std::string>()[at++].assign(value.data(), value.size());
      }
  }
}

bool SerializedMap::Add(string_view bytes) {
  return VisitPieces(bytes, [&](int field, string_view entry) {
    if (field != 1) return true;
    string_view key, value;
    const bool right = VisitPieces(entry, [&](int number, string_view piece) {
      if (number == 1) key = piece;
      if (number == 2) value = piece;
      return true;
    });
    entries_.emplace_back(key, value);
    return right;
  });
}

std::optional<string_view> SerializedMap::Find(string_view key) const {
  const auto found = std::find_if(entries_.rbegin(), entries_.rend(),
                                  [&](const auto& entry) { return entry.first == key; });
  return found == entries_.rend() ? std::nullopt : std::optional(found->second);
}

StatusOr<ExampleRecord> ExampleRecord::Parse(string_view bytes) {
  ExampleRecord record;
  const bool right = VisitPieces(bytes, [&](int number, string_view piece) {
    return number != 1 || record.features_.Add(piece);
  });
  if (!right) return NoRecord(bytes, "Example");
  return record;
}

StatusOr<std::string> ExampleRecord::BytesOfJson(string_view json) {
  tensorflow::Example record;
  const auto status = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(json.data(), json.size()), &record);
  if (!status.ok()) return InvalidArgument(status.message().as_string());
  return record.SerializeAsString();
}

StatusOr<std::optional<Feature>> ExampleRecord::Find(string_view key) const {
  std::optional<Feature> found;
  if (const auto bytes = features_.Find(key)) {
    ASSIGN_OR_RETURN(Feature feature, ParseFeature(*bytes));
    if (feature.dtype != DType::kInvalid) found = std::move(feature);
  }
  return found;
}

StatusOr<SequenceRecord> SequenceRecord::Parse(string_view bytes) {
  SequenceRecord record;
  const bool right = VisitPieces(bytes, [&](int number, string_view piece) {
    if (number == 1) return record.context_.features_.Add(piece);
    return number != 2 || record.lists_.Add(piece);
  });
  if (!right) return NoRecord(bytes, "SequenceExample");
  return record;
}

StatusOr<std::optional<std::vector<Feature>>> SequenceRecord::FindList(string_view key) const {
  const auto list = lists_.Find(key);
  std::optional<std::vector<Feature>> found;
  if (!list) return found;
  found.emplace();
  Status status;
  const bool right = VisitPieces(*list, [&](int number, string_view bytes) {
    if (number != 1) return true;
    auto step = ParseFeature(bytes);
    if (step.ok()) found->push_back(*std::move(step));
    status = step.status();
    return status.ok();
  });
  if (!right) return status.ok() ? NoRecord(*list, "FeatureList") : status;
  return found;
}

}  // namespace penstock
